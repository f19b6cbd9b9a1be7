//! Retention on a store, through the fence.

use crate::support::{
    CIPHER, epoch, layout, name, sealed_by_another, snapshot,
    watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use snapshot_format::{
    Catalog,
    fencing::{Clock, Fence, FenceControl, MonotonicTime, ShutReason, WallTime},
    object_store::ObjectStoreExt as _,
    retention::PruneError,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A clock on which a second passes with each look at it.
#[derive(Clone, Debug, Default)]
struct Ticking(Arc<AtomicU64>);

impl Clock for Ticking {
    fn monotonic(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(self.0.fetch_add(1_000_000_000, Ordering::SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

/// A fence of epoch 9 that passes `checks` times. (Opening it is one look more.)
fn fence(checks: u64) -> (Fence, FenceControl) {
    let clock = Ticking::default();
    let mut control = FenceControl::new(epoch(9), Arc::new(clock.clone()));
    let window = Duration::from_secs(checks + 1) + Duration::from_millis(500);
    control.open(clock.reading(), window).unwrap();
    (control.fence(), control)
}

/// A store with `count` snapshots of epoch 9, one a second.
async fn filled(count: u64) -> (Watched, Catalog) {
    let store = Watched::new();
    for second in 0..count {
        let name = name(9, second * 1000);
        store.plant(&layout().key(&name), snapshot(name, b"a database")).await;
    }
    let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
    (store, catalog)
}

async fn left(catalog: &Catalog) -> usize {
    catalog.list().await.unwrap().snapshots.len()
}

fn deletions(store: &Watched) -> Vec<String> {
    let name = |op| match op {
        Op::Delete(key) => Some(key.filename().unwrap().to_owned()),
        _ => None,
    };
    store.seen().into_iter().filter_map(name).collect()
}

#[test]
fn what_is_beyond_goes_and_evidence_stays() {
    block_on(async {
        let (store, catalog) = filled(15).await;
        let planted = layout().key(&name(900, 0));
        store.plant(&planted, sealed_by_another(b"mine")).await;
        let foreign = layout().prefix().join("notes.txt");
        store.plant(&foreign, "not a snapshot").await;

        let pruned = catalog.prune(&fence(100).0).await.unwrap();
        assert_eq!((pruned.deleted, pruned.plan.fates().len()), (3, 16));
        // The oldest first.
        let gone = [0, 1, 2].map(|second| format!("orders-{}.db.age", name(9, second * 1000)));
        assert_eq!(deletions(&store), gone);
        assert_eq!(left(&catalog).await, 13);
        for kept in [planted, foreign] {
            assert!(store.behind().head(&kept).await.is_ok(), "{kept}");
        }
        assert_eq!(catalog.prune(&fence(100).0).await.unwrap().deleted, 0);
    });
}

#[test]
fn a_fence_that_shuts_stops_the_deleting() {
    block_on(async {
        let (store, catalog) = filled(16).await;
        // At the start, and before each of two deletions.
        let error = catalog.prune(&fence(3).0).await.unwrap_err();
        assert!(
            matches!(&error, PruneError::FenceShut(shut) if shut.reason == ShutReason::Expired)
        );
        assert_eq!(deletions(&store).len(), 2);
        let error = catalog.prune(&fence(0).0).await.unwrap_err();
        assert!(matches!(error, PruneError::FenceShut(_)));
        assert_eq!(store.seen(), [], "it was not even listed");
        assert_eq!(left(&catalog).await, 14);
    });
}

#[test]
fn case_40_a_page_that_fails_deletes_nothing() {
    block_on(async {
        let (store, catalog) = filled(16).await;
        let mut planted = 0..2_501_u64;
        for number in planted.by_ref() {
            store.plant(&layout().key(&name(9, 100_000 + number)), "junk").await;
        }
        store.on(|op| match op {
            Op::Page(2) => Act::Fail(broken()),
            _ => Act::Pass,
        });
        let error = catalog.prune(&fence(100).0).await.unwrap_err();
        assert!(matches!(error, PruneError::Catalog(_)), "{error}");
        assert_eq!(deletions(&store), Vec::<String>::new());
        store.heal();
        assert_eq!(left(&catalog).await, 2_517);
    });
}

#[test]
fn what_cannot_be_read_keeps_what_sorts_before_it() {
    block_on(async {
        let (store, catalog) = filled(16).await;
        // The second oldest: all that are newer stay, the oldest goes.
        let unread = layout().key(&name(9, 1000));
        store.on(move |op| match op {
            Op::Get(key, _) if *key == unread => Act::Fail(broken()),
            _ => Act::Pass,
        });
        assert_eq!(catalog.prune(&fence(100).0).await.unwrap().deleted, 1);
        store.heal();
        assert_eq!(catalog.prune(&fence(100).0).await.unwrap().deleted, 3);
        assert_eq!(left(&catalog).await, 12);
    });
}

#[test]
fn a_deletion_that_fails_is_told_and_tried_again() {
    block_on(async {
        let (store, catalog) = filled(14).await;
        let second = layout().key(&name(9, 1000));
        let broken_key = second.clone();
        store.on(move |op| match op {
            Op::Delete(key) if *key == broken_key => Act::Fail(broken()),
            _ => Act::Pass,
        });
        let error = catalog.prune(&fence(100).0).await.unwrap_err();
        assert!(
            matches!(&error, PruneError::Delete { key, deleted: 1, .. } if *key == second),
            "{error}"
        );
        store.heal();
        assert_eq!(catalog.prune(&fence(100).0).await.unwrap().deleted, 1);
    });
}
