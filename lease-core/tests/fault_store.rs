//! `FaultStore`: each fault does what its name says, and the log tells it.

#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail by panicking, as the test does"
)]

use bytes::Bytes;
use lease_core::{
    LeaseStore, ObjectKey, Read, StoreError, StoreErrorKind, Version,
    testing::{Effect, Fault, FaultStore, Hold, Late, MemoryStore, Op, Outcome},
};
use std::sync::Arc;

type Store = FaultStore<MemoryStore>;

fn key() -> ObjectKey {
    ObjectKey::new("orders/lease.json").unwrap()
}

/// A store with one object, put there by hand.
fn store() -> (Store, Version) {
    let store = FaultStore::new(MemoryStore::new());
    let version = store.inner().put_by_hand(&key(), "old");
    (store, version)
}

async fn replace(
    store: &Store,
    content: &'static str,
    version: &Version,
) -> Result<Version, StoreErrorKind> {
    let result = store.replace_if_match(&key(), Bytes::from(content), version).await;
    result.map_err(|error| error.kind())
}

fn content(store: &Store) -> Bytes {
    store.inner().content(&key()).unwrap()
}

const EVERY_KIND: [StoreErrorKind; 6] = [
    StoreErrorKind::Contended,
    StoreErrorKind::Corrupt,
    StoreErrorKind::InDoubt,
    StoreErrorKind::Precondition,
    StoreErrorKind::Unavailable,
    StoreErrorKind::Unsupported,
];

#[tokio::test]
async fn without_a_fault_everything_passes_and_is_logged() {
    let (store, old) = store();
    let new = replace(&store, "new", &old).await.unwrap();
    let unless = store.read_versioned(&key(), Some(&new)).await.unwrap();
    store.create_if_absent(&key(), Bytes::from("x")).await.unwrap_err();

    let calls = store.faults().calls();
    let ops: Vec<_> = calls.iter().map(|call| call.op).collect();
    assert_eq!(ops, [Op::Replace, Op::Read, Op::Create]);
    assert_eq!(calls[0].content.as_deref(), Some(&b"new"[..]));
    assert_eq!(calls[0].version, Some(old));
    assert_eq!(calls[0].outcome, Outcome::Written(new.clone()));
    assert_eq!(calls[1].version, Some(new));
    assert_eq!(calls[1].outcome, Outcome::Found(unless));
    assert_eq!(calls[2].outcome, Outcome::Failed(StoreErrorKind::Precondition));
    assert_eq!(calls[2].effect, Effect::Refused(StoreErrorKind::Precondition));
}

#[tokio::test]
async fn every_kind_of_failure_comes_before_or_after_the_write() {
    for kind in EVERY_KIND {
        let (store, old) = store();
        let faults = store.faults();
        faults.next(Op::Replace, Fault::Fail(kind));
        assert_eq!(replace(&store, "new", &old).await, Err(kind));
        assert_eq!(content(&store), "old");

        faults.next(Op::Replace, Fault::ApplyThenFail(kind));
        assert_eq!(replace(&store, "new", &old).await, Err(kind));
        assert_eq!(content(&store), "new");

        let effects: Vec<_> = faults.calls().iter().map(|call| call.effect).collect();
        assert_eq!(effects, [Effect::NotApplied, Effect::Applied]);
        assert_eq!(faults.left(), 0);
    }
}

#[tokio::test]
async fn a_read_that_fails_as_corrupt_tells_the_real_version() {
    let (store, old) = store();
    let corrupt = StoreErrorKind::Corrupt;
    for fault in [Fault::Fail(corrupt), Fault::ApplyThenFail(corrupt)] {
        store.faults().next(Op::Read, fault);
        match store.read_versioned(&key(), None).await {
            Err(StoreError::Corrupt { version, .. }) => assert_eq!(version, old),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn scripted_faults_come_in_order_before_permanent_ones() {
    let (store, old) = store();
    let faults = store.faults();
    faults.always_any(&Fault::Fail(StoreErrorKind::Unavailable));
    faults.next(Op::Replace, Fault::Fail(StoreErrorKind::InDoubt));
    faults.next(Op::Replace, Fault::Pass);
    assert_eq!(replace(&store, "new", &old).await, Err(StoreErrorKind::InDoubt));
    let new = replace(&store, "new", &old).await.unwrap();
    assert_eq!(replace(&store, "newer", &new).await, Err(StoreErrorKind::Unavailable));
    store.read_versioned(&key(), None).await.unwrap_err();

    faults.next(Op::Create, Fault::Panic);
    assert_eq!(faults.left(), 1);
    faults.clear();
    assert_eq!(faults.left(), 0);
    replace(&store, "newer", &new).await.unwrap();
    assert_eq!(faults.count(Op::Replace), 4);
}

#[tokio::test]
async fn a_fault_may_be_for_one_key_alone() {
    let (store, _) = store();
    let (faults, other) = (store.faults(), ObjectKey::new("other").unwrap());
    faults.next_on(&other, Op::Read, Fault::Fail(StoreErrorKind::InDoubt));
    faults.always_on(&other, Op::Read, Fault::Fail(StoreErrorKind::Unavailable));
    store.read_versioned(&key(), None).await.unwrap();
    let kinds = [StoreErrorKind::InDoubt, StoreErrorKind::Unavailable, StoreErrorKind::Unavailable];
    for kind in kinds {
        assert_eq!(store.read_versioned(&other, None).await.unwrap_err().kind(), kind);
    }
    store.read_versioned(&key(), None).await.unwrap();
}

#[tokio::test]
async fn a_late_write_lands_when_told_and_only_if_its_condition_still_holds() {
    let (store, old) = store();
    let late = Late::new();
    store.faults().next(Op::Replace, Fault::LandLater(late.clone()));
    store.faults().next(Op::Replace, Fault::LandLater(late.clone()));
    assert_eq!(replace(&store, "first", &old).await, Err(StoreErrorKind::InDoubt));
    assert_eq!(replace(&store, "second", &old).await, Err(StoreErrorKind::InDoubt));
    assert_eq!((content(&store), late.on_their_way()), (Bytes::from("old"), 2));

    let refused = Effect::Refused(StoreErrorKind::Precondition);
    assert_eq!(late.land().await, [Effect::Applied, refused]);
    assert_eq!(content(&store), "first");
    let effects: Vec<_> = store.faults().calls().iter().map(|call| call.effect).collect();
    assert_eq!(effects, [Effect::Applied, refused]);
    assert!(late.land().await.is_empty());
}

#[tokio::test]
async fn a_held_operation_waits_before_or_after_the_write() {
    let faults = [(Fault::Hold as fn(Hold) -> Fault, "old"), (Fault::ApplyThenHold, "new")];
    for (fault, meanwhile) in faults {
        let (store, old) = store();
        let hold = Hold::new();
        store.faults().next(Op::Replace, fault(hold.clone()));
        let writer = tokio::spawn({
            let (store, old) = (store.clone(), old.clone());
            async move { replace(&store, "new", &old).await }
        });
        store.faults().wait_for_calls(1).await;
        assert_eq!(store.faults().calls()[0].outcome, Outcome::Pending);
        assert_eq!(content(&store), meanwhile);
        hold.release();
        writer.await.unwrap().unwrap();
        assert_eq!(content(&store), "new");
    }
}

#[tokio::test]
async fn a_reply_that_never_comes_leaves_the_write_as_the_fault_says() {
    let late = Late::new();
    let cases = [
        (Fault::Hang, "old", Effect::NotApplied),
        (Fault::ApplyThenHang, "new", Effect::Applied),
        (Fault::HangAndLandLater(late.clone()), "old", Effect::NotApplied),
    ];
    for (fault, expected, effect) in cases {
        let (store, old) = store();
        let faults = store.faults();
        faults.next(Op::Replace, fault);
        let writer = tokio::spawn({
            let store = store.clone();
            async move { replace(&store, "new", &old).await }
        });
        faults.wait_for_calls_of(Op::Replace, 1).await;
        writer.abort();
        assert!(writer.await.unwrap_err().is_cancelled());
        faults.wait_for_answers(1).await;
        let call = &faults.calls()[0];
        assert_eq!((content(&store), call.effect), (Bytes::from(expected), effect));
        assert_eq!(call.outcome, Outcome::Dropped);
        let landed = late.land().await;
        assert_eq!(content(&store), if landed.is_empty() { expected } else { "new" });
    }
}

#[tokio::test]
async fn a_store_may_panic() {
    let (store, _) = store();
    store.faults().next(Op::Read, Fault::Panic);
    let reader = tokio::spawn({
        let store = store.clone();
        async move { store.read_versioned(&key(), None).await }
    });
    assert!(reader.await.unwrap_err().is_panic());
    assert_eq!(store.faults().calls()[0].outcome, Outcome::Dropped);
    assert!(matches!(store.read_versioned(&key(), None).await, Ok(Read::Found { .. })));
}

#[tokio::test]
async fn it_wraps_a_store_behind_a_pointer() {
    let inner: Arc<dyn LeaseStore> = Arc::new(MemoryStore::new());
    let store = FaultStore::new(inner);
    assert_eq!(store.read_versioned(&key(), None).await.unwrap(), Read::Missing);
}
