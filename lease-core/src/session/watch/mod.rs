//! Watching the session of another holder: one watch, however many of its leases are wanted.
//!
//! ```text
//!  read: V      read: V     ...    O + W: kill, if it is still V      the leases under it are taken
//!  O ─────────────────────────────►│
//!  missing ── tombstone ── O ──── W ──────►│ kill
//! ```

mod answers;

use super::{
    core::Core,
    ended::Ended,
    event::Attempted,
    facts::{Life, SessionDraft, SessionFacts, SessionState},
    io::{Action, Draft, Request},
    rules::SessionRules,
    table::{Queued, Slot, Urgency},
};
use crate::{
    ObjectKey,
    auth::Verdict,
    key::InstanceId,
    machine::{Entropy, RequestId},
    store::{StoreErrorKind, Version},
};
use fencing::{MonotonicTime, Reading};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(in crate::session) struct Watch {
    /// The leases that stand under it and that somebody asks for.
    names: BTreeMap<ObjectKey, Name>,
    /// How many of them it does not free.
    unfreed: usize,
    /// How many of them somebody waits for.
    waits: usize,
    /// The largest ttl that one of them says.
    ttl: Option<Duration>,
    seen: Option<Seen>,
    ended: Option<Ended>,
    read_at: MonotonicTime,
    /// No kill and no tombstone before then, or before the next read.
    pause: Pause,
    /// Somebody tries one of its leases and waits for what the next read shows.
    pub(in crate::session) is_tried: bool,
    /// The life that a write under way names.
    ending: Option<Life>,
    flight: Option<RequestId>,
    pub(in crate::session) queued: Option<Queued>,
}

/// A lease under a session that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::session) struct Name {
    /// The life that it names.
    pub(in crate::session) life: Life,
    /// It is waited for, not only watched or tried.
    pub(in crate::session) is_awaited: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Pause {
    No,
    /// Until a read; and what that shows counts from then, if `restarts`.
    Read {
        restarts: bool,
    },
    Until(MonotonicTime),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Seen {
    /// `None`: there is no object.
    version: Option<Version>,
    verdict: Verdict,
    facts: Option<Arc<SessionFacts>>,
    /// O: since when it was seen without a break.
    since: MonotonicTime,
    shown: MonotonicTime,
    jitter: Duration,
}

/// What stands there: its version, whether it can be believed, what it says.
type Object = (Option<Version>, Verdict, Option<Arc<SessionFacts>>);

/// What an answer means for the leases under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::session) enum News {
    /// This process ended it: they are taken at once.
    Ended,
    Failed(StoreErrorKind),
    /// Some may be free now.
    Freed,
    None,
}

impl Watch {
    pub(in crate::session) fn new(now: MonotonicTime) -> Self {
        Self {
            names: BTreeMap::new(),
            unfreed: 0,
            waits: 0,
            ttl: None,
            seen: None,
            ended: None,
            read_at: now,
            pause: Pause::No,
            is_tried: false,
            ending: None,
            flight: None,
            queued: None,
        }
    }

    /// True if that changed something.
    pub(in crate::session) fn add<R: SessionRules>(
        &mut self,
        lease: &ObjectKey,
        name: Name,
        ttl: Duration,
    ) -> bool {
        if self.names.get(lease) == Some(&name) {
            return false;
        }
        self.remove::<R>(lease);
        self.unfreed += usize::from(!self.frees::<R>(name.life));
        self.waits += usize::from(name.is_awaited);
        self.ttl = self.ttl.max(Some(ttl));
        self.names.insert(lease.clone(), name);
        true
    }

    pub(in crate::session) fn remove<R: SessionRules>(&mut self, lease: &ObjectKey) {
        if let Some(name) = self.names.remove(lease) {
            self.unfreed -= usize::from(!self.frees::<R>(name.life));
            self.waits -= usize::from(name.is_awaited);
        }
    }

    /// Nobody asks for a lease under it.
    pub(in crate::session) fn is_idle(&self) -> bool {
        self.names.is_empty()
    }

    pub(in crate::session) fn names(&self) -> Vec<ObjectKey> {
        self.names.keys().cloned().collect()
    }

    fn lives(&self) -> impl Iterator<Item = Life> {
        self.names.values().map(|name| name.life)
    }

    /// Somebody waits for a lease under it, and this process could take that.
    fn is_wanted<R: SessionRules>(&self, core: &Core<R>) -> bool {
        self.waits > 0 && core.live().is_some()
    }

    /// Whether a lease that names this life is free.
    pub(in crate::session) fn frees<R: SessionRules>(&self, life: Life) -> bool {
        self.ended.is_some_and(|ended| ended.covers::<R>(life))
    }

    /// Whether it showed something at most R ago.
    pub(in crate::session) fn is_fresh<R: SessionRules>(
        &self,
        core: &Core<R>,
        now: MonotonicTime,
    ) -> bool {
        self.seen.as_ref().is_some_and(|seen| now - seen.shown <= core.renew())
    }

    /// Whether it has shown nothing new for W.
    pub(in crate::session) fn is_silent<R: SessionRules>(
        &self,
        core: &Core<R>,
        now: MonotonicTime,
    ) -> bool {
        self.kill_at(core, now).is_some_and(|kill_at| kill_at <= now)
    }

    /// What stands there is looked at again as soon as possible.
    pub(in crate::session) fn hurry(&mut self, now: MonotonicTime) {
        self.read_at = self.read_at.min(now);
    }

    pub(in crate::session) fn request(&self) -> Option<RequestId> {
        self.flight
    }

    /// When it has something to send next.
    pub(in crate::session) fn due<R: SessionRules>(
        &self,
        core: &Core<R>,
        now: MonotonicTime,
    ) -> Option<Queued> {
        let is_wanted = self.is_wanted(core);
        if self.flight.is_some() || core.is_over || self.unfreed == 0 {
            return None;
        }
        let end_at = self.end_at(core, now).filter(|end_at| is_wanted || *end_at > now);
        Some((Urgency::Urgent, end_at.map_or(self.read_at, |end_at| end_at.min(self.read_at))))
    }

    /// O + W, when it may be killed.
    fn kill_at<R: SessionRules>(
        &self,
        core: &Core<R>,
        now: MonotonicTime,
    ) -> Option<MonotonicTime> {
        let seen = self.seen.as_ref().filter(|seen| seen.version.is_some())?;
        let said = seen.facts.as_ref().filter(|_| core.own.machine.accepts(seen.verdict));
        let said = said.map(|facts| facts.lease.ttl).max(self.ttl);
        let wait = match R::SESSION_IS_WATCHED_FOR_W {
            true => core.own.machine.wait(said, now),
            false => core.renew(),
        };
        Some(seen.since + wait + seen.jitter)
    }

    /// When it may be ended, or a tombstone be put in its place.
    fn end_at<R: SessionRules>(&self, core: &Core<R>, now: MonotonicTime) -> Option<MonotonicTime> {
        let seen = self.seen.as_ref()?;
        let is_blind = now - seen.shown > core.renew() * 2 && R::BLIND_GAP_RESTARTS;
        let at = match seen.version {
            Some(_) => self.kill_at(core, now)?,
            None => seen.since,
        };
        match self.pause {
            _ if is_blind => None,
            Pause::No => Some(at),
            Pause::Read { .. } => None,
            Pause::Until(until) => Some(at.max(until)),
        }
    }

    /// Does what is due: a read, a tombstone, or a kill.
    pub(in crate::session) fn act<R: SessionRules>(
        &mut self,
        instance: &InstanceId,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<Action> {
        let due = self.due(core, now.monotonic);
        due.filter(|(_, due)| *due <= now.monotonic)?;
        let is_to_end = self.end_at(core, now.monotonic).is_some_and(|at| at <= now.monotonic);
        let (attempted, request) = match (is_to_end && self.is_wanted(core), self.seen.as_ref()) {
            (true, Some(seen)) => {
                let state = match seen.version {
                    Some(_) => SessionState::Killed,
                    None => SessionState::Tombstone,
                };
                self.ending_request(core, state, seen.version.clone(), now, entropy)?
            }
            _ if self.read_at <= now.monotonic => {
                let unless = self.seen.as_ref().and_then(|seen| seen.version.clone());
                (Attempted::Read, Request::Read { unless })
            }
            // It is silent, and nobody here wants what is under it.
            _ => return None,
        };
        let slot = Slot::Watch(instance.clone());
        let (id, action) = core.send(slot, attempted, request, now);
        self.flight = Some(id);
        Some(action)
    }

    fn ending_request<R: SessionRules>(
        &mut self,
        core: &Core<R>,
        state: SessionState,
        version: Option<Version>,
        now: Reading,
        entropy: &mut dyn Entropy,
    ) -> Option<(Attempted, Request)> {
        let life = self.last_life(core, entropy)?;
        self.ending = Some(life);
        let lease = Core::<R>::draft(false, life.epoch, 1, entropy.nonce(), now);
        let draft = Draft::Session(SessionDraft { lease, life: life.nonce, state });
        Some(match version {
            None => (Attempted::Tombstone, Request::Create(draft)),
            Some(version) => (Attempted::Kill, Request::Replace(draft, version)),
        })
    }

    /// The latest life that its object, or a lease under it, names. If two of one epoch are named, one
    /// that is later than both.
    fn last_life<R: SessionRules>(
        &self,
        core: &Core<R>,
        entropy: &mut dyn Entropy,
    ) -> Option<Life> {
        let seen = self.seen.as_ref();
        let seen = seen.filter(|seen| core.own.machine.accepts(seen.verdict));
        let shown = seen.and_then(|seen| seen.facts.as_ref());
        let shown = shown.map(|facts| Life { epoch: facts.lease.epoch, nonce: facts.life });
        let lives = || self.lives().chain(shown);
        let last = lives().max_by_key(|life| life.epoch)?;
        match lives().any(|life| life.epoch == last.epoch && life != last) {
            false => Some(last),
            true => Some(Life {
                epoch: last.epoch.next().unwrap_or(last.epoch),
                nonce: entropy.nonce(),
            }),
        }
    }

    /// For a machine that lacks the rule to kill first: everything under a silent session is free.
    pub(in crate::session) fn skip_kill<R: SessionRules>(
        &mut self,
        core: &Core<R>,
        now: MonotonicTime,
    ) -> bool {
        if R::KILL_BEFORE_TAKE || !self.is_silent(core, now) {
            return false;
        }
        let last = self.lives().max_by_key(|life| life.epoch);
        last.is_some_and(|last| self.learn_ended::<R>(Ended::with(last)))
    }
}
