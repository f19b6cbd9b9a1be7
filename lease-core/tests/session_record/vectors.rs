//! The golden vectors, which never change. `tests/verify_vectors.py` reproduces them independently, and
//! judges those that are to be refused.

use lease_core::{
    ObjectKey,
    auth::{Authenticator, ClusterSecret, Verdict, canonical_bytes},
    key::ClusterName,
    record::{KeyedRecord, Record},
    session::record::{NamedLeaseRecord, SessionRecord},
};
use serde_json::Value;
use std::{fs, path::Path};

fn vectors(directory: &str, count: usize) -> Vec<Value> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let read = |path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let vectors: Vec<Value> = paths.filter(|path| path.is_file()).map(read).collect();
    assert_eq!(vectors.len(), count, "a vector was added or lost; none is ever changed");
    vectors
}

fn secret(digits: &str) -> Option<ClusterSecret> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    let bytes: Vec<u8> = digits.as_bytes().chunks(2).map(byte).collect();
    (!bytes.is_empty()).then(|| ClusterSecret::new(&bytes).unwrap())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text<'v>(vector: &'v Value, field: &str) -> &'v str {
    vector[field].as_str().unwrap()
}

fn reproduce<R: KeyedRecord>(vector: &Value, cluster: impl Fn(&R) -> ClusterName) {
    let about = text(vector, "description");
    let content = text(vector, "record").as_bytes();
    let key = ObjectKey::new(text(vector, "object_key")).unwrap();
    let mut record = R::decode(content).unwrap();
    assert_eq!(hex(&canonical_bytes(&record)), text(vector, "canonical_hex"), "{about}");

    let auth = Authenticator::new(cluster(&record), secret(text(vector, "secret_hex")).as_ref());
    assert_eq!(auth.key_id(), vector["key_id"].as_str(), "{about}");
    let judged = auth.judge_at::<R>(content, &key);
    assert_eq!((judged.verdict, judged.why), (Verdict::Authentic, None), "{about}");
    // And written again, from the fields alone.
    auth.seal(&mut record, false);
    auth.seal(&mut record, true);
    assert_eq!(record.encode(), content, "{about}");
}

#[test]
fn every_vector_is_reproduced() {
    for vector in vectors("session_vectors", 28) {
        match text(&vector, "kind") {
            "session" => reproduce(&vector, |record: &SessionRecord| record.lease.cluster.clone()),
            "named lease" => {
                reproduce(&vector, |record: &NamedLeaseRecord| record.lease.cluster.clone());
            }
            other => panic!("a vector of the kind {other}"),
        }
    }
}

fn judge<R: Record + KeyedRecord>(vector: &Value) -> Verdict {
    let cluster = ClusterName::new(text(vector, "cluster")).unwrap();
    let auth = Authenticator::new(cluster, secret(text(vector, "secret_hex")).as_ref());
    let key = ObjectKey::new(text(vector, "object_key")).unwrap();
    auth.judge_at::<R>(text(vector, "record").as_bytes(), &key).verdict
}

#[test]
fn every_vector_to_be_refused_is_refused_as_it_says() {
    for vector in vectors("session_vectors/refused", 73) {
        let verdict = match text(&vector, "kind") {
            "session" => judge::<SessionRecord>(&vector),
            "named lease" => judge::<NamedLeaseRecord>(&vector),
            other => panic!("a vector of the kind {other}"),
        };
        let about = text(&vector, "description");
        assert_eq!(format!("{verdict:?}"), text(&vector, "verdict"), "{about}");
        assert_ne!(verdict, Verdict::Authentic, "{about}");
    }
}
