//! The text of the history.

use super::{History, MAX_HISTORY_BYTES, Opened};
use crate::{
    json::{self, Object, Unreadable, Writer},
    key::{ClusterName, InstanceId},
    record::{Label, Nonce, SnapshotMark, TenureMark, TenureTag, Ttl},
};
use fencing::durable::FileIdentity;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

const FORMAT: u64 = 1;

/// The whole file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Document {
    pub(super) instance: InstanceId,
    clusters: BTreeMap<ClusterName, Entry>,
    unknown: Unknown,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Entry {
    history: History,
    unknown: Unknown,
}

/// Fields of a later version, as they are written.
type Unknown = Vec<(String, String)>;

/// Why a history is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    TooNew(u64),
    Unreadable(Unreadable),
}

impl From<Unreadable> for Refused {
    fn from(why: Unreadable) -> Self {
        Self::Unreadable(why)
    }
}

impl Document {
    pub(super) fn new(instance: InstanceId) -> Self {
        Self { instance, clusters: BTreeMap::new(), unknown: Vec::new() }
    }

    pub(super) fn history(&self, cluster: &ClusterName) -> Option<&History> {
        self.clusters.get(cluster).map(|entry| &entry.history)
    }

    pub(super) fn set(&mut self, cluster: &ClusterName, history: History) {
        self.clusters.entry(cluster.clone()).or_default().history = history;
    }

    pub(super) fn decode(content: &[u8]) -> Result<Self, Refused> {
        let mut fields = Object::from_bytes(content, MAX_HISTORY_BYTES)?;
        // First of all: nothing else of a later format can be judged.
        match fields.needed("format", "an integer from 1", json::integer)? {
            FORMAT => {}
            0 => return Err(Unreadable::Field { field: "format", expected: "1" }.into()),
            later => return Err(Refused::TooNew(later)),
        }
        let instance = fields.needed("instance", "an instance id", instance)?;
        let mut clusters = BTreeMap::new();
        let found = fields.object("clusters")?.ok_or(Unreadable::Missing { field: "clusters" })?;
        for (name, value) in found.rest() {
            let expected = "a map of cluster names";
            let name = ClusterName::new(&name)
                .map_err(|_| Unreadable::Field { field: "clusters", expected })?;
            clusters.insert(name, Entry::decode(value)?);
        }
        Ok(Self { instance, clusters, unknown: unknown(fields) })
    }

    pub(super) fn encode(&self) -> String {
        let mut clusters = Writer::default();
        for (name, entry) in &self.clusters {
            clusters.raw(name.as_str(), entry.encode());
        }
        let mut out = Writer::default();
        out.raw("format", FORMAT);
        out.text("instance", self.instance.as_str());
        out.raw("clusters", clusters.finish());
        keep(&mut out, &self.unknown);
        out.finish()
    }
}

impl Entry {
    fn decode(value: &RawValue) -> Result<Self, Unreadable> {
        let mut fields = Object::parse(value.get())?;
        let mut history = History {
            last_epoch: fields.optional("last_epoch", EPOCH, json::epoch)?,
            opened: fields.object("opened")?.map(opened).transpose()?,
            last_release: fields.optional("last_release", "32 hexadecimal digits", nonce)?,
            seen_authenticated_lease: fields
                .optional("seen_authenticated_lease", "true or false", json::boolean)?
                .unwrap_or(false),
            largest_ttl: fields.optional("largest_ttl_ms", "an integer, 1 to 86400000", ttl)?,
            newest_snapshot: fields.object("newest_snapshot")?.map(snapshot).transpose()?,
            newest_named_snapshot: fields
                .object("newest_named_snapshot")?
                .map(snapshot)
                .transpose()?,
        };
        // An epoch that was opened was held.
        history.never_below(&History::default());
        Ok(Self { history, unknown: unknown(fields) })
    }

    fn encode(&self) -> String {
        let History {
            last_epoch,
            opened,
            last_release,
            seen_authenticated_lease,
            largest_ttl,
            newest_snapshot,
            newest_named_snapshot,
        } = &self.history;
        let mut out = Writer::default();
        if let Some(epoch) = last_epoch {
            out.raw("last_epoch", epoch);
        }
        if let Some(opened) = opened {
            out.raw("opened", encode_opened(opened));
        }
        if let Some(nonce) = last_release {
            out.text("last_release", &nonce.to_string());
        }
        out.raw("seen_authenticated_lease", seen_authenticated_lease);
        if let Some(ttl) = largest_ttl {
            out.raw("largest_ttl_ms", ttl.as_millis());
        }
        let named = newest_named_snapshot;
        for (name, mark) in [("newest_snapshot", newest_snapshot), ("newest_named_snapshot", named)]
        {
            if let Some(mark) = mark {
                out.raw(name, encode_snapshot(mark));
            }
        }
        keep(&mut out, &self.unknown);
        out.finish()
    }
}

const EPOCH: &str = "an integer from 1 to 2^64 - 1";
const NUMBER: &str = "an integer from 0 to 2^64 - 1";

/// All of it or nothing: what decides about taking a lease back has no fields to ignore.
fn opened(mut fields: Object<'_>) -> Result<Opened, Unreadable> {
    let opened = Opened {
        tenure: TenureMark {
            epoch: fields.needed("epoch", EPOCH, json::epoch)?,
            tag: fields.needed("tenure", "a string of 16 lowercase hexadecimal digits", tag)?,
        },
        boot_id: fields.optional("boot_id", "a string", json::string)?,
        lock: FileIdentity {
            dev: fields.needed("dev", NUMBER, json::integer)?,
            ino: fields.needed("ino", NUMBER, json::integer)?,
        },
    };
    match fields.rest().next() {
        None => Ok(opened),
        Some(_) => Err(Unreadable::Field { field: "opened", expected: "what format 1 knows" }),
    }
}

fn tag(value: &RawValue) -> Option<TenureTag> {
    TenureTag::from_hex(&json::string(value)?)
}

fn encode_opened(opened: &Opened) -> String {
    let Opened { tenure: TenureMark { epoch, tag }, boot_id, lock } = opened;
    let mut out = Writer::default();
    out.raw("epoch", epoch);
    out.text("tenure", &tag.to_string());
    if let Some(boot_id) = boot_id {
        out.text("boot_id", boot_id);
    }
    out.raw("dev", lock.dev);
    out.raw("ino", lock.ino);
    out.finish()
}

/// All of it or nothing, like the above: what decides about a rollback.
fn snapshot(mut fields: Object<'_>) -> Result<SnapshotMark, Unreadable> {
    let mark = SnapshotMark {
        epoch: fields.needed("epoch", EPOCH, json::epoch)?,
        at: fields.needed("at", "a short text", label)?,
    };
    match fields.rest().next() {
        None => Ok(mark),
        Some(_) => Err(Unreadable::Field { field: "newest_snapshot", expected: "epoch and at" }),
    }
}

fn encode_snapshot(mark: &SnapshotMark) -> String {
    let SnapshotMark { epoch, at } = mark;
    let mut out = Writer::default();
    out.raw("epoch", epoch);
    out.text("at", at);
    out.finish()
}

fn unknown(fields: Object<'_>) -> Unknown {
    fields.rest().map(|(name, value)| (name, value.get().to_owned())).collect()
}

fn keep(out: &mut Writer, unknown: &Unknown) {
    for (name, value) in unknown {
        out.raw(name, value);
    }
}

fn instance(value: &RawValue) -> Option<InstanceId> {
    InstanceId::new(&json::string(value)?).ok()
}

fn nonce(value: &RawValue) -> Option<Nonce> {
    Nonce::from_hex(&json::string(value)?)
}

fn label(value: &RawValue) -> Option<Label> {
    Label::new(&json::string(value)?).ok()
}

fn ttl(value: &RawValue) -> Option<Ttl> {
    json::integer(value).and_then(Ttl::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencing::Epoch;
    use proptest::prelude::*;

    const LEAST: &str = r#"{"format":1,"instance":"s-1","clusters":{}}"#;

    fn refused(text: &str) -> Refused {
        Document::decode(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn case_16_empty_torn_or_zeroed_is_unreadable_never_empty() {
        let whole = r#"{"format":1,"instance":"s-1","clusters":{"a":{"last_epoch":7}}}"#;
        assert!(Document::decode(whole.as_bytes()).is_ok());
        for cut in 0..whole.len() {
            assert!(matches!(refused(&whole[..cut]), Refused::Unreadable(_)), "cut at {cut}");
        }
        let zeros = "\0".repeat(4096);
        let mostly = format!("{}{}", whole, "\0".repeat(10));
        for text in [&zeros, &mostly, "null", "[]", "{}", &format!("\u{feff}{whole}")] {
            assert!(matches!(refused(text), Refused::Unreadable(_)));
        }
    }

    #[test]
    fn a_later_format_is_told_from_damage() {
        assert_eq!(refused(r#"{"format":2,"ids":[]}"#), Refused::TooNew(2));
        for format in ["0", "1.0", "\"1\"", "-1", "null"] {
            let text = LEAST.replace("\"format\":1", &format!("\"format\":{format}"));
            assert!(matches!(refused(&text), Refused::Unreadable(_)), "{format}");
        }
    }

    #[test]
    fn what_is_not_exactly_a_history_is_unreadable() {
        let entries = [
            "null",
            "[]",
            "7",
            r#"{"last_epoch":0}"#,
            r#"{"last_epoch":7.0}"#,
            r#"{"last_epoch":null}"#,
            r#"{"last_epoch":18446744073709551616}"#,
            r#"{"last_epoch":7,"last_epoch":8}"#,
            r#"{"seen_authenticated_lease":"true"}"#,
            r#"{"seen_authenticated_lease":1}"#,
            r#"{"last_release":"xyz"}"#,
            r#"{"largest_ttl_ms":0}"#,
            r#"{"largest_ttl_ms":86400001}"#,
            r#"{"opened":7}"#,
            r#"{"opened":{"epoch":7}}"#,
            r#"{"opened":{"epoch":7,"dev":1}}"#,
            r#"{"opened":{"epoch":7,"dev":1,"ino":2}}"#,
            r#"{"opened":{"epoch":7,"tenure":"0a","dev":1,"ino":2}}"#,
            r#"{"opened":{"epoch":7,"tenure":"00112233445566aa","dev":1,"ino":-2}}"#,
            r#"{"opened":{"epoch":7,"tenure":"00112233445566aa","dev":1,"ino":2,"x":1}}"#,
            r#"{"newest_snapshot":null}"#,
            r#"{"newest_snapshot":{"epoch":7}}"#,
            r#"{"newest_snapshot":{"epoch":0,"at":""}}"#,
            r#"{"newest_named_snapshot":{"epoch":7,"at":7}}"#,
            r#"{"newest_named_snapshot":{"epoch":7,"at":"","x":1}}"#,
        ];
        for entry in entries {
            let text = LEAST.replace("{}", &format!("{{\"a\":{entry}}}"));
            assert!(matches!(refused(&text), Refused::Unreadable(_)), "{entry}");
        }
        for text in [
            LEAST.replace("s-1", "s 1"),
            LEAST.replace("{}", "[]"),
            LEAST.replace("{}", r#"{"../x":{}}"#),
            LEAST.replace("instance", "else"),
            LEAST.replace("clusters", "else"),
        ] {
            assert!(matches!(refused(&text), Refused::Unreadable(_)), "{text}");
        }
    }

    #[test]
    fn unknown_fields_survive_a_change() {
        let text = r#"{"format":1,"instance":"s-1","clusters":{"a":{"last_epoch":7,"high":{"x":[1,2.50]}}},"later":"\u0061"}"#;
        let mut document = Document::decode(text.as_bytes()).unwrap();
        let cluster = ClusterName::new("a").unwrap();
        document.set(&cluster, History { last_epoch: Epoch::new(8), ..History::default() });
        let written = document.encode();
        assert!(written.contains(r#""high":{"x":[1,2.50]}"#), "{written}");
        assert!(written.contains(r#""later":"\u0061""#), "{written}");
        assert_eq!(Document::decode(written.as_bytes()), Ok(document));
    }

    #[test]
    fn an_epoch_that_was_opened_was_held() {
        let opened = r#"{"a":{"last_epoch":3,"opened":{"epoch":7,"tenure":"00112233445566aa","dev":1,"ino":2}}}"#;
        let document = Document::decode(LEAST.replace("{}", opened).as_bytes()).unwrap();
        let history = document.history(&ClusterName::new("a").unwrap()).unwrap();
        assert_eq!(history.last_epoch, Epoch::new(7));
    }

    prop_compose! {
        fn any_history()(
            last in any::<u64>(),
            opened in prop::option::of((
                (1..=u64::MAX, any::<[u8; 8]>()), any::<Option<u64>>(), any::<(u64, u64)>()
            )),
            last_release in any::<Option<[u8; 16]>>(),
            seen_authenticated_lease in any::<bool>(),
            ttl in 0..=86_400_000_u64,
            marks in any::<[Option<(u64, u64)>; 2]>(),
        ) -> History {
            let [newest_snapshot, newest_named_snapshot] = marks.map(|mark| {
                let (epoch, at) = mark?;
                let at = Label::new(&format!("{at:x}\"\\")).unwrap();
                Some(SnapshotMark { epoch: Epoch::new(epoch)?, at })
            });
            let mut history = History {
                last_epoch: Epoch::new(last),
                opened: opened.map(|((epoch, tag), boot, (dev, ino))| Opened {
                    tenure: TenureMark {
                        epoch: Epoch::new(epoch).unwrap(),
                        tag: TenureTag::from_bytes(tag),
                    },
                    boot_id: boot.map(|boot| format!("{boot:x}-\"\\\n")),
                    lock: FileIdentity { dev, ino },
                }),
                last_release: last_release.map(Nonce::from_bytes),
                seen_authenticated_lease,
                largest_ttl: Ttl::from_millis(ttl),
                newest_snapshot,
                newest_named_snapshot,
            };
            history.never_below(&History::default());
            history
        }
    }

    proptest! {
        #[test]
        fn every_history_reads_back_as_itself(
            histories in prop::collection::btree_map("[a-z0-9]{1,8}", any_history(), 0..4),
        ) {
            let mut document = Document::new(InstanceId::random().unwrap());
            for (name, history) in histories {
                document.set(&ClusterName::new(&name).unwrap(), history);
            }
            prop_assert_eq!(Document::decode(document.encode().as_bytes()), Ok(document));
        }

        #[test]
        fn no_content_panics(text in r#"[\[\]{},:"a0.\\]{0,200}"#) {
            let _ = Document::decode(text.as_bytes());
            let _ = Document::decode(LEAST.replace("{}", &text).as_bytes());
        }
    }
}
