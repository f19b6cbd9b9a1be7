//! Snapshots, ours and planted, and a store that counts and fails.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod watched;

use age::secrecy::SecretString;
use snapshot_format::{
    cipher::Cipher,
    fencing::{Epoch, WallTime},
    header::Header,
    lease_core::{
        auth::ClusterSecret,
        key::{ClusterName, InstanceId},
    },
    name::{Application, Layout, SnapshotName, SnapshotTime},
};
use std::{io::Write as _, sync::LazyLock};

pub(crate) static CIPHER: LazyLock<Cipher> = LazyLock::new(|| Cipher::new(&secret(1)));
static QUICK: LazyLock<Quick> = LazyLock::new(|| Quick::new(&CIPHER));

pub(crate) fn secret(number: u8) -> ClusterSecret {
    let mut bytes = *b"0123456789abcdef0123456789abcdef";
    bytes[0] = number;
    ClusterSecret::new(&bytes).unwrap()
}

pub(crate) fn layout() -> Layout {
    layout_of("orders", "prod")
}

pub(crate) fn layout_of(application: &str, cluster: &str) -> Layout {
    Layout::new(Application::new(application).unwrap(), ClusterName::new(cluster).unwrap())
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

/// The name of a snapshot of `number`'s epoch, taken so many milliseconds after the start of 2026.
pub(crate) fn name(number: u64, millis: u64) -> SnapshotName {
    let wall = WallTime::from_unix_nanos((1_767_225_600_000 + millis) * 1_000_000);
    SnapshotName::new(SnapshotTime::from_wall(wall), epoch(number))
}

/// The header that makes a snapshot under this name a genuine one of [`layout`].
pub(crate) fn header(name: SnapshotName) -> Header {
    Header {
        cluster: layout().cluster().clone(),
        epoch: name.epoch(),
        instance_id: InstanceId::new("s-1").unwrap(),
        created_at: name.at(),
        suffix: name.suffix(),
    }
}

/// A genuine snapshot under this name, as a store keeps it.
pub(crate) fn snapshot(name: SnapshotName, database: &[u8]) -> Vec<u8> {
    sealed(&[header(name).encode(layout().application()).as_bytes(), database].concat())
}

/// Any plaintext under the cluster's seal. Sealed with the least work, so that there can be
/// thousands.
pub(crate) fn sealed(plaintext: &[u8]) -> Vec<u8> {
    QUICK.seal(plaintext)
}

/// The same under another cluster's secret.
pub(crate) fn sealed_by_another(plaintext: &[u8]) -> Vec<u8> {
    Quick::new(&Cipher::new(&secret(2))).seal(plaintext)
}

struct Quick(age::scrypt::Recipient);

impl Quick {
    fn new(cipher: &Cipher) -> Self {
        let mut recipient =
            age::scrypt::Recipient::new(SecretString::from(cipher.passphrase().to_string()));
        recipient.set_work_factor(1);
        Self(recipient)
    }

    fn seal(&self, plaintext: &[u8]) -> Vec<u8> {
        let recipients = std::iter::once(&self.0 as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).unwrap();
        let mut writer = encryptor.wrap_output(Vec::new()).unwrap();
        writer.write_all(plaintext).unwrap();
        writer.finish().unwrap()
    }
}
