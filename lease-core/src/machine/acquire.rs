//! Taking the lease: one write, and what its answer, or the lack of one, means.

use super::{
    Transition,
    core::{Core, LastSnapshot, OwnWrite},
    event::{Attempted, Event, Predecessor, WaitReason, Waiting},
    holding::Taken,
    inherited::Inherited,
    io::{Action, Draft, Entropy, Request, RequestId},
    rules::Rules,
    seen::Seen,
    standby::{Poll, Standby},
};
use crate::store::{StoreErrorKind, Version};
use fencing::{MonotonicTime, Reading};
use std::time::Duration;

/// The most acquisitions in doubt that are remembered; forgetting one only means not adopting it.
const MAX_DOUBTS: usize = 64;

/// What a failed acquisition asks of the next read, before which nothing is taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(super) enum Recheck {
    #[default]
    No,
    /// What was seen may well be there still, and then the wait for it is over.
    Read,
    /// Something else was there: what is seen now counts from now.
    Restart,
}

/// An acquisition that was sent.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Acquisition {
    pub(super) write: OwnWrite,
    pub(super) hold_back: Option<Duration>,
    pub(super) predecessor: Predecessor,
    pub(super) last_snapshot: LastSnapshot,
    pub(super) inherited: Inherited,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Attempt {
    pub(super) id: RequestId,
    pub(super) acquisition: Acquisition,
}

impl Standby {
    pub(super) fn take<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: Reading,
        entropy: &mut dyn Entropy,
        hold_back: Option<Duration>,
        predecessor: Predecessor,
    ) -> Option<Action> {
        // Numbers are told apart by the second. A lease that is taken, deleted and created within one
        // second, by clocks that agree to a second, still gives two: what is held back opens later.
        let opens_at = match hold_back {
            Some(_) => now.wall + Duration::from_secs(2),
            None => now.wall,
        };
        let Ok(epoch) = core.known.next_epoch(&core.config, opens_at) else {
            core.emit(Event::EpochsExhausted);
            let until = Some(now.monotonic + core.config.timing.ttl());
            self.pause = Some(Waiting { reason: WaitReason::EpochFloor, until });
            return None;
        };
        if let Poll::Sent { id, .. } = self.poll {
            // An answer from before the write would tell nothing of it.
            core.forget(id);
        }
        self.poll = Poll::Due(now.monotonic);
        let seen = self.seen.as_ref()?;
        let draft = Draft {
            held: true,
            epoch,
            seq: 1,
            nonce: entropy.nonce(),
            renewed_at: now.wall,
            sign: predecessor.is_trusted(),
            last_snapshot: seen.last_snapshot(core),
        };
        core.known.wrote(draft.epoch, draft.nonce);
        let id = core.next_id();
        let acquisition = Acquisition {
            write: OwnWrite::of(&draft, now),
            hold_back,
            predecessor,
            last_snapshot: draft.last_snapshot.clone(),
            inherited: Inherited::of(seen, core),
        };
        self.attempt = Some(Attempt { id, acquisition });
        let request = match seen.version() {
            None => Request::Create(draft),
            Some(version) => Request::Replace(draft, version.clone()),
        };
        Some(Action::Send(id, request))
    }

    pub(super) fn written<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        result: Result<Version, StoreErrorKind>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let Attempt { acquisition, .. } = self.attempt.take_if(|attempt| attempt.id == id)?;
        let soon = now + core.config.timing.retry();
        self.recheck = Recheck::Read;
        match result {
            Ok(version) => return Some(Self::taken(core, acquisition, version, now)),
            Err(StoreErrorKind::Unsupported) => return Some(Transition::Refuse),
            Err(StoreErrorKind::Precondition) => {
                self.recheck = Recheck::Restart;
                core.known.learn_of_others();
                self.poll = Poll::Due(now);
            }
            Err(StoreErrorKind::Contended) => self.poll = Poll::Due(soon),
            Err(error @ StoreErrorKind::Unavailable) => {
                core.failed(Attempted::Acquisition, error);
                self.poll = Poll::Due(soon);
            }
            Err(error @ (StoreErrorKind::InDoubt | StoreErrorKind::Corrupt)) => {
                core.failed(Attempted::Acquisition, error);
                self.in_doubt(core, acquisition);
                self.poll = Poll::Due(soon);
            }
        }
        None
    }

    /// An acquisition in doubt that turns out to have landed, if it may still be adopted.
    pub(super) fn landed<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        seen: &Seen,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let window = core.window();
        self.doubts.retain(|doubt| now < doubt.write.sent.monotonic + window);
        if !core.wanted || core.stopping || core.kept_out(now).is_some() {
            return None;
        }
        let (version, verdict, facts) = (seen.version()?, seen.verdict()?, seen.facts()?);
        let is_shown = |it: &Acquisition| it.write.is_shown_by::<R>(&core.config, verdict, facts);
        let found = self.doubts.iter().position(is_shown)?;
        if core.known.highest_epoch() > Some(facts.epoch) {
            // Somebody held the lease since: it was deleted, and this landed late.
            return None;
        }
        let acquisition = self.doubts.swap_remove(found);
        Some(Self::taken(core, acquisition, version.clone(), now))
    }

    pub(super) fn taken<R: Rules>(
        core: &mut Core<R>,
        acquisition: Acquisition,
        version: Version,
        now: MonotonicTime,
    ) -> Transition {
        core.known.no_more_reclaims();
        let Acquisition { write, hold_back, predecessor, last_snapshot, inherited } = acquisition;
        Transition::Take(Taken {
            write,
            version,
            // Counted from when it is known that the lease is ours, not from when it was asked for.
            held_back_until: hold_back.map(|hold_back| now + hold_back),
            predecessor,
            last_snapshot,
            inherited,
        })
    }

    pub(super) fn in_doubt<R: Rules>(&mut self, core: &mut Core<R>, acquisition: Acquisition) {
        // Whatever comes of it, no later acquisition may use its number again.
        core.known.tried_epoch(acquisition.write.epoch);
        if self.doubts.len() == MAX_DOUBTS {
            self.doubts.remove(0);
        }
        self.doubts.push(acquisition);
        self.recheck = Recheck::Read;
    }
}
