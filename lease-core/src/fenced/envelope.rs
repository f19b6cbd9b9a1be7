//! The bytes of a fenced object.

use super::{EnvelopeFlaw, Stamp};
use crate::{
    hex,
    json::{self, Object, Writer},
    record::Nonce,
};
use bytes::Bytes;
use sha2::{Digest as _, Sha256};

/// What the envelope adds to a content, at most: 256 bytes.
pub const OVERHEAD_BYTES_MAX: usize = 256;

/// How every envelope begins, of this version and of any later one.
const BEGIN: &[u8] = b"{\"fenced\":";
const FORMAT: u64 = 1;

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Envelope {
    pub(super) stamp: Stamp,
    pub(super) nonce: Nonce,
    /// `None`: a tombstone.
    pub(super) content: Option<Bytes>,
}

/// Why bytes are no envelope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NoEnvelope {
    /// They do not even begin as one.
    Foreign,
    /// They begin as one.
    Damaged(EnvelopeFlaw),
}

impl Envelope {
    pub(super) fn encode(&self) -> Bytes {
        let content = self.content.as_deref().unwrap_or_default();
        let mut header = Writer::default();
        header.raw("fenced", FORMAT);
        header.raw("epoch", self.stamp.epoch);
        header.raw("counter", self.stamp.counter);
        header.text("nonce", &self.nonce.to_string());
        header.text("state", if self.content.is_some() { "content" } else { "absent" });
        header.text("sha256", &hex::encode(&Sha256::digest(content)));
        let header = header.finish();
        debug_assert!(header.len() < OVERHEAD_BYTES_MAX);
        let mut bytes = Vec::with_capacity(header.len() + 1 + content.len());
        bytes.extend_from_slice(header.as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(content);
        bytes.into()
    }

    pub(super) fn decode(bytes: &Bytes) -> Result<Self, NoEnvelope> {
        if !bytes.starts_with(BEGIN) {
            return Err(NoEnvelope::Foreign);
        }
        Self::parse(bytes).map_err(NoEnvelope::Damaged)
    }

    fn parse(bytes: &Bytes) -> Result<Self, EnvelopeFlaw> {
        let beginning = &bytes[..bytes.len().min(OVERHEAD_BYTES_MAX)];
        let end = beginning.iter().position(|byte| *byte == b'\n').ok_or(EnvelopeFlaw::Torn)?;
        let mut header = Object::from_bytes(&bytes[..end], OVERHEAD_BYTES_MAX)?;
        let format = header.needed("fenced", "a whole number", json::integer)?;
        if format != FORMAT {
            return Err(EnvelopeFlaw::Format { format });
        }
        let epoch = header.needed("epoch", "a whole number from 1 to 2^64 - 1", json::epoch)?;
        let counter = header.needed("counter", "a whole number", json::integer)?;
        let nonce = header.needed("nonce", "32 hexadecimal digits", |value| {
            Nonce::from_hex(&json::string(value)?)
        })?;
        let is_present = header.needed("state", "\"content\" or \"absent\"", |value| {
            match json::string(value)?.as_str() {
                "content" => Some(true),
                "absent" => Some(false),
                _ => None,
            }
        })?;
        let digest: [u8; 32] = header.needed("sha256", "64 hexadecimal digits", |value| {
            hex::decode(&json::string(value)?)
        })?;
        let content = bytes.slice(end + 1..);
        if Sha256::digest(&content)[..] != digest || (!is_present && !content.is_empty()) {
            return Err(EnvelopeFlaw::Content);
        }
        let stamp = Stamp { epoch, counter };
        Ok(Self { stamp, nonce, content: is_present.then_some(content) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencing::Epoch;

    fn envelope(content: Option<&'static [u8]>) -> Envelope {
        let stamp = Stamp { epoch: Epoch::new((1 << 53) + 1).unwrap(), counter: 3 };
        let nonce = Nonce::from_bytes([0xab; 16]);
        Envelope { stamp, nonce, content: content.map(Bytes::from_static) }
    }

    fn flaw(text: impl Into<Bytes>) -> EnvelopeFlaw {
        match Envelope::decode(&text.into()) {
            Err(NoEnvelope::Damaged(flaw)) => flaw,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_is_read_and_the_first_version_is_read_for_ever() {
        for content in [None, Some(&b""[..]), Some(b"\n\0\xff{}\r\n"), Some(&[b'\n'; 5000])] {
            let written = envelope(content);
            assert_eq!(Envelope::decode(&written.encode()), Ok(written));
        }
        let golden = concat!(
            r#"{"fenced":1,"epoch":9007199254740993,"counter":3,"#,
            r#""nonce":"abababababababababababababababab","state":"content","#,
            r#""sha256":"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}"#,
            "\nabc"
        );
        assert_eq!(envelope(Some(b"abc")).encode(), golden);
        let later = golden.replace("\"state\"", "\"new\":[{}],\"state\"");
        assert_eq!(Envelope::decode(&later.into()), Ok(envelope(Some(b"abc"))), "unknown fields");
    }

    #[test]
    fn the_overhead_is_bounded() {
        let stamp = Stamp { epoch: Epoch::MAX, counter: u64::MAX };
        let largest = Envelope { stamp, ..envelope(Some(b"")) };
        assert!(largest.encode().len() <= OVERHEAD_BYTES_MAX);
    }

    #[test]
    fn case_33_a_token_out_of_range_is_damage() {
        let good = String::from_utf8(envelope(Some(b"abc")).encode().into()).unwrap();
        for bad in ["0", "18446744073709551616", "7.0", "1e3", "-1", "\"7\"", "true", "null"] {
            let text = good.replace("9007199254740993", bad);
            let EnvelopeFlaw::Header(_) = flaw(text) else { panic!("{bad}") };
        }
    }

    #[test]
    fn what_is_cut_changed_or_of_another_format_is_damage() {
        let good = envelope(Some(b"abc")).encode();
        for end in BEGIN.len()..good.len() {
            let whole_header = good[..end].contains(&b'\n');
            let expected = if whole_header { EnvelopeFlaw::Content } else { EnvelopeFlaw::Torn };
            assert_eq!(flaw(good.slice(..end)), expected, "{end}");
        }
        let text = String::from_utf8(good.to_vec()).unwrap();
        assert_eq!(flaw(text.replace("\nabc", "\nabd")), EnvelopeFlaw::Content);
        assert_eq!(flaw(text.replace("\"content\"", "\"absent\"")), EnvelopeFlaw::Content);
        assert_eq!(
            flaw(text.replace("fenced\":1", "fenced\":2")),
            EnvelopeFlaw::Format { format: 2 }
        );
        for (old, new) in [
            ("\"counter\":3", "\"counter\":3,\"counter\":3"),
            ("\"counter\":3,", ""),
            ("abababab", "ABABABAB"),
            ("\"state\":\"content\"", "\"state\":\"other\""),
            ("\"sha256\":\"ba", "\"sha256\":\""),
        ] {
            let EnvelopeFlaw::Header(_) = flaw(text.replacen(old, new, 1)) else { panic!("{new}") };
        }
    }

    #[test]
    fn what_does_not_begin_as_an_envelope_is_foreign() {
        let good = envelope(Some(b"abc")).encode();
        for end in 0..BEGIN.len() {
            assert_eq!(Envelope::decode(&good.slice(..end)), Err(NoEnvelope::Foreign));
        }
        for text in ["balance 100", "{}", "[1]", "null", " {\"fenced\":1}", "\u{feff}{\"fenced\":1"]
        {
            assert_eq!(Envelope::decode(&Bytes::from(text)), Err(NoEnvelope::Foreign), "{text}");
        }
    }
}
