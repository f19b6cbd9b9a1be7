//! What both sides of the machine share: choices, knowledge, and what waits to be polled.

use super::{
    config::{Config, Past},
    event::{Attempted, Event, Predecessor},
    inherited::Inherited,
    io::{Action, Draft, Facts, FenceOrder, Note, RequestId},
    known::Known,
    rules::Rules,
};
use crate::{
    auth::Verdict,
    record::{Nonce, SnapshotMark},
    store::StoreErrorKind,
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::{collections::VecDeque, sync::Arc, time::Duration};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Core<R> {
    pub(super) config: Arc<Config>,
    pub(super) known: Known<R>,
    /// Somebody wants the lease; a standby that is not wanted only watches.
    pub(super) wanted: bool,
    /// The machine stops once no tenure is left.
    pub(super) stopping: bool,
    /// A lease of one's own that is taken again at once: its epoch was too low to open its fence.
    pub(super) retaking: Option<Retaking>,
    /// No acquisition before this time.
    pub(super) keep_out: Option<KeepOut>,
    actions: VecDeque<Action>,
    events: VecDeque<Event>,
    last_id: u64,
    jitter: u64,
    /// Marks that are not on disk yet, and the request that is writing them.
    unwritten: Note,
    writing: Option<(RequestId, Note)>,
    write_again: Option<MonotonicTime>,
}

/// What was taken over under an epoch that turned out to be too low.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Retaking {
    pub(super) epoch: Epoch,
    pub(super) predecessor: Predecessor,
    pub(super) inherited: Inherited,
}

/// Why and until when a process keeps out of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct KeepOut {
    pub(super) until: MonotonicTime,
    pub(super) after_abandon: bool,
}

impl<R: Rules> Core<R> {
    pub(super) fn new(config: Config, past: Past, now: MonotonicTime) -> Self {
        let jitter = config.jitter_seed.unwrap_or(0);
        Self {
            config: Arc::new(config),
            known: Known::new(past, now),
            wanted: false,
            stopping: false,
            retaking: None,
            keep_out: None,
            actions: VecDeque::new(),
            events: VecDeque::new(),
            last_id: 0,
            jitter,
            unwritten: Note::default(),
            writing: None,
            write_again: None,
        }
    }

    pub(super) fn window(&self) -> Duration {
        let timing = &self.config.timing;
        if R::MARGIN_AT_LEAST_A_FIFTH { timing.window() } else { timing.ttl() - timing.renew() }
    }

    pub(super) fn next_id(&mut self) -> RequestId {
        self.last_id += 1;
        RequestId(self.last_id)
    }

    pub(super) fn emit(&mut self, event: Event) {
        self.events.push_back(event);
    }

    pub(super) fn failed(&mut self, attempted: Attempted, error: StoreErrorKind) {
        self.emit(Event::StoreFailed { attempted, error });
    }

    pub(super) fn fence(&mut self, order: FenceOrder) {
        self.actions.push_back(Action::Fence(order));
    }

    pub(super) fn forget(&mut self, id: RequestId) {
        self.actions.push_back(Action::Forget(id));
    }

    /// Writes a note that something waits for. Without a history there is nothing to wait for.
    pub(super) fn persist(&mut self, note: Note) -> Option<RequestId> {
        if !self.config.has_history {
            return None;
        }
        let id = self.next_id();
        self.actions.push_back(Action::Persist(id, note));
        Some(id)
    }

    /// Writes marks that nothing waits for; tried again until they are on disk.
    pub(super) fn persist_marks(&mut self, seen_authenticated: bool, ttl: Option<Duration>) {
        self.unwritten.seen_authenticated |= seen_authenticated;
        self.unwritten.largest_ttl = self.unwritten.largest_ttl.max(ttl);
    }

    /// Marks that are not certainly on disk.
    pub(super) fn unwritten_marks(&self) -> Note {
        self.unwritten.clone()
    }

    pub(super) fn next_action(&mut self, now: MonotonicTime) -> Option<Action> {
        let is_due = self.write_again.is_none_or(|again| again <= now);
        if self.unwritten != Note::default() && self.writing.is_none() && is_due {
            let note = self.unwritten.clone();
            match self.persist(note.clone()) {
                Some(id) => self.writing = Some((id, note)),
                None => self.unwritten = Note::default(),
            }
        }
        self.actions.pop_front()
    }

    pub(super) fn has_actions(&self) -> bool {
        !self.actions.is_empty()
    }

    /// True if this was the answer to a write of marks.
    pub(super) fn marks_persisted(&mut self, id: RequestId, ok: bool, now: MonotonicTime) -> bool {
        let Some((_, note)) = self.writing.take_if(|(writing, _)| *writing == id) else {
            return false;
        };
        if !ok {
            self.failed(Attempted::History, StoreErrorKind::Unavailable);
            self.write_again = Some(now + self.config.timing.renew());
        } else {
            self.write_again = None;
            // Marks noted meanwhile are written with the next note.
            if self.unwritten == note {
                self.unwritten = Note::default();
            }
        }
        true
    }

    pub(super) fn marks_due(&self) -> Option<MonotonicTime> {
        self.write_again.filter(|_| self.writing.is_none())
    }

    /// Takes in the verdict and the content of what a read found.
    pub(super) fn learn_sighting(
        &mut self,
        verdict: Verdict,
        facts: Option<&Facts>,
        now: MonotonicTime,
    ) {
        if verdict == Verdict::Authentic {
            self.learn_authenticated();
            let named = facts.and_then(|facts| facts.last_snapshot.as_ref());
            if let Some(mark) = named.filter(|mark| self.known.learn_named(mark)) {
                self.unwritten.newest_named_snapshot = Some(mark.clone());
            }
        }
        match facts.filter(|_| self.known.accepts(&self.config, verdict)) {
            None => self.known.learn_unacceptable(facts),
            Some(facts) => {
                let largest = self.known.learn(facts, now);
                self.note_ttl(largest);
            }
        }
    }

    fn note_ttl(&mut self, largest: Option<Duration>) {
        let own = self.config.timing.ttl();
        self.persist_marks(false, largest.filter(|ttl| *ttl > own));
    }

    /// Takes in the verdict and the ttl of another record of the cluster. Whether it can be believed.
    pub(super) fn learn_beside(
        &mut self,
        verdict: Verdict,
        ttl: Option<Duration>,
        now: MonotonicTime,
    ) -> bool {
        if verdict == Verdict::Authentic {
            self.learn_authenticated();
        }
        let is_accepted = self.known.accepts(&self.config, verdict);
        if let Some(ttl) = ttl.filter(|_| is_accepted) {
            let largest = self.known.learn_ttl(ttl, now);
            self.note_ttl(largest);
        }
        is_accepted
    }

    /// Something authenticated was seen or written: from now on unsigned ones are refused.
    pub(super) fn learn_authenticated(&mut self) {
        if self.config.has_secret && self.known.learn_authenticated() {
            self.persist_marks(true, None);
        }
    }

    /// What authenticated snapshots prove. That there are any is as good as an authenticated lease.
    pub(super) fn learn_floor(&mut self, floor: Option<Epoch>) {
        self.known.learn_floor(floor);
        if floor.is_some() {
            self.known.learn_of_others();
            self.learn_authenticated();
        }
    }

    pub(super) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    pub(super) fn kept_out(&self, now: MonotonicTime) -> Option<KeepOut> {
        self.keep_out.filter(|keep_out| now < keep_out.until)
    }

    /// Up to R/10, later only, so that many standbys do not fire at once. `lag`: how long before now
    /// what is seen may have been written; with the spread that stays within R, so that a takeover
    /// comes within T + R of it.
    pub(super) fn draw_jitter(&mut self, lag: Duration) -> Duration {
        if self.config.jitter_seed.is_none() {
            return Duration::ZERO;
        }
        // SplitMix64: its only task is to differ between instances.
        self.jitter = self.jitter.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.jitter;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let timing = &self.config.timing;
        let left = timing.renew().saturating_sub(lag);
        let most = left.clamp(timing.retry() / 10, timing.retry());
        Duration::from_nanos(mixed % u64::try_from(most.as_nanos()).unwrap_or(u64::MAX).max(1))
    }
}

/// A write of this process that may have landed, or may land yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct OwnWrite {
    pub(super) epoch: Epoch,
    pub(super) seq: u64,
    pub(super) nonce: Nonce,
    pub(super) signed: bool,
    /// When it was sent: what it proves, it proves from here.
    pub(super) sent: Reading,
}

impl OwnWrite {
    pub(super) fn of(draft: &Draft, sent: Reading) -> Self {
        let Draft { epoch, seq, nonce, sign: signed, .. } = *draft;
        Self { epoch, seq, nonce, signed, sent }
    }

    /// Whether these facts are of this very write. The nonce makes it a fact: two clones of one
    /// instance can write equal bytes otherwise. What was changed since has another verdict.
    pub(super) fn is_shown_by<R: Rules>(
        &self,
        config: &Config,
        verdict: Verdict,
        facts: &Facts,
    ) -> bool {
        let written_as = match config.has_secret && self.signed {
            true => Verdict::Authentic,
            false => Verdict::Unsigned,
        };
        verdict == written_as
            && facts.holder.as_ref() == Some(&config.instance)
            && facts.epoch == self.epoch
            && facts.seq == self.seq
            && (facts.nonce == Some(self.nonce) || !R::NONCE_DECIDES)
    }
}

/// The snapshot that a lease names, handed from lease to lease.
pub(super) type LastSnapshot = Option<SnapshotMark>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{key::InstanceId, machine::rules::Protocol, timing::Timing};

    /// What may have been there unseen, and the spread behind it, stay within R together.
    #[test]
    fn the_spread_takes_only_what_is_left_of_r() {
        let (ttl, renew) = (Duration::from_secs(10), Duration::from_secs(2));
        let timing = Timing::short(ttl, renew).unwrap();
        let mut config = Config::new(InstanceId::new("a").unwrap(), timing);
        config.jitter_seed = Some(7);
        let mut core = Core::<Protocol>::new(config, Past::default(), MonotonicTime::default());
        for (lag_ms, most_ms) in [(0, 200), (1_800, 200), (1_900, 100), (2_000, 20), (9_000, 20)] {
            let lag = Duration::from_millis(lag_ms);
            let drawn: Vec<_> = (0..500).map(|_| core.draw_jitter(lag)).collect();
            let (least, most) = (drawn.iter().min().unwrap(), drawn.iter().max().unwrap());
            let bound = Duration::from_millis(most_ms);
            assert!(
                *most < bound && *most > bound / 2,
                "{most:?} of {bound:?} at a lag of {lag:?}"
            );
            assert!(*least < bound / 4, "{least:?} of {bound:?} at a lag of {lag:?}");
        }
    }
}
