//! The objects that a probe writes, and how they are removed.

use super::ProbeError;
use crate::{key::ObjectKey, store::StoreError};
use async_trait::async_trait;
use std::fmt;

/// The key of an object that a probe wrote.
///
/// Only the probe makes them, and their last segment always starts with `probe-` and 32 random
/// digits: none is ever the key of a lease.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ProbeKey(ObjectKey);

impl ProbeKey {
    /// The key as the store knows it.
    #[must_use]
    pub fn as_object_key(&self) -> &ObjectKey {
        &self.0
    }
}

impl fmt::Display for ProbeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A driver that can remove what a probe left.
///
/// A [`LeaseStore`](crate::LeaseStore) has no delete, so that no code path can delete a lease. This
/// is the exception, and the type of its argument keeps it to probe objects.
#[async_trait]
pub trait ProbeCleaner: Send + Sync {
    /// Removes the object, if it is there.
    ///
    /// # Errors
    ///
    /// [`StoreError`], when it may still be there. The probe's verdict does not depend on it.
    async fn remove_probe_object(&self, key: &ProbeKey) -> Result<(), StoreError>;
}

/// The keys of one probe. No two probes share them, so that a probe that is run again does not meet
/// what the one before it left, or what of it still lands.
#[derive(Debug)]
pub(super) struct ProbeKeys {
    /// For one operation after the other.
    pub(super) object: ProbeKey,
    /// For the creators that race: one for each race, since an object can be created once.
    races: Vec<ProbeKey>,
    /// Stays missing, if the store is any good.
    pub(super) missing: ProbeKey,
    /// What makes the probe's contents its own.
    pub(super) mark: String,
}

impl ProbeKeys {
    pub(super) fn beside(lease: &ObjectKey) -> Result<Self, ProbeError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        let mark = format!("{:032x}", u128::from_be_bytes(bytes));
        let parent = lease
            .as_str()
            .rsplit_once('/')
            .map_or(String::new(), |(parent, _)| format!("{parent}/"));
        let key = |suffix| ObjectKey::new(&format!("{parent}probe-{mark}{suffix}")).map(ProbeKey);
        let (object, missing) = (key("")?, key("-missing")?);
        Ok(Self { object, races: Vec::new(), missing, mark })
    }

    /// A key that no creator has raced for yet.
    pub(super) fn race(&mut self) -> Result<ProbeKey, ProbeError> {
        let key = format!("{}-race{}", self.object, self.races.len() + 1);
        let key = ProbeKey(ObjectKey::new(&key)?);
        self.races.push(key.clone());
        Ok(key)
    }

    /// Those under which there may be an object.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ProbeKey> {
        [&self.object, &self.missing].into_iter().chain(&self.races)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_keys_lie_beside_the_lease_and_are_never_its_key() {
        for (lease, parent) in [("orders/lease.json", "orders/"), ("a/b/c", "a/b/"), ("x", "")] {
            let lease = ObjectKey::new(lease).unwrap();
            let mut keys = ProbeKeys::beside(&lease).unwrap();
            assert_ne!(keys.race().unwrap(), keys.race().unwrap());
            assert_eq!(keys.iter().count(), 4);
            for key in keys.iter() {
                let rest = key.as_object_key().as_str().strip_prefix(parent).unwrap();
                assert!(rest.starts_with("probe-") && !rest.contains('/'), "{key}");
                assert!(rest.len() >= 38, "{key}");
            }
            assert_ne!(keys.mark, ProbeKeys::beside(&lease).unwrap().mark);
        }
    }

    #[test]
    fn a_lease_whose_key_leaves_no_room_is_told() {
        let long = format!("{}x", "abcdefg/".repeat(60));
        let error = ProbeKeys::beside(&ObjectKey::new(&long).unwrap()).unwrap_err();
        assert!(matches!(error, ProbeError::Key(_)), "{error}");
    }
}
