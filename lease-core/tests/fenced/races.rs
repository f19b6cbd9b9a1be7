//! Many writers at once.

use crate::{epoch, key};
use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{
    LeaseStore, ObjectKey, Read, StoreError, Version,
    fenced::{Change, Current, FencedError, FencedObject},
    testing::MemoryStore,
};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering::SeqCst},
};
use tokio::task::{JoinSet, yield_now};

/// Lets the others go on before each operation, as a network does: between a read and the write that
/// follows it there is always somebody else.
#[derive(Clone, Debug)]
struct Yielding(MemoryStore);

#[async_trait]
impl LeaseStore for Yielding {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        yield_now().await;
        self.0.read_versioned(key, unless).await
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        yield_now().await;
        self.0.create_if_absent(key, content).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        yield_now().await;
        self.0.replace_if_match(key, content, version).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn updates_of_one_epoch_lose_nothing() {
    const TASKS: usize = 8;
    const EACH: usize = 100;
    let memory = MemoryStore::new();
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let object = FencedObject::new(Yielding(memory.clone()), key());
        tasks.spawn(async move {
            let mut made = 0;
            while made < EACH {
                let increment = |now: Option<bytes::Bytes>| {
                    let now = now.map_or(0, |now| now.len());
                    Change::Put(vec![b'x'; now + 1].into())
                };
                match object.update(epoch(7), increment).await {
                    Ok(_) => made += 1,
                    Err(error) => {
                        assert!(matches!(error, FencedError::Contended { .. }), "{error}")
                    }
                }
            }
        });
    }
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    let Current { content, stamp, .. } =
        FencedObject::new(memory, key()).read().await.unwrap().unwrap();
    assert_eq!((content.unwrap().len(), stamp.counter), (TASKS * EACH, (TASKS * EACH) as u64));
}

/// Each write that was reported has a place of its own in the history, and the marks grow along it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_mark_never_goes_back_whoever_races() {
    const TASKS: u64 = 8;
    const EACH: u64 = 200;
    let memory = MemoryStore::new();
    let writes = Arc::new(AtomicU64::new(0));
    let history = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = JoinSet::new();
    for task in 1..=TASKS {
        let (object, history) =
            (FencedObject::new(Yielding(memory.clone()), key()), Arc::clone(&history));
        let writes = Arc::clone(&writes);
        tasks.spawn(async move {
            let (mut random, mut stale) = (task, 0);
            for _ in 0..EACH {
                let write = writes.fetch_add(1, SeqCst);
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Around a mark that grows, some behind it.
                let token = epoch(1 + write / 8 + (random >> 62));
                let written = match random >> 33 & 3 {
                    0 => object.seal(token).await.map(|sealed| sealed.stamp),
                    1 => object.delete(token).await,
                    _ => object.put(token, write.to_string()).await,
                };
                match written {
                    Ok(stamp) => history.lock().unwrap().push((stamp.counter, stamp.epoch)),
                    Err(error) if error.stale().is_some() => stale += 1,
                    Err(error) => {
                        assert!(matches!(error, FencedError::Contended { .. }), "{error}")
                    }
                }
            }
            stale
        });
    }
    let mut stale = 0;
    while let Some(task) = tasks.join_next().await {
        stale += task.unwrap();
    }
    let mut history = std::mem::take(&mut *history.lock().unwrap());
    history.sort_unstable();
    history.dedup(); // seals that found themselves sealed report the write that did it
    assert!(history.is_sorted_by_key(|(counter, _)| *counter));
    assert!(history.windows(2).all(|pair| pair[0].0 < pair[1].0), "one write for each number");
    assert!(history.windows(2).all(|pair| pair[0].1 <= pair[1].1), "the mark went back");
    println!("{} writes, {stale} refused as stale", history.len());
    assert!(stale > 0 && history.len() > 100);
}
