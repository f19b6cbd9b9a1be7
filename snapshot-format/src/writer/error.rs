//! What is known of a write that failed.

use fencing::FenceShut;
use object_store::path::Path;
use std::io;

/// A snapshot was not stored, or it is not known whether it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The database could not be read. Nothing is stored.
    #[error("the database to store cannot be read; see the cause, nothing was stored")]
    Database(#[source] io::Error),
    /// The fence is shut: the tenure must not act. Nothing is stored.
    #[error("no snapshot was stored, since the fence is shut")]
    Fenced(#[from] FenceShut),
    /// It may be stored, or may be yet. Do not name it in the lease; write another.
    #[error(
        "it is not known whether the snapshot {key} is stored; see the cause, and write another"
    )]
    InDoubt {
        /// Its key.
        key: Path,
        /// What the store said; `None` if it was not waited for, since `stop` was ready.
        source: Option<object_store::Error>,
    },
    /// No thread could be started, it panicked, or there are no random bytes. Nothing is stored.
    #[error("no snapshot was stored, since the platform failed; see the cause")]
    Platform(#[source] io::Error),
    /// `stop` was ready before it was to become visible. Nothing is stored.
    #[error("no snapshot was stored, since it was to stop")]
    Stopped,
    /// The store refused or failed, and nothing is stored.
    #[error("the store did not take the snapshot {key}; see the cause, nothing was stored")]
    Store {
        /// Its key.
        key: Path,
        /// What it said.
        source: object_store::Error,
    },
    /// Something else has its key. Nothing is stored; the next write has another key.
    #[error("something else is stored as {key}; find out who wrote it, and write another snapshot")]
    Taken {
        /// The key.
        key: Path,
    },
    /// It has more parts than a store takes. Nothing is stored.
    #[error(
        "the database has more than 10000 parts of {part_bytes} bytes; set larger `part_bytes`"
    )]
    TooLarge {
        /// The size of a part in bytes.
        part_bytes: usize,
    },
}

impl WriteError {
    /// Whether the snapshot may be stored all the same.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::InDoubt { .. })
    }
}
