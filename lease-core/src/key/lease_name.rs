//! The name of one lease among many.

use super::{NameError, ObjectKey};
use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

/// The longest name of a lease, in bytes.
pub const MAX_LEASE_NAME_BYTES: usize = 128;

/// The name of a lease under a [session](crate::session), of which a cluster can have many: one for
/// each shard, tenant, queue or job.
///
/// Segments of `a-z 0-9 . _ -`, joined by `/`, 1 to 128 bytes in all. As in an [`ObjectKey`], each
/// starts with a letter, a digit or `_` and none ends in `.lock`; and none but the last ends in
/// `.json`, since in a directory that would be another lease's file.
///
/// ```
/// use lease_core::key::LeaseName;
///
/// assert_eq!(LeaseName::new("tenants/acme")?.as_str(), "tenants/acme");
/// for bad in ["", "Acme", "../x", "a//b", "a b", "a.json/b", "a.lock"] {
///     assert!(LeaseName::new(bad).is_err());
/// }
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseName(Arc<str>);

impl LeaseName {
    /// A lease with this name.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let refuse = |why| Err(NameError::new("lease name", text, why));
        if text.is_empty() {
            return refuse("is empty");
        }
        if text.len() > MAX_LEASE_NAME_BYTES {
            return refuse("is longer than 128 bytes");
        }
        if let Err(error) = ObjectKey::new(text) {
            return refuse(error.why);
        }
        let above = text.rsplit_once('/').map_or("", |(above, _)| above);
        if above.split('/').any(|segment| segment.ends_with(".json")) {
            return refuse(
                "has a segment before the last that ends in '.json', as leases' files do",
            );
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_newtype!(LeaseName);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{ClusterName, MAX_NAME_BYTES};

    #[test]
    fn every_lease_name_gives_a_key_and_none_is_in_the_way_of_another() {
        let cluster = ClusterName::new(&"c".repeat(MAX_NAME_BYTES)).unwrap();
        let longest = "n".repeat(MAX_LEASE_NAME_BYTES);
        for text in ["a", "_a", "a.json", "a/b.json", "a.lock.b", "0/1/2", &longest] {
            let key = cluster.named_lease_key(&LeaseName::new(text).unwrap());
            assert_eq!(ObjectKey::new(key.as_str()), Ok(key));
        }
        let too_long = "n".repeat(MAX_LEASE_NAME_BYTES + 1);
        for text in ["", "/", "a/", "a/.b", "A", "a.lock", "a.json/b", "x/a.json/b/c", &too_long] {
            let error = LeaseName::new(text).unwrap_err().to_string();
            assert!(error.contains("lease name") && error.len() < 400, "{error}");
        }
    }
}
