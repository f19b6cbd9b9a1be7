//! Watching the session of another holder: one watch, however many of its leases are wanted.
//!
//! ```text
//!  read: V      read: V     ...    O + W: kill, if it is still V      the leases under it are taken
//!  O ─────────────────────────────►│
//!  missing ── tombstone ── O ──── W ──────►│ kill
//! ```

use super::{
    config::Config,
    core::{Core, Flight},
    ended::Ended,
    event::{Attempted, Event},
    facts::{Life, SessionDraft, SessionFacts, SessionState},
    io::{Action, Draft, Reply, Request, Sighting},
    rules::SessionRules,
    table::{Queued, Slot, Urgency},
};
use crate::{
    ObjectKey,
    auth::Verdict,
    key::InstanceId,
    machine::{Entropy, Facts, RequestId},
    store::{StoreErrorKind, Version},
};
use fencing::{MonotonicTime, Reading};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Watch {
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
    pub(super) is_tried: bool,
    /// The life that a write under way names.
    ending: Option<Life>,
    flight: Option<RequestId>,
    pub(super) queued: Option<Queued>,
}

/// A lease under a session that is watched.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Name {
    /// The life that it names.
    pub(super) life: Life,
    /// It is waited for, not only watched or tried.
    pub(super) is_awaited: bool,
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

/// What an answer means for the leases under it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// This process ended it: they are taken at once.
    Ended,
    Failed(StoreErrorKind),
    /// Some may be free now.
    Freed,
    None,
}

impl Watch {
    pub(super) fn new(now: MonotonicTime) -> Self {
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
    pub(super) fn add<R: SessionRules>(
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

    pub(super) fn remove<R: SessionRules>(&mut self, lease: &ObjectKey) {
        if let Some(name) = self.names.remove(lease) {
            self.unfreed -= usize::from(!self.frees::<R>(name.life));
            self.waits -= usize::from(name.is_awaited);
        }
    }

    /// Nobody asks for a lease under it.
    pub(super) fn is_idle(&self) -> bool {
        self.names.is_empty()
    }

    pub(super) fn names(&self) -> Vec<ObjectKey> {
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
    pub(super) fn frees<R: SessionRules>(&self, life: Life) -> bool {
        self.ended.is_some_and(|ended| ended.covers::<R>(life))
    }

    /// Whether it showed something at most R ago.
    pub(super) fn is_fresh<R: SessionRules>(&self, core: &Core<R>, now: MonotonicTime) -> bool {
        self.seen.as_ref().is_some_and(|seen| now - seen.shown <= core.renew())
    }

    /// Whether it has shown nothing new for W.
    pub(super) fn is_silent<R: SessionRules>(&self, core: &Core<R>, now: MonotonicTime) -> bool {
        self.kill_at(core, now).is_some_and(|kill_at| kill_at <= now)
    }

    /// What stands there is looked at again as soon as possible.
    pub(super) fn hurry(&mut self, now: MonotonicTime) {
        self.read_at = self.read_at.min(now);
    }

    pub(super) fn request(&self) -> Option<RequestId> {
        self.flight
    }

    /// When it has something to send next.
    pub(super) fn due<R: SessionRules>(
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
    pub(super) fn act<R: SessionRules>(
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

    /// The answer to a read, a tombstone or a kill.
    pub(super) fn answered<R: SessionRules>(
        &mut self,
        instance: &InstanceId,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) -> News {
        self.flight = None;
        let ending = self.ending.take();
        let error = match (reply, flight.attempted, ending) {
            (Reply::Session(sighting), Attempted::Read, _) => {
                match self.read(core, sighting, flight.sent.monotonic, now) {
                    Some(news) => return news,
                    None => StoreErrorKind::InDoubt,
                }
            }
            (Reply::Written(version), Attempted::Kill | Attempted::Tombstone, Some(life)) => {
                return self.wrote(instance, core, flight.attempted, life, version, now);
            }
            (Reply::Failed(error), ..) => error,
            _ => StoreErrorKind::InDoubt,
        };
        self.failed(core, flight, error, now)
    }

    fn failed<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        flight: &Flight,
        error: StoreErrorKind,
        now: MonotonicTime,
    ) -> News {
        let soon = now + core.retry();
        let is_late = flight.until <= now;
        let is_refused = error == StoreErrorKind::Precondition;
        if !is_refused {
            core.failed(flight.slot.object(), flight.attempted, error);
        }
        match (flight.attempted, error) {
            (Attempted::Read, _) => self.read_at = soon,
            (_, StoreErrorKind::Unavailable) => self.pause = Pause::Until(soon),
            _ => {
                // Something else may stand there, or one's own: a read tells.
                self.pause = Pause::Read { restarts: is_refused };
                self.read_at = if is_refused || is_late { now } else { soon };
            }
        }
        News::Failed(error)
    }

    fn read<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        sighting: Sighting<SessionFacts>,
        sent: MonotonicTime,
        now: MonotonicTime,
    ) -> Option<News> {
        let (version, verdict, facts) = match sighting {
            Sighting::Missing => (None, Verdict::Unreadable, None),
            Sighting::Found { version, verdict, facts, .. } => (Some(version), verdict, facts),
            Sighting::NotModified => {
                let seen = self.seen.as_ref().filter(|seen| seen.version.is_some())?;
                (seen.version.clone(), seen.verdict, seen.facts.clone())
            }
        };
        let restarts = self.pause == Pause::Read { restarts: true };
        self.pause = Pause::No;
        self.read_at = sent + core.renew();
        Some(self.see(core, version, verdict, facts, restarts, now))
    }

    fn see<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        version: Option<Version>,
        verdict: Verdict,
        facts: Option<Arc<SessionFacts>>,
        restarts: bool,
        now: MonotonicTime,
    ) -> News {
        let before = self.seen.take();
        let gap = core.renew() * 2;
        let same = before.as_ref().filter(|before| {
            before.version == version
                && !restarts
                && (now - before.shown <= gap || !R::BLIND_GAP_RESTARTS)
        });
        let (since, jitter) = match same {
            Some(before) => (before.since, before.jitter),
            None => {
                let lag = before.as_ref().map_or(Duration::ZERO, |before| now - before.shown);
                (now, core.draw_jitter(lag))
            }
        };
        let ttl = facts.as_ref().map(|facts| facts.lease.ttl);
        let is_believed = version.is_some() && core.own.machine.learn_beside(verdict, ttl, now);
        let shown =
            facts.as_ref().filter(|_| is_believed || !R::UNACCEPTABLE_SESSION_FREES_NOTHING);
        let mut ended = shown.and_then(|facts| Ended::shown_by::<R>(facts));
        if version.is_none() && !R::MISSING_SESSION_GETS_A_TOMBSTONE {
            ended = self.lives().max_by_key(|life| life.epoch).map(Ended::with);
        }
        self.seen = Some(Seen { version, verdict, facts, since, shown: now, jitter });
        match ended {
            Some(ended) if self.learn_ended::<R>(ended) => News::Freed,
            _ => News::None,
        }
    }

    /// True if it is news.
    fn learn_ended<R: SessionRules>(&mut self, ended: Ended) -> bool {
        let merged = Ended::merge(self.ended, ended);
        let is_news = self.ended.replace(merged) != Some(merged);
        if is_news {
            self.unfreed = self.lives().filter(|life| !merged.covers::<R>(*life)).count();
        }
        is_news
    }

    /// A kill or a tombstone of one's own is in the store. Its version was not read, but is known.
    fn wrote<R: SessionRules>(
        &mut self,
        instance: &InstanceId,
        core: &mut Core<R>,
        attempted: Attempted,
        life: Life,
        version: Version,
        now: MonotonicTime,
    ) -> News {
        core.own.machine.learn_authenticated();
        let state = match attempted {
            Attempted::Tombstone => SessionState::Tombstone,
            _ => SessionState::Killed,
        };
        let verdict = own_verdict(&core.config);
        let ttl = core.config.timing.ttl();
        let lease = Facts::new(None, life.epoch, 1, None, ttl);
        let facts = Arc::new(SessionFacts { lease, life: life.nonce, state });
        self.pause = Pause::No;
        self.read_at = now + core.renew();
        let news = self.see(core, Some(version), verdict, Some(facts), true, now);
        if state == SessionState::Tombstone {
            return news;
        }
        core.events.push_back(Event::Killed { instance: instance.clone(), life });
        News::Ended
    }

    /// For a machine that lacks the rule to kill first: everything under a silent session is free.
    pub(super) fn skip_kill<R: SessionRules>(
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

/// What one's own records read as.
fn own_verdict(config: &Config) -> Verdict {
    if config.has_secret { Verdict::Authentic } else { Verdict::Unsigned }
}
