//! What a world is made of: an object in a store, links to it, entropy, and short names.

use fencing::Epoch;
use lease_core::{
    auth::Verdict,
    key::InstanceId,
    machine::{Config, Entropy, Facts},
    record::Nonce,
    store::{StoreErrorKind, Version},
    timing::Timing,
};
use std::{sync::Arc, time::Duration};

pub(crate) const TICK: Duration = Duration::from_millis(5);

pub(crate) fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(crate) fn id(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

/// What the store holds: something with a verdict, and the facts if it can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    pub(crate) verdict: Verdict,
    pub(crate) facts: Option<Arc<Facts>>,
}

impl Object {
    pub(crate) fn garbage() -> Self {
        Self { verdict: Verdict::Unreadable, facts: None }
    }

    pub(crate) fn of(facts: Facts) -> Self {
        Self { verdict: Verdict::Unsigned, facts: Some(Arc::new(facts)) }
    }

    pub(crate) fn forged(facts: Facts) -> Self {
        Self { verdict: Verdict::Forged, facts: Some(Arc::new(facts)) }
    }

    /// Versions come from content, as on S3 and on a directory: what is put back has its old one.
    pub(crate) fn version(&self) -> Version {
        Version::new(format!("{self:?}"))
    }
}

/// How a node's requests fare, looked at when one is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) out: Duration,
    pub(crate) back: Duration,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Answered,
    /// Never arrives, never answered.
    Lost,
    /// Never arrives; the sender is told this.
    Told(StoreErrorKind),
    /// A write arrives and acts, or does not; its sender is told that it is in doubt.
    AppliedInDoubt,
}

impl Default for Link {
    fn default() -> Self {
        Self { out: TICK, back: TICK, fate: Fate::Answered }
    }
}

pub(crate) fn timing(ttl: f64, renew: f64) -> Timing {
    Timing::short(secs(ttl), secs(renew)).unwrap()
}

pub(crate) fn config(name: &str, ttl: f64, renew: f64) -> Config {
    let mut config = Config::new(id(name), timing(ttl, renew));
    config.has_history = true;
    config
}

#[derive(Clone, Copy)]
pub(crate) struct Counting(u128);

impl From<u128> for Counting {
    fn from(last: u128) -> Self {
        Self(last)
    }
}

impl Entropy for Counting {
    fn nonce(&mut self) -> Nonce {
        self.0 += 1;
        Nonce::from_bytes(self.0.to_be_bytes())
    }
}
