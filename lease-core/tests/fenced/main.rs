//! Fenced objects: seals, doubts, races, damage, and the naive model of a gate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod bad_input;
mod doubt;
mod model;
mod races;
mod resource;
mod seal;

use bytes::Bytes;
use lease_core::{
    ObjectKey,
    fenced::{Current, FencedObject},
    fencing::Epoch,
    testing::{FaultStore, Faults, MemoryStore},
};

fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

fn key() -> ObjectKey {
    ObjectKey::new("orders/balance").unwrap()
}

/// An object as one process has it: its own faults, over the memory that all share.
struct Side {
    object: FencedObject,
    faults: Faults,
}

fn side(memory: &MemoryStore) -> Side {
    let store = FaultStore::new(memory.clone());
    Side { faults: store.faults(), object: FencedObject::new(store, key()) }
}

/// An object that the old holder, of epoch 7, wrote; and both holders.
async fn written() -> (MemoryStore, Side, Side) {
    let memory = MemoryStore::new();
    let (old, new) = (side(&memory), side(&memory));
    old.object.put(epoch(7), "100").await.unwrap();
    (memory, old, new)
}

async fn current(memory: &MemoryStore) -> Current {
    FencedObject::new(memory.clone(), key()).read().await.unwrap().unwrap()
}

/// What is there, and under which epoch.
async fn shown(memory: &MemoryStore) -> (Option<Bytes>, u64) {
    let Current { content, stamp, .. } = current(memory).await;
    (content, stamp.epoch.as_u64())
}

fn text(content: &'static str) -> Option<Bytes> {
    Some(Bytes::from(content))
}
