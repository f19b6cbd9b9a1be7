//! What a snapshot says about itself, under the seal.
//!
//! The plaintext starts with two lines; the database follows right behind the second:
//!
//! ```text
//! <application>-ha-snapshot
//! {"format":1,"cluster":"prod","epoch":7,"instance_id":"a1b2…","created_at":"2026-10-12T09:58:41.517Z"}
//! ```
//!
//! | field | JSON | needed |
//! | --- | --- | --- |
//! | `format` | integer | yes |
//! | `cluster` | string, a [`ClusterName`] | yes |
//! | `epoch` | integer, 1 to 2^64 − 1 | yes |
//! | `instance_id` | string, an [`InstanceId`] | yes |
//! | `created_at` | string, a [`SnapshotTime`] | yes |
//! | `suffix` | string, a [`Suffix`] | if the key has one |
//!
//! Unknown fields are ignored; a key that stands twice, known or not, makes the header unreadable, as
//! in a lease. The second line is at most 4 KiB long, line break included.
//!
//! The seal authenticates both lines as one piece with what follows, so whoever wrote them held the
//! cluster's secret. They say under which one name the snapshot is what it claims to be.
//!
//! # Formats to come
//!
//! A later format keeps the first line, and a second line of at most 4 KiB that is one JSON object
//! with an integer `format` above 1. This version then says [`Start::NewerFormat`], whatever else is
//! there: such a snapshot may be the newest, and is neither refused nor restored.

use crate::name::{Application, MAX_APPLICATION_BYTES, SnapshotName, SnapshotTime, Suffix};
use fencing::Epoch;
use lease_core::{
    json::{self, Object, Unreadable, Writer},
    key::{ClusterName, InstanceId},
};
use serde_json::value::RawValue;
use std::str::FromStr;

/// The format that this version writes, and the newest that it reads.
pub const FORMAT: u64 = 1;
/// The longest second line, in bytes, line break included.
pub const MAX_LINE_BYTES: usize = 4096;
/// So much of a plaintext tells all there is to tell about its header.
pub const MAX_START_BYTES: usize = MAX_APPLICATION_BYTES + MAGIC_END.len() + MAX_LINE_BYTES;

const MAGIC_END: &str = "-ha-snapshot\n";

/// What a snapshot says about itself.
///
/// ```
/// use snapshot_format::{
///     fencing::Epoch,
///     header::{Header, Start},
///     lease_core::key::{ClusterName, InstanceId},
///     name::Application,
/// };
///
/// let orders = Application::new("orders")?;
/// let header = Header {
///     cluster: ClusterName::new("prod")?,
///     epoch: Epoch::try_from(7)?,
///     instance_id: InstanceId::new("s-1")?,
///     created_at: "2026-10-12T09:58:41.517Z".parse()?,
///     suffix: None,
/// };
/// let text = header.encode(&orders);
/// assert!(text.starts_with("orders-ha-snapshot\n{\"format\":1,\"cluster\":\"prod\",\"epoch\":7,"));
/// let bytes = text.len();
/// assert_eq!(Start::read(&orders, text.as_bytes()), Start::Header { header, bytes });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Header {
    /// The cluster whose snapshot it is.
    pub cluster: ClusterName,
    /// The epoch it was written under.
    pub epoch: Epoch,
    /// The instance that wrote it.
    pub instance_id: InstanceId,
    /// When it was taken, by that instance's wall clock.
    pub created_at: SnapshotTime,
    /// The suffix of its key, if that has one.
    pub suffix: Option<Suffix>,
}

impl Header {
    /// The one name under which this snapshot is what it says.
    #[must_use]
    pub fn name(&self) -> SnapshotName {
        let name = SnapshotName::new(self.created_at, self.epoch);
        self.suffix.map_or(name, |suffix| name.with_suffix(suffix))
    }

    /// Both lines, as they start the plaintext. Below [`MAX_START_BYTES`].
    #[must_use]
    pub fn encode(&self, application: &Application) -> String {
        let mut out = Writer::default();
        out.raw("format", FORMAT);
        out.text("cluster", self.cluster.as_str());
        out.raw("epoch", self.epoch);
        out.text("instance_id", self.instance_id.as_str());
        out.text("created_at", &self.created_at.to_string());
        if let Some(suffix) = self.suffix {
            out.text("suffix", &suffix.to_string());
        }
        format!("{application}{MAGIC_END}{}\n", out.finish())
    }
}

/// What a plaintext starts with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Start {
    /// A header, and the database behind it.
    Header {
        /// What it says.
        header: Header,
        /// Its length in bytes: the database starts there.
        bytes: usize,
    },
    /// The header of a later version's format.
    NewerFormat {
        /// Its format.
        format: u64,
    },
    /// The first line of this application's header, and then something else.
    Bad(BadHeader),
    /// The first line of another application's header.
    OtherApplication,
    /// Nothing of a header: a database alone, as it was written before there were headers.
    Headerless,
}

impl Start {
    /// Where the database starts.
    pub(crate) const fn header_bytes(&self) -> usize {
        match self {
            Self::Header { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    /// Looks at the start of a plaintext: all of it, or at least its first [`MAX_START_BYTES`].
    ///
    /// It can be anything at all: nothing here panics, and memory and stack are bounded.
    #[must_use]
    pub fn read(application: &Application, plaintext: &[u8]) -> Self {
        let magic = format!("{application}{MAGIC_END}");
        let Some(rest) = plaintext.strip_prefix(magic.as_bytes()) else {
            return without_magic(magic.as_bytes(), plaintext);
        };
        let window = &rest[..rest.len().min(MAX_LINE_BYTES)];
        let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
            let is_cut = window.len() < MAX_LINE_BYTES;
            return Self::Bad(if is_cut { BadHeader::Cut } else { BadHeader::NoLineBreak });
        };
        match line(&window[..end]) {
            Ok(Line::Header(header)) => Self::Header { header, bytes: magic.len() + end + 1 },
            Ok(Line::Newer(format)) => Self::NewerFormat { format },
            Err(why) => Self::Bad(why),
        }
    }
}

fn without_magic(magic: &[u8], plaintext: &[u8]) -> Start {
    if magic.starts_with(plaintext) {
        return Start::Bad(BadHeader::Cut);
    }
    let window = &plaintext[..plaintext.len().min(MAX_APPLICATION_BYTES + MAGIC_END.len())];
    let first = window.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
    let name = first.strip_suffix(MAGIC_END.as_bytes()).and_then(|name| str::from_utf8(name).ok());
    match name.map(Application::new) {
        Some(Ok(_)) => Start::OtherApplication,
        _ => Start::Headerless,
    }
}

enum Line {
    Header(Header),
    Newer(u64),
}

fn line(text: &[u8]) -> Result<Line, BadHeader> {
    let mut fields = Object::from_bytes(text, MAX_LINE_BYTES)?;
    match fields.needed("format", "an integer", json::integer)? {
        FORMAT => {}
        0 => return Err(Unreadable::Field { field: "format", expected: "1 or more" }.into()),
        newer => return Ok(Line::Newer(newer)),
    }
    Ok(Line::Header(Header {
        cluster: fields.needed("cluster", "the name of a cluster", parsed)?,
        epoch: fields.needed("epoch", "an integer from 1 to 2^64 - 1", json::epoch)?,
        instance_id: fields.needed("instance_id", "the id of an instance", parsed)?,
        created_at: fields.needed("created_at", "a time as 2026-10-12T09:58:41.517Z", parsed)?,
        suffix: fields.optional("suffix", "16 lowercase hexadecimal digits", parsed)?,
    }))
}

fn parsed<T: FromStr>(value: &RawValue) -> Option<T> {
    json::string(value)?.parse().ok()
}

/// What follows the first line of a header is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadHeader {
    /// The plaintext ends within the header.
    #[error("the plaintext ends within it")]
    Cut,
    /// The second line does not end within [`MAX_LINE_BYTES`].
    #[error("its second line is longer than 4096 bytes")]
    NoLineBreak,
    /// The second line is not the JSON that it must be.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn orders() -> Application {
        Application::new("orders").unwrap()
    }

    fn read(plaintext: impl AsRef<[u8]>) -> Start {
        Start::read(&orders(), plaintext.as_ref())
    }

    const LINE: &str = r#"{"format":1,"cluster":"prod","epoch":7,"instance_id":"s-1","created_at":"2026-10-12T09:58:41.517Z"}"#;

    fn with_line(line: impl AsRef<[u8]>) -> Start {
        read([b"orders-ha-snapshot\n", line.as_ref(), b"\ndatabase"].concat())
    }

    fn is_unreadable(start: &Start) -> bool {
        matches!(start, Start::Bad(BadHeader::Unreadable(_)))
    }

    #[test]
    fn the_line_of_the_reference_reads() {
        let Start::Header { header, bytes } = with_line(LINE) else {
            panic!("{:?}", with_line(LINE))
        };
        assert_eq!(header.encode(&orders()), format!("orders-ha-snapshot\n{LINE}\n"));
        assert_eq!(bytes, "orders-ha-snapshot\n".len() + LINE.len() + 1);
        assert_eq!(header.name().to_string(), "20261012T095841.517Z-e7");
        // Unknown fields are for later versions.
        let later = LINE.replace("{", r#"{"later":[{"x":1}],"#);
        assert!(matches!(with_line(later), Start::Header { header: same, .. } if same == header));
    }

    #[test]
    fn case_43_a_header_without_a_line_break_within_4_kib_is_refused() {
        let padded = |spaces: usize| LINE.replace('{', &format!("{{{}", " ".repeat(spaces)));
        let room = MAX_LINE_BYTES - 1 - LINE.len();
        assert!(matches!(with_line(padded(room)), Start::Header { .. }));
        assert_eq!(with_line(padded(room + 1)), Start::Bad(BadHeader::NoLineBreak));
        assert_eq!(with_line(" ".repeat(65_536)), Start::Bad(BadHeader::NoLineBreak));
        assert_eq!(read(format!("orders-ha-snapshot\n{LINE}")), Start::Bad(BadHeader::Cut));
        // Even of a later format.
        let newer = padded(room + 1).replace(r#""format":1"#, r#""format":2"#);
        assert_eq!(with_line(newer), Start::Bad(BadHeader::NoLineBreak));
    }

    #[test]
    fn a_newer_format_is_told_from_a_bad_header() {
        for (line, format) in [
            (r#"{"format":2}"#, 2),
            (r#"{"cluster":7,"format":18446744073709551615,"epoch":"x"}"#, u64::MAX),
        ] {
            assert_eq!(with_line(line), Start::NewerFormat { format }, "{line}");
        }
        for line in [
            "{}",
            r#"{"format":0}"#,
            r#"{"format":"2"}"#,
            r#"{"format":2.0}"#,
            r#"{"format":-2}"#,
            r#"{"format":18446744073709551616}"#,
            r#"{"format":2,"format":2}"#,
            r#"{"format":2,"x":1,"x":1}"#,
            r#"[2]"#,
            r#"{"format":2}x"#,
        ] {
            assert!(is_unreadable(&with_line(line)), "{line}: {:?}", with_line(line));
        }
    }

    #[test]
    fn case_43_odd_values_are_refused() {
        for (good, bad) in [
            ("\"prod\"", "\"Prod\""),
            ("\"prod\"", "\"\""),
            ("\"prod\"", "7"),
            ("\"prod\"", "\"pr\\u0000d\""),
            (":7,", ":0,"),
            (":7,", ":7.0,"),
            (":7,", ":\"7\","),
            (":7,", ":18446744073709551616,"),
            ("\"s-1\"", "\"s 1\""),
            ("\"s-1\"", "null"),
            ("41.517Z", "60.517Z"),
            ("41.517Z", "41Z"),
            ("41.517Z", "41.517+00:00"),
            ("\"2026-", "\"10000-"),
            ("\"2026-", "\"+2026-"),
            ("\"epoch\":7", "\"epoch\":7,\"epoch\":7"),
            ("\"epoch\":7", "\"epoch\":7,\"\\u0065poch\":7"),
            ("\"epoch\":7,", ""),
            ("\"epoch\":7", "\"epoch\":7,\"suffix\":\"\""),
            ("\"epoch\":7", "\"epoch\":7,\"suffix\":null"),
            ("\"epoch\":7", "\"epoch\":7,\"suffix\":\"00000000000000AB\""),
        ] {
            let line = LINE.replacen(good, bad, 1);
            assert!(is_unreadable(&with_line(&line)), "{line}");
        }
        assert!(is_unreadable(&with_line(b"\xff\xfe")));
        assert!(is_unreadable(&with_line("")));
        assert!(is_unreadable(&with_line("[".repeat(4000))));
    }

    #[test]
    fn what_has_no_header_is_told_from_what_lost_it_and_from_another_application_s() {
        assert_eq!(read("SQLite format 3\0"), Start::Headerless);
        assert_eq!(read("x"), Start::Headerless);
        assert_eq!(read(vec![0; 65_536]), Start::Headerless);
        assert_eq!(read("Orders-ha-snapshot\n{}"), Start::Headerless);
        assert_eq!(read("-ha-snapshot\n{}"), Start::Headerless);
        for cut in ["", "o", "orders-ha-snapshot", "orders-ha-snapshot\n", "orders-ha-snapshot\n{"]
        {
            assert_eq!(read(cut), Start::Bad(BadHeader::Cut), "{cut}");
        }
        let long = "a".repeat(MAX_APPLICATION_BYTES);
        for other in ["bills", "orders2", "orders-ha-snapshot", &long] {
            let start = read(format!("{other}-ha-snapshot\n{LINE}\n"));
            assert_eq!(start, Start::OtherApplication, "{other}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_written_reads_back(
            epoch in 1..=u64::MAX,
            nanos: u64,
            suffix: Option<u64>,
            cluster in "[a-z0-9][a-z0-9._-]{0,50}x",
            instance in "[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}",
        ) {
            let header = Header {
                cluster: ClusterName::new(&cluster).unwrap(),
                epoch: Epoch::new(epoch).unwrap(),
                instance_id: InstanceId::new(&instance).unwrap(),
                created_at: SnapshotTime::from_wall(fencing::WallTime::from_unix_nanos(nanos)),
                suffix: suffix.map(Suffix::from_bits),
            };
            let text = header.encode(&orders());
            prop_assert!(text.len() < MAX_START_BYTES);
            prop_assert_eq!(read(&text), Start::Header { header, bytes: text.len() });
        }

        #[test]
        fn nothing_panics(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&line);
            let _ = with_line(&line);
        }
    }
}
