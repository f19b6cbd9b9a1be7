//! The golden vectors. `tests/verify_vectors.py` reproduces them independently; they never change.

use super::{
    Authenticator, ClusterSecret, Verdict, canonical_bytes,
    secret::{Purpose, Subkey},
};
use crate::{hex, record::LeaseRecord};
use std::path::Path;

#[derive(serde::Deserialize)]
struct Vector {
    description: String,
    secret_hex: String,
    lease_subkey_hex: String,
    key_id_subkey_hex: String,
    key_id: String,
    canonical_hex: String,
    mac: String,
    record: String,
}

fn vectors() -> Vec<Vector> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
    };
    std::fs::read_dir(dir).unwrap().map(read).collect()
}

fn secret(digits: &str) -> ClusterSecret {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    ClusterSecret::new(&digits.as_bytes().chunks(2).map(byte).collect::<Vec<_>>()).unwrap()
}

fn digits(subkey: &Subkey) -> String {
    hex::encode(subkey.bytes())
}

#[test]
fn every_vector_is_reproduced() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 18, "a vector was added or lost; none is ever changed");
    for vector in vectors {
        let about = &vector.description;
        let secret = secret(&vector.secret_hex);
        assert_eq!(digits(&secret.subkey(Purpose::Lease)), vector.lease_subkey_hex, "{about}");
        assert_eq!(digits(&secret.subkey(Purpose::KeyId)), vector.key_id_subkey_hex, "{about}");

        let mut record = LeaseRecord::decode(vector.record.as_bytes()).unwrap();
        assert_eq!(hex::encode(&canonical_bytes(&record)), vector.canonical_hex, "{about}");
        let authenticator = Authenticator::new(record.cluster.clone(), Some(&secret));
        assert_eq!(authenticator.key_id(), Some(&*vector.key_id), "{about}");
        let judgement = authenticator.judge(vector.record.as_bytes());
        assert_eq!(judgement.verdict, Verdict::Authentic, "{about}");
        assert!(judgement.why.is_none() && !judgement.foreign_key, "{about}");

        // And written again, from the fields alone.
        (record.mac, record.key_id) = (None, None);
        authenticator.seal(&mut record, true);
        assert_eq!(record.mac.as_deref(), Some(&*vector.mac), "{about}");
        assert_eq!(record.encode(), vector.record.as_bytes(), "{about}");
    }
}

#[test]
fn case_38_a_tag_for_another_purpose_is_forged() {
    let secret = ClusterSecret::new(b"0123456789abcdef0123456789abcdef").unwrap();
    let content = br#"{"cluster":"orders","holder":"s-1","epoch":7,"seq":1,"ttl_seconds":30}"#;
    let mut record = LeaseRecord::decode(content).unwrap();
    let authenticator = Authenticator::new(record.cluster.clone(), Some(&secret));
    let other = super::Keys::new(&secret.subkey(Purpose::KeyId), secret.id());
    record.mac = Some(other.sign(&record));
    assert_eq!(authenticator.judge(&record.encode()).verdict, Verdict::Forged);
}
