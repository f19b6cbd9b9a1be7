//! The journal of a swap that is under way: enough to finish it or to undo it.
//!
//! It holds no names of files. They follow from the database's own, so that no journal, whatever is
//! in it, leads to another file.

use super::{
    SettleError,
    files::{BackupName, Files, Token},
};
use crate::name::{Mark, SnapshotTime};
use fencing::{
    Epoch,
    durable::{Content, WriteError},
};
use lease_core::json::{self, Object, Unreadable, Writer};

const FORMAT: u64 = 1;
const MAX_BYTES: usize = 4096;

/// ```text
/// {"format":1,"incoming":"0f1e2d3c4b5a6978","epoch":7,"replaced_at":"2026-10-12T09:58:41.517Z",
///  "snapshot_epoch":6,"snapshot_at":"2026-10-12T09:51:07.002Z"}
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Journal {
    pub(super) incoming: Token,
    /// The epoch under which the swap is made.
    pub(super) epoch: Epoch,
    /// The time in the backup's name; `None` if there was no database before.
    pub(super) replaced_at: Option<SnapshotTime>,
    /// Which snapshot is installed, for the high-water mark.
    pub(super) snapshot: Option<Mark>,
}

impl Journal {
    pub(super) fn backup(&self) -> Option<BackupName> {
        self.replaced_at.map(|at| BackupName { at, epoch: self.epoch })
    }

    /// The journal, if there is one.
    pub(super) fn read(files: &Files) -> Result<Option<Self>, SettleError> {
        let name = files.journal();
        let path = || files.path_of(&name);
        let content = match files.directory.read_bounded(&name, MAX_BYTES)? {
            None => return Ok(None),
            Some(Content::Whole(content)) => content,
            Some(Content::Oversize(_)) => {
                let why = Unreadable::TooLarge { bytes_max: MAX_BYTES };
                return Err(SettleError::Journal { path: path(), why });
            }
        };
        match Self::decode(&content) {
            Ok(journal) => Ok(Some(journal)),
            Err(Refused::TooNew(format)) => Err(SettleError::TooNew { path: path(), format }),
            Err(Refused::Unreadable(why)) => Err(SettleError::Journal { path: path(), why }),
        }
    }

    pub(super) fn write(&self, files: &Files) -> Result<(), WriteError> {
        files.directory.create_new(&files.journal(), self.encode().as_bytes(), || Ok(()))
    }

    fn encode(&self) -> String {
        let mut out = Writer::default();
        out.raw("format", FORMAT);
        out.text("incoming", &self.incoming.to_string());
        out.raw("epoch", self.epoch);
        if let Some(at) = self.replaced_at {
            out.text("replaced_at", &at.to_string());
        }
        if let Some(mark) = self.snapshot {
            out.raw("snapshot_epoch", mark.epoch);
            out.text("snapshot_at", &mark.at.to_string());
        }
        out.finish()
    }

    fn decode(content: &[u8]) -> Result<Self, Refused> {
        const EPOCH: &str = "an integer from 1 to 2^64 - 1";
        const TIME: &str = "a time in UTC with milliseconds";
        let mut fields = Object::from_bytes(content, MAX_BYTES)?;
        match fields.needed("format", "an integer from 1", json::integer)? {
            FORMAT => {}
            0 => return Err(Unreadable::Field { field: "format", expected: "1" }.into()),
            later => return Err(Refused::TooNew(later)),
        }
        let time = |text: String| text.parse::<SnapshotTime>().ok();
        let token = |text: String| Token::parse(text.as_bytes());
        let snapshot_epoch = fields.optional("snapshot_epoch", EPOCH, json::epoch)?;
        let snapshot_at =
            fields.optional("snapshot_at", TIME, |v| json::string(v).and_then(time))?;
        let snapshot = match (snapshot_epoch, snapshot_at) {
            (Some(epoch), Some(at)) => Some(Mark { epoch, at }),
            (None, None) => None,
            (Some(_), None) => return Err(Unreadable::Missing { field: "snapshot_at" }.into()),
            (None, Some(_)) => return Err(Unreadable::Missing { field: "snapshot_epoch" }.into()),
        };
        let journal = Self {
            incoming: fields.needed("incoming", "16 hexadecimal digits", |value| {
                json::string(value).and_then(token)
            })?,
            epoch: fields.needed("epoch", EPOCH, json::epoch)?,
            replaced_at: fields
                .optional("replaced_at", TIME, |v| json::string(v).and_then(time))?,
            snapshot,
        };
        match fields.rest().next() {
            None => Ok(journal),
            // A step that this version does not know cannot be settled by it.
            Some(_) => Err(Refused::Unreadable(Unreadable::Field {
                field: "a field of its own",
                expected: "what format 1 knows",
            })),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refused {
    TooNew(u64),
    Unreadable(Unreadable),
}

impl From<Unreadable> for Refused {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Journal {
        Journal {
            incoming: Token::parse(b"0f1e2d3c4b5a6978").unwrap(),
            epoch: Epoch::MAX,
            replaced_at: Some("2026-10-12T09:58:41.517Z".parse().unwrap()),
            snapshot: Some(Mark { epoch: Epoch::MIN, at: SnapshotTime::MAX }),
        }
    }

    #[test]
    fn a_journal_reads_back_as_itself() {
        for journal in [
            whole(),
            Journal { replaced_at: None, ..whole() },
            Journal { snapshot: None, ..whole() },
        ] {
            assert_eq!(Journal::decode(journal.encode().as_bytes()), Ok(journal));
        }
    }

    #[test]
    fn what_is_not_exactly_a_journal_is_unreadable() {
        let text = whole().encode();
        for cut in 0..text.len() {
            assert!(matches!(
                Journal::decode(&text.as_bytes()[..cut]),
                Err(Refused::Unreadable(_))
            ));
        }
        for (from, to) in [
            ("0f1e2d3c4b5a6978", "../../etc/passwd"),
            ("0f1e2d3c4b5a6978", "0F1E2D3C4B5A6978"),
            ("0f1e2d3c4b5a6978", ""),
            ("09:58:41.517Z", "09:58:60.517Z"),
            ("\"epoch\":18446744073709551615", "\"epoch\":0"),
            ("\"snapshot_epoch\":1,", ""),
            ("\"snapshot_at\"", "\"snapshot_when\""),
            ("\"epoch\"", "\"step\":2,\"epoch\""),
            ("\"format\":1", "\"format\":0"),
            ("\"format\":1", "\"format\":1,\"format\":1"),
        ] {
            let bad = text.replace(from, to);
            assert_ne!(bad, text);
            let decoded = Journal::decode(bad.as_bytes());
            assert!(matches!(decoded, Err(Refused::Unreadable(_))), "{bad}");
        }
        let later = text.replace("\"format\":1", "\"format\":2");
        assert_eq!(Journal::decode(later.as_bytes()), Err(Refused::TooNew(2)));
    }
}
