//! One line of a ledger.

use crate::json::{self, Object, Unreadable, Writer};
use fencing::{Epoch, MonotonicTime};
use serde_json::value::RawValue;

/// The longest line that is read, without its line feed.
pub const LINE_BYTES_MAX: usize = 16 * 1024;

/// What a process says in a ledger: one line.
///
/// ```
/// use lease_core::audit::{Entry, FenceSaid, GateSaid, What};
/// use lease_core::fencing::{Epoch, MonotonicTime};
///
/// let write = What::Write { fence: FenceSaid::Open, gate: GateSaid::Admitted };
/// let entry = Entry::new("orders", "a", Epoch::new(7).unwrap(), write)
///     .at(MonotonicTime::from_nanos(1_500_000_000));
/// let line = entry.to_line();
/// assert_eq!(
///     line,
///     "{\"what\":\"write\",\"cluster\":\"orders\",\"instance\":\"a\",\"epoch\":7,\"at\":1500000000,\
///      \"fence\":\"open\",\"gate\":\"admitted\"}\n"
/// );
/// assert_eq!(Entry::parse(line.as_bytes())?, Some(entry));
/// # Ok::<(), lease_core::audit::Flaw>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// Whose lease it is about. Empty where a ledger is about one.
    pub cluster: String,
    /// Who says it: one process at a time has this name.
    pub instance: String,
    /// The tenure.
    pub epoch: Epoch,
    /// When, by the suspend-aware clock of the one machine that all processes of the cluster are on.
    pub at: Option<MonotonicTime>,
    /// Which machine, and which boot of it, if that is told: times of two clocks say nothing to
    /// each other.
    pub clock: Option<String>,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum What {
    /// The tenure begins: its fence was not open before this entry's time.
    Begin {
        /// The fence shuts by itself then (half-open), unless a renewal succeeds before.
        until: Option<MonotonicTime>,
    },
    /// The fence is certainly shut from this entry's time on. An observer who saw the process die may
    /// say so in its place.
    End,
    /// A renewal succeeded.
    Renewed {
        /// The fence shuts by itself then, unless another one does.
        until: MonotonicTime,
    },
    /// A write to the protected resource was decided on. The entry's time is that of the decision.
    Write {
        /// What the fence said.
        fence: FenceSaid,
        /// What the resource said.
        gate: GateSaid,
    },
}

/// What the fence said before a write.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceSaid {
    /// The tenure may act.
    Open,
    /// It may not: the write was not sent.
    Shut,
    /// It was not asked.
    Unasked,
}

/// What the gate at the resource said.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GateSaid {
    /// The write took effect. It stands in the ledger at the place at which the gate let it in.
    Admitted,
    /// The token was stale: nothing happened.
    Refused,
    /// There is none: what was sent took effect.
    Unasked,
}

/// Why a line is no entry.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Flaw {
    /// It is longer than [`LINE_BYTES_MAX`].
    #[error("longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    /// It begins as an entry and has no end: whoever wrote it died meanwhile, or the disk was full.
    #[error("torn: it has no end")]
    Torn,
    /// It is anything else.
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}

impl Entry {
    /// An entry without a time.
    #[must_use]
    pub fn new(cluster: &str, instance: &str, epoch: Epoch, what: What) -> Self {
        let (cluster, instance) = (cluster.to_owned(), instance.to_owned());
        Self { cluster, instance, epoch, at: None, clock: None, what }
    }

    /// The same at a time.
    #[must_use]
    pub fn at(self, at: MonotonicTime) -> Self {
        Self { at: Some(at), ..self }
    }

    /// The same by a named clock, for instance the boot id of the machine.
    #[must_use]
    pub fn by_clock(self, name: &str) -> Self {
        Self { clock: Some(name.to_owned()), ..self }
    }

    /// Reads one line, with its line feed or without. `None`: an empty line, or a note.
    ///
    /// # Errors
    ///
    /// [`Flaw`] if it is anything else.
    pub fn parse(line: &[u8]) -> Result<Option<Self>, Flaw> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(None);
        }
        if line.len() > LINE_BYTES_MAX {
            return Err(Flaw::TooLong);
        }
        match fields(line) {
            Err(Unreadable::Syntax { .. } | Unreadable::NotUtf8)
                if line.starts_with(b"{") && !line.ends_with(b"}") =>
            {
                Err(Flaw::Torn)
            }
            read => Ok(read?),
        }
    }

    /// The line, with its line feed.
    ///
    /// Append it in one write to a file that was opened to append (`O_APPEND`), so that the lines of
    /// several processes do not mix. A process that is killed can still tear its line where it crosses
    /// a page of the file; a line feed in front of each line too keeps the next one whole.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut out = Writer::default();
        out.text("what", self.what.name());
        if !self.cluster.is_empty() {
            out.text("cluster", &self.cluster);
        }
        out.text("instance", &self.instance);
        out.raw("epoch", self.epoch);
        if let Some(at) = self.at {
            out.raw("at", at.as_nanos());
        }
        if let Some(clock) = &self.clock {
            out.text("clock", clock);
        }
        match self.what {
            What::Begin { until: Some(until) } | What::Renewed { until } => {
                out.raw("until", until.as_nanos());
            }
            What::Begin { until: None } | What::End => {}
            What::Write { fence, gate } => {
                out.text("fence", fence.name());
                if let Some(said) = gate.name() {
                    out.text("gate", said);
                }
            }
        }
        out.finish() + "\n"
    }
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Begin { .. } => "begin",
            Self::End => "end",
            Self::Renewed { .. } => "renewed",
            Self::Write { .. } => "write",
        }
    }
}

impl FenceSaid {
    const fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Shut => "shut",
            Self::Unasked => "unasked",
        }
    }

    fn read(value: &RawValue) -> Option<Self> {
        let said = json::string(value)?;
        [Self::Open, Self::Shut, Self::Unasked].into_iter().find(|it| it.name() == said)
    }
}

impl GateSaid {
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Admitted => Some("admitted"),
            Self::Refused => Some("refused"),
            Self::Unasked => None,
        }
    }

    fn read(value: &RawValue) -> Option<Self> {
        let said = json::string(value)?;
        [Self::Admitted, Self::Refused].into_iter().find(|it| it.name() == Some(&said))
    }
}

fn fields(line: &[u8]) -> Result<Option<Entry>, Unreadable> {
    let mut fields = Object::from_bytes(line, LINE_BYTES_MAX)?;
    let expected = "begin, renewed, write, end or note";
    let what = fields.needed("what", expected, json::string)?;
    if what == "note" {
        return Ok(None);
    }
    let cluster = fields.optional("cluster", "a string", json::string)?.unwrap_or_default();
    let instance = fields.needed("instance", "a string", json::string)?;
    let epoch = fields.needed("epoch", "an integer from 1 to 2^64 - 1", json::epoch)?;
    let at = fields.optional("at", "nanoseconds", time)?;
    let clock = fields.optional("clock", "a string", json::string)?;
    let what = match &*what {
        "begin" => What::Begin { until: fields.optional("until", "nanoseconds", time)? },
        "renewed" => What::Renewed { until: fields.needed("until", "nanoseconds", time)? },
        "write" => What::Write {
            fence: fields.needed("fence", "open, shut or unasked", FenceSaid::read)?,
            gate: fields
                .optional("gate", "admitted or refused", GateSaid::read)?
                .unwrap_or(GateSaid::Unasked),
        },
        "end" => What::End,
        _ => return Err(Unreadable::Field { field: "what", expected }),
    };
    Ok(Some(Entry { cluster, instance, epoch, at, clock, what }))
}

fn time(value: &RawValue) -> Option<MonotonicTime> {
    json::integer(value).map(MonotonicTime::from_nanos)
}
