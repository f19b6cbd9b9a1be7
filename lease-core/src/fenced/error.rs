use super::Doubt;
use crate::{json::Unreadable, key::ObjectKey, store::StoreError};
use fencing::Stale;

/// A fenced object was not read, or not written, or it is not known.
///
/// In every variant but [`InDoubt`](Self::InDoubt) nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FencedError {
    /// Other writers were quicker, again and again.
    #[error("{key} was not written, others wrote it {attempts} times meanwhile; try again")]
    Contended {
        /// The object.
        key: ObjectKey,
        /// How often it was tried.
        attempts: u32,
    },
    /// It begins as a fenced object does, and is none.
    #[error(
        "{key} is a damaged fenced object, {flaw}: nothing is admitted; put back a copy that is whole, \
         or write what is known to a new key"
    )]
    Damaged {
        /// The object.
        key: ObjectKey,
        /// What is wrong with it.
        flaw: EnvelopeFlaw,
    },
    /// The object has been written 2^64 − 1 times.
    #[error("{key} has no write left to count; go on under a new key")]
    Exhausted {
        /// The object.
        key: ObjectKey,
    },
    /// It may or may not have been written, now or later.
    #[error(
        "it is not known whether {key} was written ({source}); resolve or settle the doubt before anything \
         relies on it",
        key = doubt.key
    )]
    InDoubt {
        /// The write, to be asked about by [`resolve`](super::FencedObject::resolve) or
        /// [`settle`](super::FencedObject::settle).
        doubt: Box<Doubt>,
        /// What the store said.
        source: StoreError,
    },
    /// It was not written by a fenced object.
    #[error(
        "{key} was not written through a gate: nothing is admitted; if it is to be fenced from now on, and \
         nobody writes it otherwise, `adopt` it"
    )]
    NotFenced {
        /// The object.
        key: ObjectKey,
    },
    /// The operating system gave no random bytes.
    #[error("{key} was not written, the system gave no random bytes ({source}); try again")]
    NoRandom {
        /// The object.
        key: ObjectKey,
        /// What the system said.
        source: getrandom::Error,
    },
    /// A larger token was seen.
    #[error(transparent)]
    Stale(#[from] Stale),
    /// It is larger than what the store reads.
    #[error(
        "{key} with its envelope has more than {bytes_max} bytes, which is what this store is told to read; \
         raise that limit for all who read it, or write less"
    )]
    TooLarge {
        /// The object.
        key: ObjectKey,
        /// The most that the store reads.
        bytes_max: usize,
    },
    /// The store cannot be used now. Nothing was written.
    #[error("{key} was not written ({source}); try again")]
    Unavailable {
        /// The object.
        key: ObjectKey,
        /// What the store said.
        source: StoreError,
    },
    /// The store cannot do conditional writes.
    #[error("{key} was not written ({source}); use another store")]
    Unsupported {
        /// The object.
        key: ObjectKey,
        /// What the store said.
        source: StoreError,
    },
}

impl FencedError {
    /// The refusal of a stale token, if that is what it is: stop the work under it.
    #[must_use]
    pub fn stale(&self) -> Option<Stale> {
        match self {
            Self::Stale(stale) => Some(*stale),
            _ => None,
        }
    }

    /// The write that is in doubt, if that is what it is.
    #[must_use]
    pub fn doubt(&self) -> Option<&Doubt> {
        match self {
            Self::InDoubt { doubt, .. } => Some(doubt),
            _ => None,
        }
    }

    /// Whether it can pass by itself: the same call may succeed later. (One that was in doubt may by
    /// then have been made twice: only seals may simply be repeated.)
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Contended { .. }
            | Self::InDoubt { .. }
            | Self::NoRandom { .. }
            | Self::Unavailable { .. } => true,
            Self::Damaged { .. }
            | Self::Exhausted { .. }
            | Self::NotFenced { .. }
            | Self::Stale(_)
            | Self::TooLarge { .. }
            | Self::Unsupported { .. } => false,
        }
    }
}

/// What is wrong with the envelope of an object. Nothing of its content is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeFlaw {
    /// The content is not the one that was written.
    #[error("its content is cut short or was changed")]
    Content,
    /// A later version of this library wrote it.
    #[error("it has the format {format}, of a later version")]
    Format {
        /// What it says.
        format: u64,
    },
    /// Its first line is not what it must be.
    #[error("its first line is {0}")]
    Header(#[from] Unreadable),
    /// Its first line has no end.
    #[error("its first line is cut short")]
    Torn,
}
