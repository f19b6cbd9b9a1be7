//! `MemoryStore` beyond what the conformance suite asks of every store.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "the helpers of a test fail by panicking, as the test does"
)]

use bytes::Bytes;
use lease_core::{
    LeaseStore as _, ObjectKey, Read, StoreError, Version,
    store::MAX_OBJECT_BYTES,
    testing::{AgePrecision, ManualClock, MemoryStore},
};
use std::time::Duration;

fn key() -> ObjectKey {
    ObjectKey::new("orders/lease.json").unwrap()
}

async fn age(store: &MemoryStore) -> Option<Duration> {
    match store.read_versioned(&key(), None).await.unwrap() {
        Read::Found { age, .. } => age,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_version_is_the_digest_of_the_content() {
    let store = MemoryStore::new();
    let empty = store.create_if_absent(&key(), Bytes::new()).await.unwrap();
    let known = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(empty, Version::new(known));

    let other = store.replace_if_match(&key(), Bytes::from("x"), &empty).await.unwrap();
    let back = store.replace_if_match(&key(), Bytes::new(), &other).await.unwrap();
    assert_eq!(back, empty);
}

#[tokio::test]
async fn a_counted_version_never_comes_back() {
    let store = MemoryStore::with_counted_versions();
    let first = store.put_by_hand(&key(), "x");
    assert_eq!(store.delete_by_hand(&key()).unwrap(), "x");
    assert_eq!(store.delete_by_hand(&key()), None);
    let second = store.create_if_absent(&key(), Bytes::from("x")).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(store.version(&key()), Some(second));
}

#[tokio::test]
async fn requests_are_counted_by_kind_and_hands_are_not() {
    let store = MemoryStore::new();
    let version = store.put_by_hand(&key(), "by hand");
    assert_eq!(store.requests().total(), 0);

    store.create_if_absent(&key(), Bytes::from("a")).await.unwrap_err();
    assert_eq!(store.read_versioned(&key(), Some(&version)).await.unwrap(), Read::NotModified);
    let version = store.replace_if_match(&key(), Bytes::from("b"), &version).await.unwrap();
    store.clone().delete_by_hand(&key());
    store.replace_if_match(&key(), Bytes::from("c"), &version).await.unwrap_err();
    assert_eq!(store.read_versioned(&key(), Some(&version)).await.unwrap(), Read::Missing);

    let after = store.requests();
    assert_eq!((after.reads, after.not_modified), (2, 1));
    assert_eq!((after.creates, after.replaces, after.refused), (1, 2, 2));
    assert_eq!(after.since(after).total(), 0);
    assert!(store.keys().is_empty());
}

#[tokio::test]
async fn what_is_too_large_is_corrupt_however_it_came_there() {
    let store = MemoryStore::new();
    let version = store.put_by_hand(&key(), vec![b' '; MAX_OBJECT_BYTES + 1]);
    match store.read_versioned(&key(), None).await {
        Err(StoreError::Corrupt { version: told, .. }) => assert_eq!(told, version),
        other => panic!("{other:?}"),
    }
    store.replace_if_match(&key(), Bytes::from("small"), &version).await.unwrap();
    assert_eq!(store.content(&key()).unwrap(), "small");
}

#[tokio::test]
async fn ages_are_told_as_exactly_as_was_asked_for() {
    let clock = ManualClock::new();
    clock.advance(Duration::from_millis(900));
    let exact = MemoryStore::new().telling_age(clock.clone(), AgePrecision::Exact);
    let whole = MemoryStore::new().telling_age(clock.clone(), AgePrecision::WholeSeconds);
    let silent = MemoryStore::new();
    for store in [&exact, &whole, &silent] {
        store.put_by_hand(&key(), "x");
    }
    clock.advance(Duration::from_millis(200));
    assert_eq!(age(&exact).await, Some(Duration::from_millis(200)));
    assert_eq!(age(&whole).await, Some(Duration::from_secs(1)), "0.9 and 1.1, each cut");
    assert_eq!(age(&silent).await, None);

    // The same content again: the same version, a new age.
    clock.advance(Duration::from_secs(5));
    exact.put_by_hand(&key(), "x");
    assert_eq!(age(&exact).await, Some(Duration::ZERO));
}
