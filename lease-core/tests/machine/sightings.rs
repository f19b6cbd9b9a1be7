//! What a read of a scripted test shows, each in one word.

use crate::world::{epoch, id};
use fencing::Epoch;
use lease_core::{
    auth::Verdict,
    machine::{Event, Facts, LeaseSeen, Sighting},
    record::Nonce,
    store::Version,
};
use std::{sync::Arc, time::Duration};

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn nth(number: u64) -> Epoch {
    epoch(number)
}

pub(crate) fn found(facts: Facts, verdict: Verdict, version: &str) -> Sighting {
    let version = Version::new(version);
    Sighting::Found { version, verdict, facts: Some(Arc::new(facts)), age: None }
}

/// An unsigned record of `holder` with a ttl of 10 s and a nonce of nobody here.
pub(crate) fn held(holder: &str, epoch: u64, seq: u64, version: &str) -> Sighting {
    let nonce = Nonce::from_bytes([0xbb; 16]);
    let facts = Facts::new(Some(id(holder)), nth(epoch), seq, Some(nonce), secs(10));
    found(facts, Verdict::Unsigned, version)
}

pub(crate) fn released(epoch: u64, version: &str) -> Sighting {
    let nonce = Nonce::from_bytes([0xcc; 16]);
    found(Facts::new(None, nth(epoch), 9, Some(nonce), secs(10)), Verdict::Unsigned, version)
}

pub(crate) fn garbage(version: &str) -> Sighting {
    let verdict = Verdict::Unreadable;
    Sighting::Found { version: Version::new(version), verdict, facts: None, age: None }
}

/// The same with what the store tells of its age.
pub(crate) fn aged(sighting: Sighting, seconds: u64) -> Sighting {
    match sighting {
        Sighting::Found { version, verdict, facts, .. } => {
            Sighting::Found { version, verdict, facts, age: Some(secs(seconds)) }
        }
        other => other,
    }
}

/// The same with a verdict.
pub(crate) fn judged(sighting: Sighting, verdict: Verdict) -> Sighting {
    match sighting {
        Sighting::Found { version, facts, age, .. } => {
            Sighting::Found { version, verdict, facts, age }
        }
        other => other,
    }
}

/// What a standby says that it saw, in order.
pub(crate) fn seen(events: &[Event]) -> Vec<&LeaseSeen> {
    let mut seen = Vec::new();
    for event in events {
        if let Event::LeaseSeen { lease } = event {
            seen.push(lease);
        }
    }
    seen
}
