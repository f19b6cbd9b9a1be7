//! One named lease as this process sees it: a row of the table.

use super::{
    core::Core,
    event::{DenyReason, Event, NamedSeen},
    facts::{Life, NamedFacts},
    io::Sighting,
    rules::SessionRules,
    table::Queued,
    watch::{Name, Watch},
};
use crate::{ObjectKey, auth::Verdict, key::InstanceId, machine::RequestId, store::Version};
use fencing::{Epoch, MonotonicTime, Reading};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// It is kept small: ten thousand of them may be held.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Lease {
    pub(super) wish: Option<Wish>,
    pub(super) is_watched: bool,
    /// It was seen held: others may be waiting for it as well.
    pub(super) has_waited: bool,
    pub(super) state: State,
    /// What was seen last, unless something was written since.
    pub(super) sight: Option<Box<Sight>>,
    /// An acquisition that may have landed, or may land yet.
    pub(super) doubt: Option<Box<Doubt>>,
    /// The highest epoch of any acceptable record that was seen, and of one's own.
    pub(super) highest: Option<Epoch>,
    /// The highest epoch of an acquisition of this process: used, perhaps.
    pub(super) tried: Option<Epoch>,
    pub(super) keep_out: Option<MonotonicTime>,
    /// From when it may be taken, while it is free.
    pub(super) take_at: Option<MonotonicTime>,
    pub(super) look_at: MonotonicTime,
    /// Whose session is watched for it.
    pub(super) under: Option<InstanceId>,
    pub(super) told: Option<Box<NamedSeen>>,
    pub(super) flight: Option<RequestId>,
    pub(super) queued: Option<Queued>,
    pub(super) timer: Option<MonotonicTime>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Wish {
    /// Take it if it is free, or say that it is not.
    Try,
    Wait,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum State {
    Held(Box<Held>),
    Idle,
    /// It is being given back: the write is repeated until it is certain.
    Releasing(Box<Releasing>),
    /// An acquisition is under way.
    Taking(Box<Taking>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Taking {
    pub(super) life: Life,
    pub(super) epoch: Epoch,
    pub(super) sent: Reading,
    /// The version that it replaces; `None`: it creates.
    pub(super) condition: Option<Version>,
    pub(super) hold_back: Option<Duration>,
    /// It is no acquisition: a release in place of one that was given up and may land yet.
    pub(super) is_burning: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Doubt {
    /// The version that it replaces, if it lands; `None`: it creates.
    pub(super) condition: Option<Version>,
    pub(super) is_held_back: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Held {
    pub(super) epoch: Epoch,
    pub(super) life: Life,
    pub(super) version: Version,
    /// When the last request that showed the lease was sent.
    pub(super) proven: Reading,
    pub(super) held_back_until: Option<MonotonicTime>,
    pub(super) is_open: bool,
    pub(super) audit_at: MonotonicTime,
    /// What stands in the store says that it is held back, and is replaced from then on.
    pub(super) unmark_at: Option<MonotonicTime>,
    /// Such a write may have landed, or may land yet.
    pub(super) may_move: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Releasing {
    pub(super) epoch: Epoch,
    pub(super) life: Life,
    pub(super) version: Version,
    pub(super) due: MonotonicTime,
    pub(super) tries: u32,
    /// A try may have landed.
    pub(super) is_in_doubt: bool,
    /// Another write of this tenure may have landed, or may land yet.
    pub(super) may_move: bool,
    /// The condition is gone; a read tells whether that other write did it.
    pub(super) is_to_be_read: bool,
    /// The end of the tenure is still to be told.
    pub(super) tells: bool,
}

/// What was seen under the name.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Sight {
    /// `None`: there is no object.
    pub(super) version: Option<Version>,
    pub(super) verdict: Verdict,
    pub(super) facts: Option<Arc<NamedFacts>>,
    /// Since when, without a gap of more than 2R.
    pub(super) since: MonotonicTime,
    pub(super) shown: MonotonicTime,
}

/// From when a lease may be taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Opening {
    /// At once; its fence has to stay shut for so long.
    Free { hold_back: Option<Duration> },
    /// Not while this process's own session is not live.
    NotLive,
    /// Once this session has ended.
    Under(InstanceId, Life),
    /// It cannot be believed; not before then.
    WaitedOut(MonotonicTime),
}

pub(super) type Watches = BTreeMap<InstanceId, Watch>;

impl Lease {
    pub(super) fn new(now: MonotonicTime) -> Self {
        Self {
            wish: None,
            is_watched: false,
            has_waited: false,
            state: State::Idle,
            sight: None,
            doubt: None,
            highest: None,
            tried: None,
            keep_out: None,
            take_at: None,
            look_at: now,
            under: None,
            told: None,
            flight: None,
            queued: None,
            timer: None,
        }
    }

    /// Nobody asks for it, and nothing is left to be done.
    pub(super) fn is_idle(&self) -> bool {
        self.wish.is_none()
            && !self.is_watched
            && self.state == State::Idle
            && self.doubt.is_none()
            && self.keep_out.is_none()
    }

    /// It was given up while its acquisition was in doubt.
    pub(super) fn is_followed(&self) -> bool {
        self.wish.is_none() && self.doubt.is_some() && self.state == State::Idle
    }

    /// What was seen is not what is there now: look again at `at`.
    pub(super) fn look_again(&mut self, at: MonotonicTime) {
        self.sight = None;
        self.take_at = None;
        self.look_at = at;
    }

    /// Takes in what a read shows. False if it shows nothing.
    pub(super) fn see<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        sighting: Sighting<NamedFacts>,
        now: MonotonicTime,
    ) -> bool {
        let before = self.sight.take();
        let found = |version, verdict, facts| {
            Box::new(Sight { version, verdict, facts, since: now, shown: now })
        };
        let mut sight = match sighting {
            Sighting::NotModified => match before.clone() {
                Some(sight) if sight.version.is_some() => sight,
                _ => return false,
            },
            Sighting::Missing => found(None, Verdict::Unreadable, None),
            Sighting::Found { version, verdict, facts, .. } => found(Some(version), verdict, facts),
        };
        sight.shown = now;
        let ttl = sight.facts.as_ref().map(|facts| facts.lease.ttl);
        if sight.version.is_some() && core.own.machine.learn_beside(sight.verdict, ttl, now) {
            let epoch = sight.facts.as_ref().map(|facts| facts.lease.epoch);
            self.highest = self.highest.max(epoch);
        }
        let gap = core.renew() * 2;
        match before.filter(|before| before.version == sight.version) {
            Some(before) if now - before.shown <= gap => sight.since = before.since,
            Some(_) => sight.since = now,
            None => self.take_at = None,
        }
        if self.doubt.as_ref().is_some_and(|doubt| doubt.condition != sight.version) {
            // Its condition is gone: it has landed, and is what is seen now or was before it, or
            // it never will.
            self.doubt = None;
        }
        self.sight = Some(sight);
        true
    }

    /// What is seen, if it can be believed.
    pub(super) fn believed<R: SessionRules>(&self, core: &Core<R>) -> Option<&Arc<NamedFacts>> {
        let sight = self.sight.as_ref()?;
        sight.facts.as_ref().filter(|_| core.own.machine.accepts(sight.verdict))
    }

    /// One's own record of the life that is live: a lease that an acquisition in doubt took.
    pub(super) fn own_record<R: SessionRules>(&self, core: &Core<R>) -> Option<&Arc<NamedFacts>> {
        let live = core.live()?;
        self.believed(core).filter(|facts| {
            facts.lease.holder.is_some()
                && facts.session == core.config.instance
                && facts.life == live
        })
    }

    /// From when what is seen may be taken. A decision over facts.
    pub(super) fn opening<R: SessionRules>(
        &self,
        core: &Core<R>,
        watches: &Watches,
        now: MonotonicTime,
    ) -> Option<Opening> {
        let sight = self.sight.as_ref()?;
        let hold_back = core.hold_back(now);
        if sight.version.is_none() {
            return Some(Opening::Free { hold_back });
        }
        let Some(facts) = self.believed(core) else {
            return Some(match core.config.audit {
                Some(_) => Opening::Free { hold_back },
                None => Opening::WaitedOut(sight.since + core.own.machine.wait(None, now)),
            });
        };
        let is_older = self.highest > Some(facts.lease.epoch);
        let is_handed_on = facts.held_back && R::HOLD_BACK_IS_HANDED_ON;
        let free = |holds_back: bool| Opening::Free { hold_back: hold_back.filter(|_| holds_back) };
        Some(if facts.lease.holder.is_none() {
            free(is_handed_on || is_older)
        } else if facts.session == core.config.instance {
            // While this session is live no other life of it is, and its own is here.
            if core.live().is_some() { free(is_handed_on) } else { Opening::NotLive }
        } else if watches.get(&facts.session).is_some_and(|it| it.frees::<R>(facts.life)) {
            free(is_handed_on)
        } else {
            Opening::Under(facts.session.clone(), facts.life)
        })
    }

    /// The session that is to be watched for it: its holder's.
    pub(super) fn stands_under<R: SessionRules>(
        &self,
        core: &Core<R>,
    ) -> Option<(InstanceId, Name, Duration)> {
        let is_asked_for = self.wish.is_some() || self.is_watched;
        let facts = self.believed(core).filter(|_| is_asked_for && self.state == State::Idle)?;
        let is_others = facts.lease.holder.is_some() && facts.session != core.config.instance;
        let name = Name { life: facts.life, is_awaited: self.wish == Some(Wish::Wait) };
        is_others.then(|| (facts.session.clone(), name, facts.lease.ttl))
    }

    /// Decides from when it may be taken, answers who tries it, and tells who watches it. True if the
    /// session above it has to be read for that.
    pub(super) fn assess<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        watches: &Watches,
        now: MonotonicTime,
    ) -> bool {
        self.tell(key, core, watches, now);
        if self.state != State::Idle || self.wish.is_none() {
            self.take_at = None;
            return false;
        }
        let Some(opening) = self.opening(core, watches, now) else { return false };
        let is_trying = self.wish == Some(Wish::Try);
        if let Opening::Under(holder, _) = &opening
            && is_trying
            && !watches.get(holder).is_some_and(|watch| watch.is_fresh(core, now))
        {
            return true;
        }
        if let Some(reason) = self.decide(core, opening, now).filter(|_| is_trying) {
            self.wish = None;
            core.deny(key, reason);
        }
        false
    }

    /// From when it may be taken; and why it is not taken now, for who does not wait.
    fn decide<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        opening: Opening,
        now: MonotonicTime,
    ) -> Option<DenyReason> {
        match opening {
            Opening::Free { .. } => {
                if self.take_at.is_none() {
                    let spread = self.has_waited.then(|| core.draw_jitter(Duration::ZERO));
                    self.take_at = Some(now + spread.unwrap_or_default());
                }
                self.keep_out.map(|_| DenyReason::KeptOut)
            }
            Opening::NotLive => {
                self.take_at = None;
                Some(DenyReason::SessionEnded)
            }
            Opening::Under(holder, _) => {
                (self.take_at, self.has_waited) = (None, true);
                Some(DenyReason::Held { holder })
            }
            Opening::WaitedOut(at) => {
                self.has_waited = true;
                if self.take_at.is_none_or(|take_at| take_at < at) {
                    self.take_at = Some(at + core.draw_jitter(Duration::ZERO));
                }
                let verdict = self.sight.as_ref().map(|sight| sight.verdict);
                verdict.map(|verdict| DenyReason::Untrusted { verdict })
            }
        }
    }

    fn tell<R: SessionRules>(
        &mut self,
        key: &ObjectKey,
        core: &mut Core<R>,
        watches: &Watches,
        now: MonotonicTime,
    ) {
        if !self.is_watched {
            return;
        }
        let seen = self.summary(core, watches, now);
        if let Some(seen) = seen.filter(|seen| self.told.as_deref() != Some(seen)) {
            self.told = Some(Box::new(seen.clone()));
            core.events.push_back(Event::Seen { lease: key.clone(), seen });
        }
    }

    /// What is seen, for people and policies.
    pub(super) fn summary<R: SessionRules>(
        &self,
        core: &Core<R>,
        watches: &Watches,
        now: MonotonicTime,
    ) -> Option<NamedSeen> {
        if let State::Held(held) = &self.state {
            let holder = core.config.instance.clone();
            return Some(NamedSeen::Held { holder, epoch: held.epoch });
        }
        let sight = self.sight.as_ref()?;
        if sight.version.is_none() {
            return Some(NamedSeen::Missing);
        }
        let Some(facts) = self.believed(core) else {
            return Some(NamedSeen::Untrusted { verdict: sight.verdict });
        };
        let (holder, epoch) = (facts.session.clone(), facts.lease.epoch);
        let is_own = facts.session == core.config.instance;
        let is_left = match is_own {
            true => core.live().is_some_and(|life| life != facts.life),
            false => watches
                .get(&facts.session)
                .is_some_and(|watch| watch.frees::<R>(facts.life) || watch.is_silent(core, now)),
        };
        Some(match (&facts.lease.holder, is_left) {
            (None, _) => NamedSeen::Released { epoch },
            (Some(_), false) => NamedSeen::Held { holder, epoch },
            (Some(_), true) => NamedSeen::Orphaned { holder, epoch },
        })
    }
}
