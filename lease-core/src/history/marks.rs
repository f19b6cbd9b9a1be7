//! What is remembered of one cluster.

use crate::record::{Nonce, SnapshotMark, TenureMark, Ttl};
use fencing::{Epoch, durable::FileIdentity};

/// What one instance remembers of one cluster. Empty by default.
///
/// ```
/// use lease_core::{fencing::Epoch, history::History};
///
/// let mut history = History::default();
/// assert!(history.is_empty());                    // a first start: `FirstStart::Immediate` counts
/// history.last_epoch = Epoch::new(7);
/// assert!(!history.is_empty());                   // every epoch from here on is above 7
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct History {
    /// The last epoch that this instance held, opened or not. Never lowered.
    pub last_epoch: Option<Epoch>,
    /// The last epoch whose fence this instance opened, and where; `None` once there is nothing to
    /// take back. Never replaced by an epoch below `last_epoch`.
    pub opened: Option<Opened>,
    /// The nonce of the release that this instance wrote last: who finds that very release in the
    /// store knows that it is the latest word.
    pub last_release: Option<Nonce>,
    /// Whether this instance ever read or wrote an authenticated lease of the cluster. From then on
    /// an unsigned one is not believed (see [`acceptable`](crate::auth::acceptable)). Never unset.
    pub seen_authenticated_lease: bool,
    /// The newest snapshot that this instance wrote or restored, the high-water mark of its own
    /// database: nothing older is restored here without an operator. Set it after the fact, when the
    /// snapshot is stored or the restored database in its place. Never lowered, but by
    /// [`InstanceDir::forced_takeover`](super::InstanceDir::forced_takeover).
    pub newest_snapshot: Option<SnapshotMark>,
    /// The newest snapshot that an authentic lease named which this instance read. A manager sets it.
    /// Never lowered, but by [`InstanceDir::forced_takeover`](super::InstanceDir::forced_takeover).
    pub newest_named_snapshot: Option<SnapshotMark>,
    /// The largest ttl of an acceptable record that may still count (protocol, section 2). No mark:
    /// it is lowered once that ttl has passed.
    pub largest_ttl: Option<Ttl>,
}

impl History {
    /// Whether nothing is remembered: this instance never had anything to do with the cluster.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes back what lowers a mark of `before`.
    pub(super) fn never_below(&mut self, before: &Self) {
        let epoch = |history: &Self| history.opened.as_ref().map(|opened| opened.tenure.epoch);
        let is_old = epoch(self).is_some_and(|epoch| Some(epoch) < before.last_epoch);
        if is_old && self.opened != before.opened {
            self.opened.clone_from(&before.opened);
        }
        // An epoch that was opened was held.
        self.last_epoch = self.last_epoch.max(before.last_epoch).max(epoch(self));
        self.seen_authenticated_lease |= before.seen_authenticated_lease;
        raise(&mut self.newest_snapshot, before.newest_snapshot.as_ref());
        raise(&mut self.newest_named_snapshot, before.newest_named_snapshot.as_ref());
    }

    pub(super) fn force(&mut self, forced: Forced) {
        if let Forced::Restored(mark) = forced {
            self.newest_snapshot = Some(mark);
        }
        // What a lease named counts for nothing now: the operator has looked at it.
        self.newest_named_snapshot.clone_from(&self.newest_snapshot);
    }
}

fn raise(mark: &mut Option<SnapshotMark>, least: Option<&SnapshotMark>) {
    if mark.as_ref() < least {
        *mark = least.cloned();
    }
}

/// What an operator decided when a takeover had been refused as a suspected rollback.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Forced {
    /// The instance's own database is kept.
    KeptOwnDatabase,
    /// This snapshot was restored, however old it is.
    Restored(SnapshotMark),
}

/// Under which circumstances a fence was opened, as
/// [`InstanceDir::opening`](super::InstanceDir::opening) finds them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Opened {
    /// Of which tenure.
    pub tenure: TenureMark,
    /// The boot of the machine; `None` where the platform tells none, and nothing is taken back
    /// after a restart.
    pub boot_id: Option<String>,
    /// The lock file of the instance directory.
    pub lock: FileIdentity,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Label, TenureTag};

    fn mark(epoch: u64, second: u32) -> Option<SnapshotMark> {
        let at = Label::new(&format!("2026-10-12T09:58:{second:02}.517Z")).unwrap();
        Some(SnapshotMark { epoch: Epoch::new(epoch)?, at })
    }

    #[test]
    fn the_marks_of_snapshots_only_go_up_by_epoch_then_by_time() {
        let before = History {
            newest_snapshot: mark(9, 30),
            newest_named_snapshot: mark(7, 1),
            ..History::default()
        };
        for (newest, named, newest_after, named_after) in [
            (None, None, mark(9, 30), mark(7, 1)),
            (mark(9, 29), mark(7, 0), mark(9, 30), mark(7, 1)),
            (mark(8, 59), mark(7, 2), mark(9, 30), mark(7, 2)),
            (mark(10, 0), mark(10, 0), mark(10, 0), mark(10, 0)),
        ] {
            let mut after = History {
                newest_snapshot: newest,
                newest_named_snapshot: named,
                ..History::default()
            };
            after.never_below(&before);
            assert_eq!(after.newest_snapshot, newest_after);
            assert_eq!(after.newest_named_snapshot, named_after);
        }
    }

    #[test]
    fn an_operator_lowers_both_marks() {
        let before = History {
            last_epoch: Epoch::new(12),
            newest_snapshot: mark(9, 30),
            newest_named_snapshot: mark(11, 1),
            ..History::default()
        };
        let mut restored = before.clone();
        restored.force(Forced::Restored(mark(8, 0).unwrap()));
        let both = (mark(8, 0), mark(8, 0));
        assert_eq!((restored.newest_snapshot, restored.newest_named_snapshot), both);
        assert_eq!(restored.last_epoch, Epoch::new(12), "nothing else is lowered");
        let mut kept = before;
        kept.force(Forced::KeptOwnDatabase);
        assert_eq!((kept.newest_snapshot, kept.newest_named_snapshot), (mark(9, 30), mark(9, 30)));
    }

    fn opened(epoch: u64, ino: u64) -> Option<Opened> {
        let lock = FileIdentity { dev: 1, ino };
        let tenure = TenureMark { epoch: Epoch::new(epoch)?, tag: TenureTag::from_bytes([7; 8]) };
        Some(Opened { tenure, boot_id: None, lock })
    }

    #[test]
    fn marks_only_go_up() {
        let before = History {
            last_epoch: Epoch::new(7),
            opened: opened(6, 1),
            seen_authenticated_lease: true,
            largest_ttl: Some(Ttl::MAX),
            ..History::default()
        };
        let mut after = History::default();
        after.never_below(&before);
        assert_eq!(after.last_epoch, Epoch::new(7));
        assert!(after.seen_authenticated_lease);
        assert_eq!((after.opened, after.largest_ttl), (None, None), "these are no marks");

        let mut lower =
            History { last_epoch: Epoch::new(3), opened: opened(5, 2), ..before.clone() };
        lower.never_below(&before);
        assert_eq!(lower, before);

        let mut late = History { opened: None, ..before.clone() };
        late.opened = opened(6, 1);
        late.never_below(&History { opened: None, ..before.clone() });
        assert_eq!(late.opened, None, "epoch 7 was held since");

        let mut higher = History { opened: opened(9, 2), ..before.clone() };
        higher.never_below(&before);
        assert_eq!((higher.last_epoch, higher.opened), (Epoch::new(9), opened(9, 2)));
    }
}
