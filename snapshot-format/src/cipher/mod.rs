//! The seal: [age](https://age-encryption.org/v1) with a passphrase that only the cluster can make.
//!
//! ```text
//! passphrase = lowercase hex of HKDF-SHA256(salt = none, ikm = secret, "ha-snapshot", 32 bytes)
//! sealed     = age, one scrypt stanza of work factor 10, STREAM of 64 KiB chunks (ChaCha20-Poly1305)
//! ```
//!
//! The work factor is low because the passphrase is a random key of 256 bits: there is nothing to
//! guess, and reading a few thousand headers stays cheap. The public `age` command opens what is
//! sealed here with [`Cipher::passphrase`].
//!
//! # What a reader does not do
//!
//! Anybody who can write to the store can write something that looks sealed. Before any key is
//! derived, a reader refuses whatever has a work factor above its limit, any stanza but one of scrypt,
//! or a header of age that is longer than 512 bytes. So an object costs at most one derivation, about
//! 1 MiB of memory for some milliseconds, and never the gigabytes that its writer asks for.
//!
//! # Memory
//!
//! Both directions hold a few chunks of 64 KiB, however large the snapshot is.

mod error;
mod open;
mod seal;

use age::{scrypt, secrecy::SecretString};
pub use error::{OpenError, Unopenable};
use lease_core::auth::ClusterSecret;
pub use open::Opener;
pub use seal::Sealer;
use std::{
    fmt::{self, Write as _},
    sync::Arc,
};
use zeroize::Zeroizing;

/// The work factor of what is sealed here, as a power of two, and the most that is opened unless a
/// higher [limit](Cipher::with_work_factor_limit) is set.
pub const WORK_FACTOR: u8 = 10;
/// The highest limit that can be set: 4 GiB of memory, some seconds.
pub const MAX_WORK_FACTOR: u8 = 22;
/// The longest header of age that is read, in bytes. What is sealed here has one of 150.
pub const MAX_AGE_HEADER_BYTES: usize = 512;
/// How many bytes of plaintext are authenticated as one: the chunk of age's STREAM.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// So many bytes at the start of what is sealed tell its first chunk, and whether more follow.
pub const MAX_SEALED_START_BYTES: usize =
    MAX_AGE_HEADER_BYTES + NONCE_BYTES + CHUNK_BYTES + TAG_BYTES + 1;

const NONCE_BYTES: usize = 16;
const TAG_BYTES: usize = 16;

/// Seals and opens the snapshots of the clusters that share one secret.
///
/// Cheap to clone. Making one takes some milliseconds.
///
/// ```
/// use snapshot_format::{cipher::Cipher, lease_core::auth::ClusterSecret};
/// use std::io::{Read as _, Write as _};
///
/// let secret = ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?;
/// let cipher = Cipher::new(&secret);
///
/// let mut sealer = cipher.seal(Vec::new())?;
/// sealer.write_all(b"some database")?;
/// let sealed = sealer.finish()?;                  // not before this is it whole
///
/// let mut opened = Vec::new();
/// cipher.open(&*sealed)?.read_to_end(&mut opened)?;
/// assert_eq!(opened, b"some database");
/// assert!(cipher.open(&sealed[1..]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Cipher(Arc<Keys>);

struct Keys {
    passphrase: SecretString,
    // Kept, since age measures a derivation whenever it makes one of them.
    recipient: scrypt::Recipient,
    identity: scrypt::Identity,
}

impl Cipher {
    /// The cipher of the clusters that have this secret.
    #[must_use]
    pub fn new(secret: &ClusterSecret) -> Self {
        let subkey = secret.snapshot_subkey();
        // All of it at once: a string that grows leaves copies behind.
        let mut hex = String::with_capacity(2 * subkey.len());
        for byte in subkey.iter() {
            let _ = write!(hex, "{byte:02x}");
        }
        Self::with_passphrase(SecretString::from(hex), WORK_FACTOR)
    }

    /// The same, opening work factors up to `limit`: for a snapshot that a person sealed anew with
    /// `age -p`, which takes 18. Sealing stays as it is.
    ///
    /// Each object that anybody puts where snapshots are kept may then cost `2^limit` KiB and the
    /// time to fill them: raise it for the one restore that needs it.
    ///
    /// # Errors
    ///
    /// [`LimitError`] above [`MAX_WORK_FACTOR`], or below [`WORK_FACTOR`].
    pub fn with_work_factor_limit(&self, limit: u8) -> Result<Self, LimitError> {
        if !(WORK_FACTOR..=MAX_WORK_FACTOR).contains(&limit) {
            return Err(LimitError(limit));
        }
        Ok(Self::with_passphrase(self.0.passphrase.clone(), limit))
    }

    fn with_passphrase(passphrase: SecretString, limit: u8) -> Self {
        let mut recipient = scrypt::Recipient::new(passphrase.clone());
        recipient.set_work_factor(WORK_FACTOR);
        let mut identity = scrypt::Identity::new(passphrase.clone());
        identity.set_max_work_factor(limit);
        Self(Arc::new(Keys { passphrase, recipient, identity }))
    }

    /// The passphrase that opens every snapshot with the public `age` command: 64 hexadecimal
    /// digits. For the day when nothing else works; it belongs where the secret belongs.
    #[must_use]
    pub fn passphrase(&self) -> Zeroizing<String> {
        use age::secrecy::ExposeSecret as _;
        Zeroizing::new(self.0.passphrase.expose_secret().to_owned())
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

/// A limit of work factors is out of range.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a limit of work factor {0} cannot be set; choose one from {WORK_FACTOR} to {MAX_WORK_FACTOR}"
)]
pub struct LimitError(pub u8);
