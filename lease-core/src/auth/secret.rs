//! The cluster's secret, and the subkeys made from it. Nothing here shows either.

use crate::{hex, record::Label};
use hkdf::Hkdf;
use sha2::{Digest as _, Sha256};
use std::{
    ffi::OsStr,
    fmt,
    fs::File,
    io::{self, Read as _},
    path::Path,
};
use zeroize::Zeroizing;

/// The shortest secret, in bytes.
pub const MIN_SECRET_BYTES: usize = 32;
/// The longest, in bytes: what is larger is some other file.
const MAX_SECRET_BYTES: usize = 4096;

/// The secret that the instances of a cluster share: at least 32 bytes from a random source.
///
/// It is used as it is, not decoded: 32 bytes of base64 text are a secret of 32 bytes. It is wiped
/// when dropped and never shown. (What this cannot wipe: the process environment, and copies that a
/// swap file or a core dump took.)
///
/// ```
/// use lease_core::auth::ClusterSecret;
///
/// let secret = ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?;
/// assert_eq!(format!("{secret:?}"), "ClusterSecret(..)");
/// assert!(ClusterSecret::new(b"short").is_err());
/// # Ok::<(), lease_core::auth::SecretError>(())
/// ```
#[derive(Clone)]
pub struct ClusterSecret(Zeroizing<Vec<u8>>);

impl ClusterSecret {
    /// A secret of these bytes.
    ///
    /// # Errors
    ///
    /// [`SecretError::TooShort`] below 32 bytes, [`SecretError::TooLong`] above 4096,
    /// [`SecretError::Constant`] if all of them are equal.
    pub fn new(secret: &[u8]) -> Result<Self, SecretError> {
        Self::checked(Zeroizing::new(secret.to_vec()), || "passed as bytes".to_owned())
    }

    /// The secret in the environment variable `variable`, without one trailing line break.
    ///
    /// # Errors
    ///
    /// [`SecretError::NotSet`] if there is no such variable; else as [`ClusterSecret::new`].
    pub fn from_env(variable: impl AsRef<OsStr>) -> Result<Self, SecretError> {
        let variable = variable.as_ref();
        let origin = || format!("in the environment variable {}", variable.display());
        match std::env::var_os(variable) {
            Some(value) => {
                let value = Zeroizing::new(value.into_encoded_bytes());
                Self::checked(without_line_break(value), origin)
            }
            None => Err(SecretError::NotSet { origin: origin() }),
        }
    }

    /// The secret in a file, without one trailing line break, so that a secret is the same whether
    /// an editor or a program wrote it. At most 4 KiB and a few bytes of the file are read.
    ///
    /// # Errors
    ///
    /// [`SecretError::Unreadable`] if the file cannot be read; else as [`ClusterSecret::new`].
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, SecretError> {
        let path = path.as_ref();
        let origin = || format!("in the file {}", path.display());
        match read(path) {
            Ok(content) => Self::checked(without_line_break(content), origin),
            Err(source) => Err(SecretError::Unreadable { origin: origin(), source }),
        }
    }

    fn checked(
        secret: Zeroizing<Vec<u8>>,
        origin: impl FnOnce() -> String,
    ) -> Result<Self, SecretError> {
        if secret.len() < MIN_SECRET_BYTES {
            return Err(SecretError::TooShort { origin: origin() });
        }
        if secret.len() > MAX_SECRET_BYTES {
            return Err(SecretError::TooLong { origin: origin() });
        }
        if secret.iter().all(|byte| *byte == secret[0]) {
            return Err(SecretError::Constant { origin: origin() });
        }
        Ok(Self(secret))
    }

    /// The subkey that the cluster's snapshots are sealed with, info string `ha-snapshot`. It opens
    /// every one of them: give it to nothing else.
    #[must_use]
    pub fn snapshot_subkey(&self) -> Zeroizing<[u8; 32]> {
        self.subkey(Purpose::Snapshot).0
    }

    /// HKDF-SHA256 without a salt: a key that says nothing about the keys for other purposes.
    pub(super) fn subkey(&self, purpose: Purpose) -> Subkey {
        let mut key = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(None, &self.0)
            .expand(purpose.info(), key.as_mut_slice())
            .expect("HKDF-SHA256 gives up to 8160 bytes");
        Subkey(key)
    }

    /// What tells this secret from another. A digest of a key that nothing else uses.
    pub(super) fn id(&self) -> Label {
        let digest = Sha256::digest(self.subkey(Purpose::KeyId).bytes());
        Label::new(&hex::encode(&digest[..16])).expect("32 hexadecimal digits are a label")
    }
}

impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(..)")
    }
}

/// What a subkey is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    KeyId,
    Lease,
    Snapshot,
}

impl Purpose {
    const fn info(self) -> &'static [u8] {
        match self {
            Self::KeyId => b"ha-key-id",
            Self::Lease => b"ha-lease",
            Self::Snapshot => b"ha-snapshot",
        }
    }
}

/// A key for one purpose.
pub(super) struct Subkey(Zeroizing<[u8; 32]>);

impl Subkey {
    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }
}

fn without_line_break(mut secret: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    if secret.ends_with(b"\n") {
        secret.pop();
        if secret.ends_with(b"\r") {
            secret.pop();
        }
    }
    secret
}

fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    // One more than the longest with its line break, so that what is larger is seen to be.
    const LIMIT: usize = MAX_SECRET_BYTES + 3;
    // All of the capacity at once: a vector that grows leaves copies behind.
    let mut content = Zeroizing::new(vec![0; LIMIT]);
    let mut file = File::open(path)?;
    let mut length = 0;
    while length < LIMIT {
        match file.read(&mut content[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    content.truncate(length);
    Ok(content)
}

/// A secret cannot be used. The message says where it was looked for, never what was found.
///
/// ```
/// use lease_core::auth::ClusterSecret;
///
/// let error = ClusterSecret::new(b"correct horse").unwrap_err().to_string();
/// assert!(error.contains("shorter than 32 bytes") && !error.contains("horse"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// All of its bytes are equal.
    #[error("the cluster secret {origin} is one byte repeated; {GENERATE}")]
    Constant {
        /// Where it was.
        origin: String,
    },
    /// There is no such environment variable.
    #[error("no cluster secret {origin}: it is not set; set it, or configure no secret at all")]
    NotSet {
        /// Where it was looked for.
        origin: String,
    },
    /// It is longer than 4096 bytes.
    #[error("the cluster secret {origin} is longer than 4096 bytes; is it the right one?")]
    TooLong {
        /// Where it was.
        origin: String,
    },
    /// It is shorter than [`MIN_SECRET_BYTES`].
    #[error("the cluster secret {origin} is shorter than 32 bytes; {GENERATE}")]
    TooShort {
        /// Where it was.
        origin: String,
    },
    /// The file cannot be read.
    #[error(
        "the cluster secret {origin} cannot be read; see the cause, check the path and its \
         permissions, or configure no secret at all"
    )]
    Unreadable {
        /// Where it was looked for.
        origin: String,
        /// What the system said.
        source: io::Error,
    },
}

const GENERATE: &str =
    "make one with `head -c 32 /dev/urandom | base64` and give the same to every instance";

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = b"0123456789abcdef0123456789abcdef";

    #[test]
    fn case_38_weak_secrets_are_refused_when_they_are_built() {
        for short in [&b""[..], b"x", &GOOD[..31]] {
            assert!(matches!(ClusterSecret::new(short), Err(SecretError::TooShort { .. })));
        }
        for constant in [[0; 32], [b'a'; 32]] {
            assert!(matches!(ClusterSecret::new(&constant), Err(SecretError::Constant { .. })));
        }
        let long = GOOD.repeat(129);
        assert!(matches!(ClusterSecret::new(&long), Err(SecretError::TooLong { .. })));
        assert!(ClusterSecret::new(&long[..4096]).is_ok());
        assert!(ClusterSecret::new(GOOD).is_ok());
    }

    #[test]
    fn a_file_gives_the_same_secret_with_and_without_a_line_break() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("secret");
        let id = ClusterSecret::new(GOOD).unwrap().id();
        for end in ["", "\n", "\r\n"] {
            std::fs::write(&path, [GOOD, end.as_bytes()].concat()).unwrap();
            assert_eq!(ClusterSecret::from_file(&path).unwrap().id(), id, "{end:?}");
        }
        for end in ["\n\n", " ", "\r"] {
            std::fs::write(&path, [GOOD, end.as_bytes()].concat()).unwrap();
            assert_ne!(ClusterSecret::from_file(&path).unwrap().id(), id, "{end:?}");
        }
        // The line break is no part of the length.
        std::fs::write(&path, [&GOOD[..31], b"\n"].concat()).unwrap();
        assert!(matches!(ClusterSecret::from_file(&path), Err(SecretError::TooShort { .. })));
    }

    #[test]
    fn a_missing_or_endless_file_is_an_error_that_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let error = ClusterSecret::from_file(dir.path().join("nowhere")).unwrap_err();
        assert!(matches!(error, SecretError::Unreadable { .. }));
        assert!(error.to_string().contains("nowhere"), "{error}");
        assert!(ClusterSecret::from_file(dir.path()).is_err());
        let endless = ClusterSecret::from_file("/dev/urandom");
        assert!(matches!(endless, Err(SecretError::TooLong { .. })), "{endless:?}");
    }

    #[test]
    fn the_environment_is_a_source_like_a_file() {
        let error = ClusterSecret::from_env("HOLDFAST_TEST_NO_SUCH_SECRET").unwrap_err();
        assert!(error.to_string().contains("HOLDFAST_TEST_NO_SUCH_SECRET"), "{error}");
    }

    #[test]
    fn nothing_shows_a_secret() {
        let weak = b"hunter2hunter2";
        let error = ClusterSecret::new(weak).unwrap_err();
        let secret = ClusterSecret::new(GOOD).unwrap();
        for shown in [format!("{error} {error:?}"), format!("{secret:?} {secret:#?}")] {
            assert!(!shown.contains("hunter2") && !shown.contains("0123"), "{shown}");
        }
    }

    #[test]
    fn every_purpose_has_a_key_of_its_own() {
        let secret = ClusterSecret::new(GOOD).unwrap();
        let keys = [Purpose::KeyId, Purpose::Lease, Purpose::Snapshot]
            .map(|purpose| secret.subkey(purpose).bytes().to_vec());
        assert!(keys[0] != keys[1] && keys[1] != keys[2] && keys[2] != keys[0]);
        assert_eq!(secret.snapshot_subkey().as_slice(), keys[2]);
    }
}
