//! The bytes that a MAC covers.

use crate::{
    key::InstanceId,
    record::{LeaseRecord, Record},
};
use fencing::Epoch;

/// What kind of record the bytes are of, and in which version of the rules. The first field of all,
/// so that no record passes for one of another kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Lease,
    NamedLease,
    Session,
}

impl Kind {
    const fn label(self) -> &'static str {
        match self {
            Self::Lease => "holdfast lease v1",
            Self::NamedLease => "holdfast named lease v1",
            Self::Session => "holdfast session v1",
        }
    }
}

/// What the MAC of a record covers, in order, for whoever writes a second implementation; here of a
/// lease:
///
/// ```text
/// canonical = field(label) field(cluster) field(epoch) field(holder) field(ttl in ms)
///             field(last_snapshot_epoch) field(last_snapshot_at)
/// label     = "holdfast lease v1"
/// field(x)  = 0x00                            if x is absent
///           | 0x01, length as u32 BE, x       if x is text, in UTF-8
///           | 0x01, 0x00000008, x as u64 BE   if x is an integer
/// ```
///
/// A released lease has the *empty* holder, not an absent one. Every field says how long it is and
/// whether it is there, and a kind has a fixed number of them, so no two different records give the
/// same bytes. `seq`, `nonce`, `renewed_at`, `holder_name`, `key_id` stay outside.
///
/// The other kinds have another label and more fields behind these, see
/// [`session::record`](crate::session::record).
///
/// ```
/// use lease_core::{auth::canonical_bytes, record::LeaseRecord};
///
/// let record = LeaseRecord::decode(
///     br#"{"cluster":"c","holder":"h","epoch":1,"seq":0,"ttl_seconds":0.05}"#,
/// )?;
/// let bytes = canonical_bytes(&record);
/// assert_eq!(&bytes[..5], b"\x01\x00\x00\x00\x11");       // a field of 17 bytes: the label
/// assert!(bytes.ends_with(b"\x01\x00\x00\x00\x08\0\0\0\0\0\0\0\x32\x00\x00"));
/// # Ok::<(), lease_core::record::Unreadable>(())
/// ```
#[must_use]
pub fn canonical_bytes<R: Record>(record: &R) -> Vec<u8> {
    record.canonical()
}

/// Fields, each framed by whether it is there and how long it is.
pub(crate) struct Canonical(Vec<u8>);

impl Canonical {
    pub(crate) fn of(kind: Kind) -> Self {
        Self(Vec::with_capacity(256)).text(Some(kind.label()))
    }

    /// The fields that every kind has, in front of those of its own.
    pub(crate) fn of_lease(kind: Kind, record: &LeaseRecord) -> Self {
        // Named one by one, so that a field that is added is sorted into one of the two groups.
        let LeaseRecord {
            cluster,
            holder,
            epoch,
            ttl,
            last_snapshot,
            holder_name: _,
            seq: _,
            nonce: _,
            renewed_at: _,
            key_id: _,
            mac: _,
        } = record;
        let mark = last_snapshot.as_ref();
        Self::of(kind)
            .text(Some(cluster.as_str()))
            .integer(Some(epoch.as_u64()))
            .text(Some(holder.as_ref().map_or("", InstanceId::as_str)))
            .integer(Some(ttl.as_millis()))
            .integer(mark.map(|mark| mark.epoch).map(Epoch::as_u64))
            .text(mark.map(|mark| mark.at.as_str()))
    }

    pub(crate) fn text(self, text: Option<&str>) -> Self {
        self.field(text.map(str::as_bytes))
    }

    pub(crate) fn integer(self, number: Option<u64>) -> Self {
        self.field(number.map(u64::to_be_bytes).as_ref().map(<[u8; 8]>::as_slice))
    }

    fn field(mut self, bytes: Option<&[u8]>) -> Self {
        match bytes {
            None => self.0.push(0),
            Some(bytes) => {
                let length = u32::try_from(bytes.len()).expect("labels and names are short");
                self.0.push(1);
                self.0.extend(length.to_be_bytes());
                self.0.extend(bytes);
            }
        }
        self
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn framed(fields: &[Option<String>]) -> Vec<u8> {
        let start = Canonical::of(Kind::Lease);
        fields.iter().fold(start, |out, field| out.text(field.as_deref())).finish()
    }

    #[test]
    fn case_35_fields_have_borders_and_absence_is_not_emptiness() {
        let text = |text: &str| Some(text.to_owned());
        let lists = [
            [text("ab"), text("c")],
            [text("a"), text("bc")],
            [text(""), text("abc")],
            [None, text("abc")],
            [text("abc"), text("")],
            [text("abc"), None],
            [None, None],
            [text(""), text("")],
            // What a border looks like, inside a field.
            [text("\u{1}\0\0\0\u{1}a"), None],
            [text("\u{1}"), text("")],
            [text(""), text("\u{1}")],
            [text("\0"), None],
        ];
        for (at, list) in lists.iter().enumerate() {
            for other in &lists[at + 1..] {
                assert_ne!(framed(list), framed(other), "{list:?} {other:?}");
            }
        }
        assert_ne!(
            Canonical::of(Kind::Lease).integer(None).finish(),
            Canonical::of(Kind::Lease).integer(Some(0)).finish()
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn different_fields_have_different_bytes(
            a in prop::collection::vec(prop::option::of("[\0\u{1}a]{0,3}"), 3),
            b in prop::collection::vec(prop::option::of("[\0\u{1}a]{0,3}"), 3),
        ) {
            prop_assert_eq!(a == b, framed(&a) == framed(&b));
        }
    }
}
