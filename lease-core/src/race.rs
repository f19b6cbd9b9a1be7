//! Writes sent at once under one condition: of which a store lets exactly one win.
//!
//! The probe refuses stores by it, and the conformance suite fails drivers by it.

use crate::{
    key::ObjectKey,
    store::{LeaseStore, StoreError, StoreErrorKind, Version},
};
use bytes::Bytes;
use futures_util::future::join_all;

/// How many writers take part. A store that checks and writes in two steps lets several of them win.
pub(crate) const RACERS: usize = 16;

/// How the writers of one race fared, by the index of what each wrote.
#[derive(Debug)]
pub(crate) struct Race {
    /// Those that were told that they had written.
    pub(crate) won: Vec<(usize, Version)>,
    /// Those that were told that they had not, because of the condition.
    pub(crate) refused: usize,
    /// Those that were told that they had not, because of another write in flight.
    pub(crate) contended: usize,
    /// Those that do not know. Some servers answer 500 to the losers of a race (Ceph 16 does).
    pub(crate) in_doubt: Vec<(usize, StoreError)>,
    /// Any other answer: it has no place in a race.
    pub(crate) stray: Option<StoreError>,
}

/// Creates `key` from all `contents` at once.
pub(crate) async fn race_creates(
    store: &dyn LeaseStore,
    key: &ObjectKey,
    contents: &[Bytes],
) -> Race {
    Race::of(join_all(contents.iter().map(|it| store.create_if_absent(key, it.clone()))).await)
}

/// Replaces `version` of `key` by all `contents` at once.
pub(crate) async fn race_replaces(
    store: &dyn LeaseStore,
    key: &ObjectKey,
    version: &Version,
    contents: &[Bytes],
) -> Race {
    let writes = contents.iter().map(|it| store.replace_if_match(key, it.clone(), version));
    Race::of(join_all(writes).await)
}

impl Race {
    fn of(results: Vec<Result<Version, StoreError>>) -> Self {
        let mut race =
            Self { won: Vec::new(), refused: 0, contended: 0, in_doubt: Vec::new(), stray: None };
        for (index, result) in results.into_iter().enumerate() {
            match result.map_err(|error| (error.kind(), error)) {
                Ok(version) => race.won.push((index, version)),
                Err((StoreErrorKind::Precondition, _)) => race.refused += 1,
                Err((StoreErrorKind::Contended, _)) => race.contended += 1,
                Err((StoreErrorKind::InDoubt, error)) => race.in_doubt.push((index, error)),
                Err((_, error)) => race.stray = Some(error),
            }
        }
        race
    }

    /// How many were told for certain whether they had written.
    pub(crate) fn certain(&self) -> usize {
        self.won.len() + self.refused + self.contended
    }
}
