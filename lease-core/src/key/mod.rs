//! Names: the key of an object, the cluster, the instance, a lease among many.
//!
//! | what | is kept at |
//! | --- | --- |
//! | the lease of a cluster | `<cluster>/lease.json` |
//! | the [session](crate::session) of an instance | `<cluster>/sessions/<instance>.json`, see [`ClusterName::session_key`] |
//! | a named lease under a session | `<cluster>/leases/<name>.json` |
//!
//! A name is refused or taken as it is, never rewritten: two names that a store could mistake for
//! each other (by case, by normalisation, by an escape) cannot both be valid.

macro_rules! text_newtype {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                Self::new(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

mod lease_name;

pub use lease_name::{LeaseName, MAX_LEASE_NAME_BYTES};
use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

/// The longest segment of a key, in bytes. Leaves room for a driver's suffixes within 255.
pub const MAX_SEGMENT_BYTES: usize = 200;
/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 512;
/// The longest cluster name or instance id, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The key of one object in a store: segments of `a-z 0-9 . _ -`, joined by `/`.
///
/// A segment starts with a letter, a digit or `_`, is at most 200 bytes long and does not end in
/// `.lock` (that name belongs to the local driver's sidecar files); the key is at most 512 bytes long.
///
/// ```
/// use lease_core::ObjectKey;
///
/// assert_eq!(ObjectKey::new("orders/lease.json")?.as_str(), "orders/lease.json");
/// for bad in ["", "/abs", "a//b", "../x", "A", "%2e%2e", "a\0b", "lease.json.lock"] {
///     assert!(ObjectKey::new(bad).is_err());
/// }
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// A key with this text.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let refuse = |why| Err(NameError::new("object key", text, why));
        if text.len() > MAX_KEY_BYTES {
            return refuse("is longer than 512 bytes");
        }
        for segment in text.split('/') {
            if segment.is_empty() {
                return refuse("has an empty segment");
            }
            if segment.len() > MAX_SEGMENT_BYTES {
                return refuse("has a segment longer than 200 bytes");
            }
            if !segment.bytes().all(is_name_byte) {
                return refuse("has a character other than a-z, 0-9, '.', '_', '-' and '/'");
            }
            if !segment.starts_with(starts_a_name) {
                return refuse("has a segment that starts with '.' or '-'");
            }
            if segment.ends_with(".lock") {
                return refuse("has a segment that ends in '.lock', which lock files are named by");
            }
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The segments, first to last; at least one.
    pub fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }
}

/// The name of a cluster: the instances that share one lease. `a-z 0-9 . _ -`, 1 to 64 bytes, starts
/// with a letter or a digit.
///
/// ```
/// use lease_core::key::ClusterName;
///
/// let cluster: ClusterName = "orders".parse()?;
/// assert_eq!(cluster.lease_key().as_str(), "orders/lease.json");
/// assert!("Orders".parse::<ClusterName>().is_err());
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClusterName(Arc<str>);

impl ClusterName {
    /// A cluster with this name.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let name = bounded_name("cluster name", text)?;
        // Every cluster name is one segment of a key.
        ObjectKey::new(text)
            .map_err(|error| NameError::new("cluster name", text, error.why))
            .map(|_| Self(name))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Where the cluster's lease is kept.
    #[must_use]
    pub fn lease_key(&self) -> ObjectKey {
        // Valid by construction: a cluster name is a segment of at most 64 bytes.
        ObjectKey(format!("{}/lease.json", self.0).into())
    }

    /// Where the lease of this name is kept, one of many under sessions.
    ///
    /// ```
    /// use lease_core::key::{ClusterName, LeaseName};
    ///
    /// let key = ClusterName::new("orders")?.named_lease_key(&LeaseName::new("shards/7")?);
    /// assert_eq!(key.as_str(), "orders/leases/shards/7.json");
    /// # Ok::<(), lease_core::key::NameError>(())
    /// ```
    #[must_use]
    pub fn named_lease_key(&self, name: &LeaseName) -> ObjectKey {
        // Valid by construction: see what a lease name may be.
        ObjectKey(format!("{}/leases/{}.json", self.0, name.as_str()).into())
    }

    /// Where the session of an instance is kept.
    ///
    /// Keys have no upper case, since some file systems have none. In the id a capital letter is
    /// written as `_` and the small one, and `_` as `__`, so that no two instances share a key.
    /// Generated ids have neither and stand there as they are.
    ///
    /// ```
    /// use lease_core::key::{ClusterName, InstanceId};
    ///
    /// let orders = ClusterName::new("orders")?;
    /// let key = |id: &str| Ok::<_, lease_core::key::NameError>(orders.session_key(&InstanceId::new(id)?));
    /// assert_eq!(key("s-1")?.as_str(), "orders/sessions/s-1.json");
    /// assert_eq!(key("Pod_A")?.as_str(), "orders/sessions/_pod___a.json");
    /// # Ok::<(), lease_core::key::NameError>(())
    /// ```
    #[must_use]
    pub fn session_key(&self, instance: &InstanceId) -> ObjectKey {
        let mut key = format!("{}/sessions/", self.0);
        for letter in instance.as_str().chars() {
            if letter.is_ascii_uppercase() || letter == '_' {
                key.push('_');
            }
            key.push(letter.to_ascii_lowercase());
        }
        // Valid by construction: at most twice the 64 bytes of an id, and it starts like a segment.
        ObjectKey((key + ".json").into())
    }
}

/// Who holds a lease: an id that one instance generated at random and keeps. Compared as a whole.
///
/// Generated ids are 32 hexadecimal digits; ids that are read may be any 1 to 64 bytes of
/// `a-z A-Z 0-9 . _ -`.
///
/// ```
/// use lease_core::key::InstanceId;
///
/// let id = InstanceId::random()?;
/// assert_eq!(id.as_str().len(), 32);
/// assert_ne!(InstanceId::new("s-1")?, InstanceId::new("s-10")?);    // never by a prefix
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstanceId(Arc<str>);

impl InstanceId {
    /// An id with this text.
    ///
    /// # Errors
    ///
    /// [`NameError`] says which rule the text breaks.
    pub fn new(text: &str) -> Result<Self, NameError> {
        let lower = text.to_ascii_lowercase();
        bounded_name("instance id", &lower)
            .map_err(|error| NameError::new("instance id", text, error.why))
            .map(|_| Self(text.into()))
    }

    /// A fresh id of 128 random bits.
    ///
    /// # Errors
    ///
    /// If the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{:032x}", u128::from_be_bytes(bytes)).into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn bounded_name(what: &'static str, text: &str) -> Result<Arc<str>, NameError> {
    let refuse = |why| Err(NameError::new(what, text, why));
    if text.is_empty() {
        return refuse("is empty");
    }
    if text.len() > MAX_NAME_BYTES {
        return refuse("is longer than 64 bytes");
    }
    if !text.bytes().all(is_name_byte) {
        return refuse("has a character other than letters, digits, '.', '_' and '-'");
    }
    if !text.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return refuse("does not start with a letter or a digit");
    }
    Ok(text.into())
}

const fn is_name_byte(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-')
}

const fn starts_a_name(first: char) -> bool {
    matches!(first, 'a'..='z' | '0'..='9' | '_')
}

/// A name breaks the rules for names of its kind. Nothing was rewritten, nothing was touched.
///
/// ```
/// let error = lease_core::ObjectKey::new("Orders/lease.json").unwrap_err().to_string();
/// assert!(error.contains("a character other than a-z, 0-9") && error.contains("choose a name of"));
/// ```
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the {what} {text:?} {why}; choose a name of a-z, 0-9, '.', '_' and '-'")]
pub struct NameError {
    what: &'static str,
    text: String,
    why: &'static str,
}

impl NameError {
    fn new(what: &'static str, text: &str, why: &'static str) -> Self {
        // The text may be anything, of any length, from anywhere.
        let text = text.chars().take(80).collect();
        Self { what, text, why }
    }
}

text_newtype!(ClusterName);
text_newtype!(InstanceId);
text_newtype!(ObjectKey);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_19_names_are_refused_never_rewritten() {
        let long_segment = "a".repeat(MAX_SEGMENT_BYTES + 1);
        let long_key = "a/".repeat(MAX_KEY_BYTES / 2) + "b";
        let bad = [
            "../x",
            "a//b",
            "/abs",
            "..",
            "",
            "A",
            "a\0b",
            "%2e%2e",
            "e\u{301}",
            "a/",
            ".hidden",
            "a b",
            "a\\b",
            "-x",
            "é",
            "x.lock",
            "x.lock/y",
            &long_segment,
            &long_key,
        ];
        for text in bad {
            let error = ObjectKey::new(text).unwrap_err().to_string();
            assert!(error.len() < 400, "{error}");
        }
        assert_eq!(ObjectKey::new("_app/ha/prod/lease.json").unwrap().segments().count(), 4);
    }

    #[test]
    fn case_31_instance_ids_compare_whole() {
        let (one, ten) = (InstanceId::new("s-1").unwrap(), InstanceId::new("s-10").unwrap());
        assert_ne!(one, ten);
        assert_ne!(InstanceId::random().unwrap(), InstanceId::random().unwrap());
        assert_eq!(InstanceId::random().unwrap().as_str().len(), 32);
        for bad in ["", "a b", "a\n", &"a".repeat(65)] {
            assert!(InstanceId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn no_two_instances_share_the_key_of_a_session() {
        let cluster = ClusterName::new("orders").unwrap();
        let ids = ["a-b", "A-b", "a-B", "A-B", "a_b", "a__b", "a_B", "a__B", "a_-b", "a-_b", "aB_"];
        let keys = ids.map(|id| cluster.session_key(&InstanceId::new(id).unwrap()));
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(ObjectKey::new(key.as_str()).as_ref(), Ok(key));
            assert!(!keys[at + 1..].contains(key), "{key}");
        }
        for longest in ["A".repeat(MAX_NAME_BYTES), "9_.lock".to_owned(), "Q.LOCK".to_owned()] {
            let longest_cluster = ClusterName::new(&"c".repeat(MAX_NAME_BYTES)).unwrap();
            let key = longest_cluster.session_key(&InstanceId::new(&longest).unwrap());
            assert_eq!(ObjectKey::new(key.as_str()), Ok(key));
        }
    }

    #[test]
    fn a_cluster_name_is_one_segment() {
        for bad in ["", "a/b", "Orders", ".", "..", "_x", "x.lock", &"a".repeat(65)] {
            assert!(ClusterName::new(bad).is_err(), "{bad:?}");
        }
        let longest = ClusterName::new(&"a".repeat(64)).unwrap();
        assert_eq!(ObjectKey::new(longest.lease_key().as_str()), Ok(longest.lease_key()));
    }
}
