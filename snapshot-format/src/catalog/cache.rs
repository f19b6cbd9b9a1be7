//! What was found out about each stored version, so that it is found out once.

use super::{ListedSnapshot, Uncheckable, Verdict};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The most verdicts that are remembered. A verdict takes some hundred bytes.
pub(super) const MAX_CACHED: usize = 20_000;

/// Verdicts by stored version. Bounded: what is no longer listed goes first, then what a takeover
/// would ask for last.
#[derive(Debug)]
pub(super) struct Cache {
    limit: usize,
    verdicts: Mutex<HashMap<ListedSnapshot, Verdict>>,
}

impl Cache {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, verdicts: Mutex::default() }
    }

    pub(super) fn find(&self, listed: &ListedSnapshot) -> Option<Verdict> {
        self.lock().get(listed).cloned()
    }

    pub(super) fn keep(&self, listed: &ListedSnapshot, verdict: &Verdict) {
        if !is_final(verdict) {
            return;
        }
        let mut verdicts = self.lock();
        if verdicts.len() >= self.limit && !verdicts.contains_key(listed) {
            let Some(last) = verdicts.keys().max_by_key(|known| known.name).cloned() else {
                return;
            };
            if last.name < listed.name {
                return;
            }
            verdicts.remove(&last);
        }
        verdicts.insert(listed.clone(), verdict.clone());
    }

    /// Forgets what is not among `listed`, which is in takeover order.
    pub(super) fn retain(&self, listed: &[ListedSnapshot]) {
        self.lock().retain(|known, _| {
            listed
                .binary_search_by_key(&known.name, |listed| listed.name)
                .is_ok_and(|at| listed[at] == *known)
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ListedSnapshot, Verdict>> {
        // Each change is one insertion or removal: there is no half of one.
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether asking again could not change it: the same bytes have the same verdict.
fn is_final(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Verified(_) | Verdict::Refused(_) | Verdict::Legacy => true,
        Verdict::Unchecked(why) => matches!(why, Uncheckable::NewerFormat { .. }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{SnapshotName, SnapshotTime};
    use fencing::{Epoch, WallTime};

    fn listed(epoch: u64, size: u64) -> ListedSnapshot {
        ListedSnapshot {
            name: SnapshotName::new(SnapshotTime::MIN, Epoch::new(epoch).unwrap()),
            key: format!("e{epoch}").into(),
            size,
            modified: WallTime::default(),
            etag: None,
        }
    }

    #[test]
    fn it_is_bounded_and_keeps_what_a_takeover_asks_for_first() {
        let cache = Cache::new(3);
        for epoch in [5, 1, 3, 2, 9, 4] {
            cache.keep(&listed(epoch, 1), &Verdict::Legacy);
        }
        let known = |epoch| cache.find(&listed(epoch, 1)).is_some();
        assert_eq!([1, 2, 3, 4, 5, 9].map(known), [false, false, false, true, true, true]);
        // What is known already needs no room.
        cache.keep(&listed(4, 1), &Verdict::Legacy);
        assert!(known(5) && known(9));
    }

    #[test]
    fn versions_are_told_apart_and_forgotten_once_they_are_not_listed() {
        let cache = Cache::new(3);
        cache.keep(&listed(1, 1), &Verdict::Legacy);
        cache.keep(&listed(2, 1), &Verdict::Legacy);
        assert_eq!(cache.find(&listed(1, 2)), None, "another size is another version");
        cache.retain(&[listed(2, 1), listed(1, 2)]);
        assert_eq!(cache.find(&listed(1, 1)), None);
        assert_eq!(cache.find(&listed(2, 1)), Some(Verdict::Legacy));
    }

    #[test]
    fn what_may_pass_is_asked_again() {
        let cache = Cache::new(3);
        cache.keep(&listed(1, 1), &Verdict::Unchecked(Uncheckable::Changed));
        assert_eq!(cache.find(&listed(1, 1)), None);
        let newer = Verdict::Unchecked(Uncheckable::NewerFormat { format: 2 });
        cache.keep(&listed(1, 1), &newer);
        assert_eq!(cache.find(&listed(1, 1)), Some(newer));
    }
}
