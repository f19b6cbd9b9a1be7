//! Where a store is, as it is told to people.

use crate::provider::Provider;
use std::fmt;

/// A bucket, a prefix in it, and the server. Never holds a secret: it is shown in every error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    /// Without slashes at its ends; may be empty.
    pub(crate) prefix: String,
    /// Scheme, host and port, where it is not the provider's own.
    pub(crate) server: Option<String>,
}

impl Place {
    /// The path of an object, below the bucket.
    pub(crate) fn path(&self, key: &str) -> object_store::path::Path {
        object_store::path::Path::from_iter(
            self.prefix.split('/').chain(key.split('/')).filter(|segment| !segment.is_empty()),
        )
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.provider.scheme(), self.bucket)?;
        if !self.prefix.is_empty() {
            write!(f, "/{}", self.prefix)?;
        }
        match &self.server {
            Some(server) => write!(f, " at {server}"),
            None => Ok(()),
        }
    }
}
