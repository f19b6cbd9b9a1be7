//! What is read where the lease is kept, as the machine is told of it: anything at all.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

use lease_core::{
    auth::{Authenticator, ClusterSecret, Verdict},
    key::InstanceId,
    machine::{Reply, Sighting},
    record::{Label, Ttl},
    store::{MAX_OBJECT_BYTES, Read, Version},
    wire::Wire,
};
use proptest::prelude::*;

const GOLDEN: &str = include_str!("golden/lease-v1.json");

/// Reads `content` with a secret and without one; what both say must go together.
fn judge(content: &[u8]) -> [Verdict; 2] {
    let secret = ClusterSecret::new(b"0123456789abcdef0123456789abcdef").unwrap();
    [None, Some(&secret)].map(|secret| {
        let wire = Wire {
            auth: Authenticator::new("orders".parse().unwrap(), secret),
            instance: InstanceId::new("s-1").unwrap(),
            name: Label::default(),
            ttl: Ttl::MAX,
        };
        let version = Version::new("v");
        let content = content.to_vec().into();
        let read = Read::Found { content, version: version.clone(), age: None };
        match wire.judge(Ok(read)).reply {
            Reply::Read(Sighting::Found { version: told, verdict, facts, age: None }) => {
                assert_eq!(told, version);
                assert_eq!(facts.is_none(), verdict == Verdict::Unreadable);
                verdict
            }
            other => panic!("what was found is told as {other:?}"),
        }
    })
}

#[test]
fn the_golden_file_is_judged() {
    assert_eq!(judge(GOLDEN.trim_end().as_bytes()), [Verdict::Unsigned, Verdict::Forged]);
    assert_eq!(judge(b""), [Verdict::Unreadable; 2]);
}

proptest! {
    #[test]
    fn no_damaged_record_panics(at in any::<prop::sample::Index>(), with in "\\PC{0,8}") {
        let mut text = GOLDEN.as_bytes().to_vec();
        let at = at.index(text.len());
        text.splice(at..(at + 1), with.bytes());
        let [without, _] = judge(&text);
        prop_assert_ne!(without, Verdict::Authentic);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_content_panics(
        unit in prop_oneof![
            prop::collection::vec(any::<u8>(), 1..64),
            r#"[\[\]{},:"\\a0u.e+ \-]{1,64}"#.prop_map(String::into_bytes),
        ],
        start in prop_oneof![Just(""), Just("{\"x\":"), Just(GOLDEN)],
        length in 0..=MAX_OBJECT_BYTES + 1,
    ) {
        let content: Vec<u8> =
            start.bytes().chain(unit.into_iter().cycle()).take(length).collect();
        judge(&content);
    }
}
