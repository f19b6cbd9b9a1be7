//! What a world is made of: objects in a store, links to it, entropy, and short names.

use lease_core::{
    ObjectKey,
    auth::Verdict,
    key::InstanceId,
    machine::Entropy,
    record::Nonce,
    session::{Config, NamedFacts, SessionFacts},
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

pub(crate) fn key(name: &str) -> ObjectKey {
    ObjectKey::new(name).unwrap()
}

/// What the store holds under one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Stored {
    /// A record that says something, under a MAC that does not verify.
    Forged(Arc<SessionFacts>),
    Garbage(u64),
    Lease(Arc<NamedFacts>),
    Session(Arc<SessionFacts>),
}

impl Stored {
    /// Versions come from content, as on S3 and on a directory: what is put back has its old one.
    pub(crate) fn version(&self) -> Version {
        Version::new(format!("{self:?}"))
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Forged(_) => Verdict::Forged,
            Self::Garbage(_) => Verdict::Unreadable,
            Self::Lease(_) | Self::Session(_) => Verdict::Unsigned,
        }
    }
}

/// How a request fares.
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
    /// A write arrives and acts, or does not; its sender is never told.
    Unanswered,
}

impl Default for Link {
    fn default() -> Self {
        Self { out: TICK, back: TICK, fate: Fate::Answered }
    }
}

pub(crate) const LOST: Link = Link { out: TICK, back: TICK, fate: Fate::Lost };
pub(crate) const UNANSWERED: Link = Link { out: TICK, back: TICK, fate: Fate::Unanswered };

/// T = 10 s and R = 2 s, without a spread.
pub(crate) fn config(name: &str) -> Config {
    timed(name, 10.0, 2.0)
}

pub(crate) fn timed(name: &str, ttl: f64, renew: f64) -> Config {
    let timing = Timing::short(secs(ttl), secs(renew)).unwrap();
    let mut config = Config::new(id(name), timing);
    config.fresh_instance = true;
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
