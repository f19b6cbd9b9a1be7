//! What one process knows beyond a single tenure: epochs, ttls, its own nonces.

use super::{
    config::{Config, EpochOrigin, Past},
    io::Facts,
    rules::Rules,
};
use crate::{
    auth::{self, Verdict},
    record::{Nonce, SnapshotMark},
    timing::Timing,
};
use fencing::{Epoch, MonotonicTime, WallTime, source::clock_floor, token::EpochsExhausted};
use std::{collections::VecDeque, marker::PhantomData, time::Duration};

/// How many ttls and how many nonces are remembered.
const REMEMBERED: usize = 16;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Known<R> {
    past: Past,
    /// The highest epoch of any acceptable record, of the history, and of one's own tenures.
    highest: Option<Epoch>,
    /// The highest epoch of an acquisition in doubt: taken, perhaps, but not known to be in use.
    tried: Option<Epoch>,
    /// The highest epoch that authenticated snapshots prove, as last told.
    floor: Option<Epoch>,
    seen_authenticated: bool,
    /// Ttls that acceptable records said, each with when that was last read.
    ttls: VecDeque<(Duration, MonotonicTime)>,
    /// The last writes of this process.
    written: VecDeque<(Epoch, Nonce)>,
    /// The highest epoch of a write that is not remembered any more.
    forgotten: Option<Epoch>,
    /// The nonces of the releases that this instance wrote and that history or memory shows.
    released: Option<Nonce>,
    /// Nothing of the cluster was ever seen or written: not by this process, nor in its history, nor
    /// among the cluster's snapshots.
    untouched: bool,
    rules: PhantomData<R>,
}

impl<R: Rules> Known<R> {
    pub(super) fn new(past: Past, now: MonotonicTime) -> Self {
        // The history says no time that this boot can compare with: a remembered ttl counts as just
        // read, which can only lengthen a wait.
        let ttls = past.largest_ttl.map(|ttl| (ttl, now)).into_iter().collect();
        Self {
            highest: past.last_epoch,
            tried: None,
            floor: None,
            seen_authenticated: past.seen_authenticated,
            ttls,
            written: VecDeque::new(),
            forgotten: None,
            released: past.last_release,
            untouched: past.is_empty(),
            past,
            rules: PhantomData,
        }
    }

    /// Whether a record with this verdict can be believed (protocol, section 6).
    pub(super) fn accepts(&self, config: &Config, verdict: Verdict) -> bool {
        auth::acceptable(verdict, config.has_secret, self.seen_authenticated)
    }

    /// Notes what an acceptable record says. Returns the ttl if no remembered one is as large.
    pub(super) fn learn(&mut self, facts: &Facts, now: MonotonicTime) -> Option<Duration> {
        if R::EPOCH_IS_ABOVE_WHAT_WAS_SEEN {
            self.learn_epoch(facts.epoch);
        }
        self.untouched = false;
        self.learn_ttl(facts.ttl, now)
    }

    /// Notes a ttl of the cluster. Returns it if no remembered one is as large.
    pub(super) fn learn_ttl(&mut self, said: Duration, now: MonotonicTime) -> Option<Duration> {
        self.forget_old_ttls(now);
        let is_largest = self.ttls.iter().all(|(ttl, _)| *ttl < said);
        // An entry that is not larger and not later than another decides nothing.
        self.ttls.retain(|(ttl, _)| *ttl > said);
        if self.ttls.len() < REMEMBERED {
            self.ttls.push_back((said, now));
        } else if let Some((_, read)) = self.ttls.back_mut() {
            // No room: a larger ttl stands for this one, which can only lengthen a wait.
            *read = now;
        }
        is_largest.then_some(said)
    }

    /// Notes the epoch of an acceptable record or of one's own tenure.
    pub(super) fn learn_epoch(&mut self, epoch: Epoch) {
        self.highest = self.highest.max(Some(epoch));
        self.untouched = false;
    }

    /// Notes an acquisition in doubt: whatever comes of it, no later one may have its number.
    pub(super) fn tried_epoch(&mut self, epoch: Epoch) {
        self.tried = self.tried.max(Some(epoch));
    }

    /// Notes that somebody has written the lease, or a snapshot of the cluster.
    pub(super) fn learn_of_others(&mut self) {
        self.untouched = false;
    }

    /// Notes that something stands under the key that cannot be believed.
    pub(super) fn learn_unacceptable(&mut self, facts: Option<&Facts>) {
        self.learn_of_others();
        if !R::UNACCEPTABLE_EPOCHS_ARE_IGNORED
            && let Some(facts) = facts
        {
            self.learn_epoch(facts.epoch);
        }
    }

    /// Notes a snapshot that an authentic lease names. True if it is newer than all before.
    pub(super) fn learn_named(&mut self, mark: &SnapshotMark) -> bool {
        let is_newer = Some(mark) > self.past.newest_named_snapshot.as_ref();
        if is_newer {
            self.past.newest_named_snapshot = Some(mark.clone());
        }
        is_newer
    }

    /// Notes an authenticated lease. True the first time.
    pub(super) fn learn_authenticated(&mut self) -> bool {
        !std::mem::replace(&mut self.seen_authenticated, true)
    }

    pub(super) fn has_seen_authenticated(&self) -> bool {
        self.seen_authenticated
    }

    pub(super) fn learn_floor(&mut self, floor: Option<Epoch>) {
        self.floor = self.floor.max(floor);
    }

    /// The highest epoch known from anywhere.
    pub(super) fn highest_epoch(&self) -> Option<Epoch> {
        self.highest.max(self.floor)
    }

    /// The epoch of an acquisition at `wall`.
    pub(super) fn next_epoch(
        &self,
        config: &Config,
        wall: WallTime,
    ) -> Result<Epoch, EpochsExhausted> {
        let above = match self.highest_epoch().max(self.tried) {
            Some(highest) => highest.next()?,
            None => Epoch::MIN,
        };
        match config.epochs {
            EpochOrigin::Clock if R::CLOCK_IS_A_FLOOR => Ok(above.max(clock_floor(wall))),
            EpochOrigin::Clock | EpochOrigin::Counter => Ok(above),
        }
    }

    /// W for an acceptable lease that says `ttl`. Never below the largest of the cluster: the holder that
    /// acts may be another than the one whose record stands there.
    pub(super) fn wait(&self, timing: &Timing, ttl: Duration, now: MonotonicTime) -> Duration {
        let is_recent = |(ttl, read): &&(Duration, MonotonicTime)| now - *read < *ttl;
        let remembered = self.ttls.iter().filter(is_recent).map(|(ttl, _)| *ttl);
        let remembered = remembered.filter(|_| R::WAIT_COVERS_THE_RECORDS_TTL);
        let told = if R::WAIT_COVERS_THE_RECORDS_TTL { ttl } else { timing.ttl() };
        let largest = if R::WAIT_COVERS_THE_CLUSTERS_TTL { timing.max_cluster_ttl() } else { told };
        remembered.chain([told, largest, timing.ttl()]).max().unwrap_or(ttl).min(Timing::MAX_TTL)
    }

    /// W where the lease tells no ttl: it is missing, or cannot be believed.
    pub(super) fn wait_unknown(&self, timing: &Timing, now: MonotonicTime) -> Duration {
        self.wait(timing, timing.ttl(), now)
    }

    /// Whether this is of the tenure that the history shows as opened under today's lock file. The
    /// epoch alone does not tell: a clone that met the lease deleted can hold the same one.
    pub(super) fn reclaimable(&self, facts: &Facts) -> bool {
        if !R::RECLAIM_ONLY_WHAT_WAS_OPENED {
            return true;
        }
        self.past.reclaimable.is_some_and(|opened| {
            let tag = facts.nonce.map(|nonce| nonce.tenure());
            opened.epoch == facts.epoch
                && (tag == Some(opened.tag) || !R::RECLAIM_ONLY_ONES_OWN_TENURE)
        })
    }

    /// A reclaim is for the first tenure of a process only.
    pub(super) fn no_more_reclaims(&mut self) {
        self.past.reclaimable = None;
    }

    /// Nothing of the cluster is known, from anywhere.
    pub(super) fn is_untouched(&self) -> bool {
        self.untouched
    }

    pub(super) fn wrote(&mut self, epoch: Epoch, nonce: Nonce) {
        if self.written.len() == REMEMBERED {
            let oldest = self.written.pop_front();
            self.forgotten = self.forgotten.max(oldest.map(|(epoch, _)| epoch));
        }
        self.written.push_back((epoch, nonce));
    }

    /// Whether this process wrote the version that these facts are of, as far as it remembers.
    pub(super) fn is_own_write(&self, facts: &Facts) -> bool {
        facts.nonce.is_some_and(|nonce| self.written.contains(&(facts.epoch, nonce)))
    }

    /// Whether it wrote that version, or may have and has forgotten.
    pub(super) fn may_be_own_write(&self, facts: &Facts) -> bool {
        self.is_own_write(facts) || Some(facts.epoch) <= self.forgotten
    }

    /// Whether an own id on this record is what an earlier process of this instance left behind.
    pub(super) fn is_from_own_past(&self, facts: &Facts) -> bool {
        self.past.last_epoch.is_some_and(|last| facts.epoch <= last)
    }

    pub(super) fn released_with(&mut self, nonce: Nonce) {
        self.released = Some(nonce);
    }

    /// Whether the history (or this process) shows that this instance wrote this very release.
    pub(super) fn is_own_release(&self, facts: &Facts) -> bool {
        facts.nonce.is_some() && facts.nonce == self.released
    }

    fn forget_old_ttls(&mut self, now: MonotonicTime) {
        self.ttls.retain(|(ttl, read)| now - *read < *ttl);
    }
}
