//! What became of a write in doubt.

use crate::{epoch, key, shown, side, text, written};
use lease_core::{
    StoreErrorKind,
    fenced::{Change, Doubt, Resolution},
    testing::{Effect, Fault, Late, MemoryStore, Op},
};

async fn doubtful(of: &crate::Side, fault: Fault, content: &'static str) -> Doubt {
    of.faults.next(Op::Replace, fault);
    let error = of.object.put(epoch(7), content).await.unwrap_err();
    let doubt = error.doubt().unwrap_or_else(|| panic!("{error}")).clone();
    assert_eq!((doubt.key(), doubt.stamp().epoch), (&key(), epoch(7)));
    doubt
}

fn lost_reply() -> Fault {
    Fault::ApplyThenFail(StoreErrorKind::InDoubt)
}

#[tokio::test]
async fn a_write_in_doubt_is_told_as_one_and_nothing_is_sent_again() {
    for fault in [lost_reply(), Fault::Fail(StoreErrorKind::InDoubt)] {
        let (_memory, old, _new) = written().await;
        let before = old.faults.calls().len();
        doubtful(&old, fault, "90").await;
        assert_eq!(old.faults.calls().len(), before + 1);
    }
}

#[tokio::test]
async fn a_write_that_landed_is_known_by_its_nonce() {
    let (_memory, old, _new) = written().await;
    let doubt = doubtful(&old, lost_reply(), "90").await;
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::Landed);
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::Landed);

    // A clone of the same instance writes the same bytes under the same epoch: not this one's write.
    let (memory, old, _new) = written().await;
    let late = Late::new();
    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "90").await;
    side(&memory).object.put(epoch(7), "90").await.unwrap();
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::NotWritten);
    assert_eq!(late.land().await, [Effect::Refused(StoreErrorKind::Precondition)]);
}

#[tokio::test]
async fn a_write_that_still_may_land_is_undecided_until_it_is_settled() {
    let (memory, old, _new) = written().await;
    let late = Late::new();
    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "90").await;
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::Undecided);
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::NotWritten);
    assert_eq!(late.land().await, [Effect::Refused(StoreErrorKind::Precondition)]);
    assert_eq!(shown(&memory).await, (text("100"), 7));
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::NotWritten);

    // Or it lands, before it is settled or in the middle of that.
    let (_memory, old, _new) = written().await;
    let late = Late::new();
    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "90").await;
    late.land().await;
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::Landed);

    let (_memory, old, _new) = written().await;
    let late = Late::new();
    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "90").await;
    let hold = lease_core::testing::Hold::new();
    old.faults.next(Op::Replace, Fault::Hold(hold.clone()));
    let settling = tokio::spawn({
        let (object, doubt) = (old.object.clone(), doubt.clone());
        async move { object.settle(&doubt).await }
    });
    let so_far = old.faults.count(Op::Replace);
    old.faults.wait_for_calls_of(Op::Replace, so_far + 1).await;
    late.land().await;
    hold.release();
    assert_eq!(settling.await.unwrap().unwrap(), Resolution::Landed);
}

#[tokio::test]
async fn settling_is_itself_repeated_until_it_is_certain() {
    let (_memory, old, _new) = written().await;
    let late = Late::new();
    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "90").await;
    old.faults.next(Op::Replace, lost_reply());
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::NotWritten);

    let doubt = doubtful(&old, Fault::LandLater(late.clone()), "80").await;
    old.faults.always(Op::Replace, Fault::Fail(StoreErrorKind::InDoubt));
    assert!(old.object.settle(&doubt).await.unwrap_err().is_passing());
    old.faults.clear();
    old.faults.next(Op::Read, Fault::Fail(StoreErrorKind::Unavailable));
    assert!(old.object.settle(&doubt).await.unwrap_err().is_passing());
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::NotWritten);
    let refused = Effect::Refused(StoreErrorKind::Precondition);
    assert_eq!(late.land().await, [refused, refused]);
}

#[tokio::test]
async fn what_was_sealed_over_is_superseded_and_can_land_no_more() {
    let (_memory, old, new) = written().await;
    let doubt = doubtful(&old, lost_reply(), "90").await;
    assert_eq!(new.object.seal(epoch(8)).await.unwrap().content, text("90"));
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::Superseded);

    // A seal that took its very place says so.
    let (_memory, old, new) = written().await;
    let doubt = doubtful(&old, Fault::Fail(StoreErrorKind::InDoubt), "90").await;
    new.object.seal(epoch(8)).await.unwrap();
    assert_eq!(old.object.settle(&doubt).await.unwrap(), Resolution::NotWritten);
}

#[tokio::test]
async fn a_create_in_doubt_is_settled_too() {
    let memory = MemoryStore::new();
    let old = side(&memory);
    let late = Late::new();
    old.faults.next(Op::Create, Fault::LandLater(late.clone()));
    let error = old.object.put(epoch(7), "90").await.unwrap_err();
    let doubt = error.doubt().unwrap();
    assert_eq!(old.object.resolve(doubt).await.unwrap(), Resolution::Undecided);
    assert_eq!(old.object.settle(doubt).await.unwrap(), Resolution::NotWritten);
    assert_eq!(late.land().await, [Effect::Refused(StoreErrorKind::Precondition)]);
    assert_eq!(shown(&memory).await, (None, 7));

    // What it was to replace was deleted by hand.
    let (memory, old, _new) = written().await;
    let doubt = doubtful(&old, Fault::Fail(StoreErrorKind::InDoubt), "90").await;
    memory.delete_by_hand(&key());
    assert_eq!(old.object.resolve(&doubt).await.unwrap(), Resolution::Superseded);
}

#[tokio::test]
async fn a_put_after_a_put_in_doubt_is_the_last_word() {
    for lands_first in [false, true] {
        let (memory, old, _new) = written().await;
        let late = Late::new();
        doubtful(&old, Fault::LandLater(late.clone()), "90").await;
        if lands_first {
            late.land().await;
        }
        old.object.put(epoch(7), "80").await.unwrap();
        late.land().await;
        assert_eq!(shown(&memory).await, (text("80"), 7));
    }
}

/// What the page of `update` says: settle, then repeat.
#[tokio::test]
async fn an_update_that_is_settled_before_it_is_repeated_is_made_once() {
    let memory = MemoryStore::new();
    let old = side(&memory);
    let count = |bytes: Option<bytes::Bytes>| {
        bytes.map_or(0, |bytes| std::str::from_utf8(&bytes).unwrap().parse::<u32>().unwrap())
    };
    let increment = |now| Change::Put((count(now) + 1).to_string().into());
    let (mut made, mut doubts) = (0, 0);
    for round in 0..60 {
        let op = if round == 0 { Op::Create } else { Op::Replace };
        match round % 3 {
            0 => old.faults.next(op, lost_reply()),
            1 => old.faults.next(op, Fault::Fail(StoreErrorKind::InDoubt)),
            _ => {}
        }
        loop {
            let error = match old.object.update(epoch(7), increment).await {
                Ok(_) => break,
                Err(error) => error,
            };
            doubts += 1;
            match old.object.settle(error.doubt().unwrap()).await.unwrap() {
                Resolution::Landed => break,
                Resolution::NotWritten => {}
                other => panic!("{other:?}"),
            }
        }
        made += 1;
    }
    assert_eq!((count(shown(&memory).await.0), doubts), (made, 40));
}
