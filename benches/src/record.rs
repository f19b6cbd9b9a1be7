//! A record, and what writing and reading one cannot do without: `serde_json` alone, the HMAC alone.

use crate::holder;
use bytes::Bytes;
use hmac::{Hmac, KeyInit as _, Mac as _};
use lease_core::{
    auth::canonical_bytes,
    machine::Draft,
    record::LeaseRecord,
    wire::{Judged, Wire},
    {Read, Version},
};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

/// The fields of a record as `serde` has them, each ready to be written.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
struct Plain<'a> {
    cluster: &'a str,
    holder: &'a str,
    holder_name: &'a str,
    epoch: u64,
    seq: u64,
    nonce: &'a str,
    renewed_at: &'a str,
    ttl_seconds: u64,
    key_id: &'a str,
    mac: &'a str,
}

/// A record to be written, and the same as bytes to be read.
#[derive(Debug)]
pub struct Bed {
    wire: Wire,
    draft: Draft,
    content: Bytes,
    record: LeaseRecord,
    covered: Vec<u8>,
}

impl Default for Bed {
    fn default() -> Self {
        Self::new()
    }
}

impl Bed {
    /// The record of a renewal.
    #[must_use]
    pub fn new() -> Self {
        let (wire, draft) = (holder::wire(), holder::draft());
        let content = wire.encode(&draft);
        let record = LeaseRecord::decode(&content).expect("it was written by us");
        let covered = canonical_bytes(&record);
        Self { wire, draft, content, record, covered }
    }

    /// Encodes it, its MAC included.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        self.wire.encode(&self.draft)
    }

    /// Encodes a record that has its MAC.
    #[must_use]
    pub fn encode_alone(&self) -> Bytes {
        self.record.encode()
    }

    /// Reads it.
    #[must_use]
    pub fn decode(&self) -> LeaseRecord {
        LeaseRecord::decode(&self.content).expect("it was written by us")
    }

    /// Reads it and judges it, as a standby does.
    #[must_use]
    pub fn judge(&self) -> Judged {
        let version = Version::new("a");
        self.wire.judge(Ok(Read::Found { content: self.content.clone(), version, age: None }))
    }

    /// The floor under all of it.
    #[must_use]
    pub fn floor(&self) -> Floor<'_> {
        let plain = serde_json::from_slice(&self.content).expect("it was written by us");
        let keyed = Hmac::new_from_slice(&[0x5a; 32]).expect("any length will do");
        Floor { plain, content: &self.content, covered: &self.covered, keyed }
    }
}

/// What no record can be written or read without, everything in it prepared.
#[derive(Debug)]
pub struct Floor<'a> {
    plain: Plain<'a>,
    content: &'a [u8],
    covered: &'a [u8],
    /// The key's own blocks are hashed already.
    keyed: Hmac<Sha256>,
}

impl Floor<'_> {
    /// `serde_json` alone.
    #[must_use]
    pub fn serialize(&self) -> Vec<u8> {
        serde_json::to_vec(&self.plain).expect("it is plain data")
    }

    /// The HMAC of the same bytes alone.
    #[must_use]
    pub fn mac(&self) -> [u8; 32] {
        let mut mac = self.keyed.clone();
        mac.update(self.covered);
        mac.finalize().into_bytes().into()
    }

    /// `serde_json` alone, without a copy of any text.
    pub fn deserialize(&self) {
        let plain: Plain<'_> = serde_json::from_slice(self.content).expect("it was written by us");
        std::hint::black_box(plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lease_core::{
        auth::Verdict,
        machine::{Reply, Sighting},
    };

    /// A floor that did less than its record needs would make every ratio too large, one that did more
    /// would hide what we add.
    #[test]
    fn the_floor_writes_the_same_bytes() {
        let bed = Bed::new();
        assert_eq!(bed.floor().serialize(), *bed.encode_alone());
        let Reply::Read(Sighting::Found { verdict, .. }) = bed.judge().reply else {
            unreachable!("a read was judged");
        };
        assert_eq!(verdict, Verdict::Authentic);
    }
}
