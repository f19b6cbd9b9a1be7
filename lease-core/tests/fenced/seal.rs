//! What a seal shuts out, and when it is one.

use crate::{current, epoch, key, shown, side, text, written};
use lease_core::{
    LeaseStore as _, StoreErrorKind,
    fenced::{Change, Current, FencedError},
    testing::{Effect, Fault, Hold, Late, MemoryStore, Op},
};
use std::time::Duration;

const REFUSED: Effect = Effect::Refused(StoreErrorKind::Precondition);

/// The old holder sends a write that is on its way when the call comes back.
async fn send_late(old: &crate::Side, content: &'static str) -> Late {
    let late = Late::new();
    old.faults.next(Op::Replace, Fault::LandLater(late.clone()));
    let error = old.object.put(epoch(7), content).await.unwrap_err();
    assert!(error.doubt().is_some(), "{error}");
    late
}

#[tokio::test]
async fn a_write_in_flight_at_the_takeover_loses_against_the_seal() {
    let (memory, old, new) = written().await;
    let late = send_late(&old, "90").await;
    let before = memory.version(&key());
    let sealed = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!((sealed.content, sealed.stamp.epoch), (text("100"), epoch(8)));
    assert_ne!(memory.version(&key()), before, "the same content, another version");
    assert_eq!(late.land().await, [REFUSED]);
    assert_eq!(shown(&memory).await, (text("100"), 8));
}

/// The counterpart: what the seal is for.
#[tokio::test]
async fn without_a_seal_a_write_in_flight_lands_after_the_takeover() {
    let (memory, old, new) = written().await;
    let late = send_late(&old, "90").await;
    assert_eq!(new.object.read().await.unwrap().unwrap().content, text("100"));
    assert_eq!(late.land().await, [Effect::Applied]);
    assert_eq!(shown(&memory).await, (text("90"), 7), "the new holder goes on from what is not so");
}

#[tokio::test]
async fn a_write_that_lands_between_the_seals_read_and_its_write_is_sealed_too() {
    let (memory, old, new) = written().await;
    let late = send_late(&old, "90").await;
    let hold = Hold::new();
    new.faults.next(Op::Replace, Fault::Hold(hold.clone()));
    let seal = tokio::spawn({
        let object = new.object.clone();
        async move { object.seal(epoch(8)).await }
    });
    new.faults.wait_for_calls_of(Op::Replace, 1).await; // it has read
    assert_eq!(late.land().await, [Effect::Applied]);
    hold.release();
    let sealed = seal.await.unwrap().unwrap();
    assert_eq!(sealed.content, text("90"), "it is in what the seal returns");
    assert_eq!(new.faults.count(Op::Replace), 2, "the seal began again");
    assert_eq!(shown(&memory).await, (text("90"), 8));
    assert!(old.object.put(epoch(7), "80").await.unwrap_err().stale().is_some());
}

#[tokio::test]
async fn a_seal_whose_reply_is_lost_is_found_by_a_read() {
    let (memory, _old, new) = written().await;
    new.faults.next(Op::Replace, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
    let sealed = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!(sealed, current(&memory).await);
    assert_eq!((new.faults.count(Op::Replace), new.faults.count(Op::Read)), (1, 2));
}

#[tokio::test]
async fn a_seal_that_did_not_land_is_sent_again_and_the_first_can_then_land_no_more() {
    let (memory, old, new) = written().await;
    let of_old = send_late(&old, "90").await;
    let of_seal = Late::new();
    new.faults.next(Op::Replace, Fault::LandLater(of_seal.clone()));
    let sealed = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!(new.faults.count(Op::Replace), 2);
    assert_eq!(of_seal.land().await, [REFUSED]);
    assert_eq!(of_old.land().await, [REFUSED]);
    assert_eq!(sealed, current(&memory).await);
}

#[tokio::test]
async fn a_seal_in_doubt_is_never_told_as_one() {
    let (memory, old, new) = written().await;
    let of_old = send_late(&old, "90").await;
    // It never lands.
    new.faults.always(Op::Replace, Fault::Fail(StoreErrorKind::InDoubt));
    let error = new.object.seal(epoch(8)).await.unwrap_err();
    assert!(error.doubt().is_some() && error.is_passing(), "{error}");
    assert_eq!(new.faults.count(Op::Replace), 3, "bounded");
    // It may have landed, and the read that would show it fails: it is not "unavailable".
    new.faults.clear();
    new.faults.next(Op::Read, Fault::Pass);
    new.faults.next(Op::Replace, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
    new.faults.next(Op::Read, Fault::Fail(StoreErrorKind::Unavailable));
    let error = new.object.seal(epoch(8)).await.unwrap_err();
    assert!(error.doubt().is_some(), "{error}");
    assert_eq!(new.faults.left(), 0);
    // Again, as often as one wants.
    let sealed = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!(sealed, current(&memory).await);
    assert_eq!(of_old.land().await, [REFUSED]);
}

#[tokio::test]
async fn a_seal_that_cannot_read_or_write_says_so() {
    let (memory, _old, new) = written().await;
    for (op, kind) in [
        (Op::Read, StoreErrorKind::InDoubt),
        (Op::Read, StoreErrorKind::Unavailable),
        (Op::Replace, StoreErrorKind::Unavailable),
    ] {
        new.faults.next(op, Fault::Fail(kind));
        let error = new.object.seal(epoch(8)).await.unwrap_err();
        assert!(matches!(error, FencedError::Unavailable { .. }) && error.is_passing(), "{error}");
    }
    new.faults.next(Op::Replace, Fault::Fail(StoreErrorKind::Unsupported));
    let error = new.object.seal(epoch(8)).await.unwrap_err();
    assert!(matches!(error, FencedError::Unsupported { .. }) && !error.is_passing(), "{error}");
    new.faults.always(Op::Replace, Fault::Fail(StoreErrorKind::Contended));
    let error = new.object.seal(epoch(8)).await.unwrap_err();
    assert!(matches!(error, FencedError::Contended { .. }), "{error}");
    assert_eq!(shown(&memory).await, (text("100"), 7));
}

#[tokio::test(start_paused = true)]
async fn a_seal_goes_on_until_it_is_certain() {
    let (memory, old, new) = written().await;
    let of_old = send_late(&old, "90").await;
    new.faults.always_any(&Fault::Fail(StoreErrorKind::InDoubt));
    let seal = tokio::spawn({
        let object = new.object.clone();
        async move { object.seal_until_certain(epoch(8), Duration::from_secs(1)).await }
    });
    new.faults.wait_for_calls(100).await;
    assert!(!seal.is_finished());
    new.faults.clear();
    let sealed = seal.await.unwrap().unwrap();
    assert_eq!(sealed, current(&memory).await);
    assert_eq!(of_old.land().await, [REFUSED]);
    // What does not pass by itself ends it.
    let error = old.object.seal_until_certain(epoch(7), Duration::from_secs(1)).await.unwrap_err();
    assert!(error.stale().is_some());
}

#[tokio::test]
async fn case_46_a_stale_writer_is_refused_in_every_way_and_nothing_changes() {
    let (memory, old, new) = written().await;
    new.object.seal(epoch(8)).await.unwrap();
    new.object.put(epoch(8), "70").await.unwrap(); // a tie
    let before = memory.content(&key());
    let writes = |requests: lease_core::testing::Requests| {
        requests.creates + requests.replaces - requests.refused
    };
    let so_far = writes(memory.requests());
    let refusals = [
        old.object.put(epoch(7), "90").await.map(drop),
        old.object.update(epoch(7), |_| Change::Put("90".into())).await.map(drop),
        old.object.delete(epoch(7)).await.map(drop),
        old.object.seal(epoch(7)).await.map(drop),
        old.object.adopt(epoch(7)).await.map(drop),
    ];
    for refused in refusals {
        let stale = refused.unwrap_err().stale().unwrap();
        assert_eq!((stale.presented, stale.highest), (epoch(7), epoch(8)));
    }
    assert_eq!(memory.content(&key()), before);
    assert_eq!(writes(memory.requests()), so_far);
    // Once seen, it is refused without a request.
    let asked = memory.requests();
    old.object.put(epoch(7), "90").await.unwrap_err();
    assert_eq!(memory.requests().since(asked).total(), 0);
    // Numbers, not text.
    for (token, admitted) in [(10, true), (9, false), ((1 << 53) + 1, true), (1 << 53, false)] {
        assert_eq!(new.object.put(epoch(token), "60").await.is_ok(), admitted, "{token}");
    }
}

#[tokio::test]
async fn a_seal_that_is_one_already_writes_nothing() {
    let (memory, _old, new) = written().await;
    let first = new.object.seal(epoch(8)).await.unwrap();
    let asked = memory.requests();
    assert_eq!(new.object.seal(epoch(8)).await.unwrap(), first);
    let since = memory.requests().since(asked);
    assert_eq!((since.reads, since.total()), (1, 1));
    assert_eq!((first.stamp.counter, first.stamp.epoch), (2, epoch(8)));
}

#[tokio::test]
async fn a_tombstone_remembers_the_token_and_is_sealed_as_one() {
    let (memory, old, new) = written().await;
    old.object.delete(epoch(7)).await.unwrap();
    assert_eq!(shown(&memory).await, (None, 7));
    let late = send_late(&old, "90").await;
    let sealed = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!(sealed.content, None);
    assert_eq!(late.land().await, [REFUSED]);
    assert_eq!(shown(&memory).await, (None, 8));
    assert!(old.object.delete(epoch(7)).await.unwrap_err().stale().is_some());
    new.object
        .update(epoch(8), |now| {
            assert_eq!(now, None);
            Change::Put("0".into())
        })
        .await
        .unwrap();
    new.object.update(epoch(8), |_| Change::Delete).await.unwrap();
    assert_eq!(new.object.update(epoch(8), |_| Change::Keep).await.unwrap(), None);
    assert_eq!(shown(&memory).await, (None, 8));
}

#[tokio::test]
async fn a_known_key_that_is_missing_is_sealed_by_a_tombstone() {
    let memory = MemoryStore::new();
    let (old, new) = (side(&memory), side(&memory));
    let late = Late::new();
    old.faults.next(Op::Create, Fault::LandLater(late.clone()));
    old.object.put(epoch(7), "90").await.unwrap_err();
    assert_eq!(new.object.read().await.unwrap(), None);
    let Current { content, stamp, .. } = new.object.seal(epoch(8)).await.unwrap();
    assert_eq!((content, stamp.epoch, stamp.counter), (None, epoch(8), 1));
    assert_eq!(late.land().await, [REFUSED]);
    assert!(old.object.put(epoch(7), "90").await.unwrap_err().stale().is_some());

    // A key that nobody sealed remembers nothing: what the page says cannot be protected.
    let forgotten = lease_core::ObjectKey::new("orders/forgotten").unwrap();
    let unsealed = lease_core::fenced::FencedObject::new(memory.clone(), forgotten);
    unsealed.put(epoch(7), "90").await.unwrap();
}

#[tokio::test]
async fn an_object_that_is_deleted_by_hand_forgets_but_not_for_who_has_seen_it() {
    let (memory, old, new) = written().await;
    new.object.seal(epoch(8)).await.unwrap();
    old.object.put(epoch(7), "90").await.unwrap_err();
    memory.delete_by_hand(&key());
    assert!(old.object.put(epoch(7), "90").await.unwrap_err().stale().is_some());
    // The holder's own next write finds its version gone, and creates the object anew.
    new.object.put(epoch(8), "70").await.unwrap();
    assert_eq!(shown(&memory).await, (text("70"), 8));
    memory.delete_by_hand(&key());
    side(&memory).object.put(epoch(7), "90").await.unwrap(); // another process: nothing remembers
}

#[tokio::test]
async fn a_write_costs_one_request_where_this_handle_made_the_last_one() {
    let (memory, old, new) = written().await;
    let asked = memory.requests();
    old.object.put(epoch(7), "99").await.unwrap();
    old.object.delete(epoch(7)).await.unwrap();
    assert_eq!(memory.requests().since(asked).total(), 2);
    new.object.seal(epoch(8)).await.unwrap();
    let asked = memory.requests();
    new.object.put(epoch(8), "70").await.unwrap();
    assert_eq!(memory.requests().since(asked).total(), 1);
    // Versions of content: an object that has no version known to be there is refused by the store.
    let version = memory.version(&key()).unwrap();
    assert!(memory.replace_if_match(&key(), "x".into(), &version).await.is_ok());
}
