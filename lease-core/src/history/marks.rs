//! What is remembered of one cluster.

use crate::record::{Nonce, Ttl};
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
        let epoch = |history: &Self| history.opened.as_ref().map(|opened| opened.epoch);
        let is_old = epoch(self).is_some_and(|epoch| Some(epoch) < before.last_epoch);
        if is_old && self.opened != before.opened {
            self.opened.clone_from(&before.opened);
        }
        // An epoch that was opened was held.
        self.last_epoch = self.last_epoch.max(before.last_epoch).max(epoch(self));
        self.seen_authenticated_lease |= before.seen_authenticated_lease;
    }
}

/// Under which circumstances a fence was opened, as
/// [`InstanceDir::opening`](super::InstanceDir::opening) finds them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Opened {
    /// The epoch.
    pub epoch: Epoch,
    /// The boot of the machine; `None` where the platform tells none, and nothing is taken back
    /// after a restart.
    pub boot_id: Option<String>,
    /// The lock file of the instance directory.
    pub lock: FileIdentity,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(epoch: u64, ino: u64) -> Option<Opened> {
        let lock = FileIdentity { dev: 1, ino };
        Some(Opened { epoch: Epoch::new(epoch)?, boot_id: None, lock })
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
