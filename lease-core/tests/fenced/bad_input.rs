//! What no fenced object wrote, what is too large, and what has no end.

use crate::{current, epoch, key, shown, side, text, written};
use bytes::Bytes;
use lease_core::{
    ObjectKey, StoreErrorKind,
    fenced::{Change, EnvelopeFlaw, FencedError, FencedObject, OVERHEAD_BYTES_MAX, epoch_key},
    fencing::Epoch,
    store::MAX_OBJECT_BYTES,
    testing::{Fault, Late, MemoryStore, Op},
};
use proptest::prelude::*;

/// What every operation under the largest token meets; nothing is written by any of them.
async fn all(memory: &MemoryStore) -> Vec<FencedError> {
    let before = memory.content(&key());
    let object = side(memory).object;
    let errors = vec![
        object.read().await.map(drop).unwrap_err(),
        object.put(Epoch::MAX, "x").await.map(drop).unwrap_err(),
        object.update(Epoch::MAX, |_| Change::Delete).await.map(drop).unwrap_err(),
        object.delete(Epoch::MAX).await.map(drop).unwrap_err(),
        object.seal(Epoch::MAX).await.map(drop).unwrap_err(),
    ];
    assert_eq!(memory.content(&key()), before, "nothing has changed");
    errors
}

#[tokio::test]
async fn an_object_that_no_gate_wrote_admits_nothing() {
    for content in ["", "balance 100", "{}", "null", "{\"epoch\":7}", "\u{feff}{\"fenced\":1}"] {
        let memory = MemoryStore::new();
        memory.put_by_hand(&key(), content);
        for error in all(&memory).await {
            assert!(matches!(error, FencedError::NotFenced { .. }), "{content}: {error}");
            assert!(error.to_string().contains("`adopt` it") && !error.is_passing());
        }
    }
}

#[tokio::test]
async fn a_damaged_object_admits_nothing_and_is_not_adopted() {
    let (memory, _old, _new) = written().await;
    let good = memory.content(&key()).unwrap();
    for (end, flaw) in [(20, EnvelopeFlaw::Torn), (good.len() - 1, EnvelopeFlaw::Content)] {
        memory.put_by_hand(&key(), good.slice(..end));
        let mut errors = all(&memory).await;
        errors.push(side(&memory).object.adopt(Epoch::MAX).await.unwrap_err());
        for error in errors {
            match error {
                FencedError::Damaged { flaw: found, .. } => assert_eq!(found, flaw),
                other => panic!("{other}"),
            }
        }
    }
    // A number above 2^64 − 1 is no token, not a large one.
    let text = String::from_utf8(good.to_vec()).unwrap();
    memory.put_by_hand(&key(), text.replace("\"epoch\":7", "\"epoch\":18446744073709551616"));
    for error in all(&memory).await {
        let said = error.to_string();
        assert!(matches!(error, FencedError::Damaged { .. }), "{said}");
        assert!(said.contains("`epoch` is not a whole number from 1 to 2^64 - 1"), "{said}");
    }
}

#[tokio::test]
async fn an_object_from_before_it_was_fenced_is_adopted() {
    let memory = MemoryStore::new();
    memory.put_by_hand(&key(), "balance 100");
    let new = side(&memory);
    // A doubt is followed up as that of a seal is.
    let late = Late::new();
    new.faults.next(Op::Replace, Fault::LandLater(late.clone()));
    new.faults.next(Op::Replace, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
    let adopted = new.object.adopt(epoch(8)).await.unwrap();
    assert_eq!((adopted.content.clone(), adopted.stamp.epoch), (text("balance 100"), epoch(8)));
    assert_eq!(adopted, current(&memory).await);
    late.land().await;
    assert_eq!(new.object.adopt(epoch(8)).await.unwrap(), current(&memory).await);
    assert!(side(&memory).object.put(epoch(7), "90").await.unwrap_err().stale().is_some());
    // One that is fenced already is sealed by it, and a missing one too.
    new.object.adopt(epoch(9)).await.unwrap();
    assert_eq!(shown(&memory).await, (text("balance 100"), 9));
    memory.delete_by_hand(&key());
    new.object.adopt(epoch(9)).await.unwrap();
    assert_eq!(shown(&memory).await, (None, 9));
}

#[tokio::test]
async fn the_stores_limit_is_that_of_the_object() {
    let larger = 2 * MAX_OBJECT_BYTES;
    for (memory, limit) in [
        (MemoryStore::new(), MAX_OBJECT_BYTES),
        (MemoryStore::new().with_max_object_bytes(larger), larger),
    ] {
        let object = FencedObject::new(memory.clone(), key());
        let fits = Bytes::from(vec![b'x'; limit - OVERHEAD_BYTES_MAX]);
        object.put(Epoch::MIN, fits.clone()).await.unwrap();
        assert_eq!(object.read().await.unwrap().unwrap().content, Some(fits.clone()));
        assert_eq!(object.seal(Epoch::MAX).await.unwrap().content, Some(fits));
        let before = memory.requests();
        let large = Bytes::from(vec![b'x'; limit - OVERHEAD_BYTES_MAX + 1]);
        match object.put(Epoch::MAX, large).await.unwrap_err() {
            FencedError::TooLarge { bytes_max, .. } => assert_eq!(bytes_max, limit),
            other => panic!("{other}"),
        }
        assert_eq!(memory.requests().since(before).total(), 0, "nothing is sent");
    }
    // What is there may be larger than what this one is told to read.
    let memory = MemoryStore::new();
    memory.put_by_hand(&key(), vec![b'x'; MAX_OBJECT_BYTES + 1]);
    for error in all(&memory).await {
        assert!(matches!(error, FencedError::TooLarge { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_counter_at_its_end_is_an_error_and_never_wraps() {
    let (memory, _old, new) = written().await;
    let text = String::from_utf8(memory.content(&key()).unwrap().to_vec()).unwrap();
    memory.put_by_hand(&key(), text.replace("\"counter\":1", "\"counter\":18446744073709551615"));
    let before = memory.content(&key());
    let error = new.object.put(epoch(8), "x").await.unwrap_err();
    assert!(matches!(error, FencedError::Exhausted { .. }) && !error.is_passing(), "{error}");
    assert!(matches!(new.object.seal(epoch(8)).await, Err(FencedError::Exhausted { .. })));
    assert_eq!(memory.content(&key()), before);
    assert_eq!(new.object.read().await.unwrap().unwrap().stamp.counter, u64::MAX);
}

#[test]
fn keys_of_epochs_sort_as_epochs_do() {
    let prefix = ObjectKey::new("orders").unwrap();
    let key = |number| epoch_key(&prefix, epoch(number), "segment").unwrap();
    let keys: Vec<_> = [9, 10, 99, 1 << 53, u64::MAX].map(key).into();
    assert!(keys.is_sorted());
    assert_eq!(keys[4].as_str(), "orders/e18446744073709551615/segment");
    for bad in ["", "..", "a b", "A", "x.lock"] {
        epoch_key(&prefix, Epoch::MIN, bad).unwrap_err();
    }
}

proptest! {
    /// Whatever is there: an error or an object, never a panic, and never a write over what is no
    /// envelope.
    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        at in any::<prop::sample::Index>(),
        splices in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (memory, _old, new) = written().await;
            let good = memory.content(&key()).unwrap();
            let content = if splices {
                let mut content = good.to_vec();
                let at = at.index(content.len());
                content.splice(at..(at + bytes.len() / 20).min(good.len()), bytes.iter().take(3).copied());
                Bytes::from(content)
            } else {
                Bytes::from(bytes)
            };
            memory.put_by_hand(&key(), content.clone());
            match new.object.seal(epoch(8)).await {
                Ok(sealed) => assert_eq!(sealed.stamp.epoch, epoch(8)),
                Err(_) => assert_eq!(memory.content(&key()).unwrap(), content),
            }
        });
    }
}
