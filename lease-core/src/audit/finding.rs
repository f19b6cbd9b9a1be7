//! What an audit finds.

use super::entry::Flaw;
use fencing::Epoch;
use std::{fmt, sync::Arc, time::Duration};

/// A tenure as a ledger has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub struct TenureId {
    /// Whose lease; empty where the ledger is about one.
    pub cluster: Arc<str>,
    /// Its token.
    pub epoch: Epoch,
    /// Who held it.
    pub instance: Arc<str>,
    /// The line that begins it, or else the first about it, from 1.
    pub line: u64,
}

impl fmt::Display for TenureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Whatever a line says: it is not to move the cursor.
        write!(f, "epoch {} of {}", self.epoch, self.instance.escape_debug())?;
        if !self.cluster.is_empty() {
            write!(f, " in {}", self.cluster.escape_debug())?;
        }
        write!(f, " (line {})", self.line)
    }
}

/// What spans are measured in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scale {
    /// Lines of the ledger, from 1.
    Order,
    /// Nanoseconds of the one clock that all entries have.
    Time,
}

/// From when until when a tenure may have acted, half-open. Never taken to be shorter than it was,
/// where the ledger tells how long that is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Span {
    /// Which tenure.
    pub tenure: TenureId,
    /// What the two ends are measured in.
    pub scale: Scale,
    /// Its fence was not open before.
    pub from: u64,
    /// Its fence was shut by then.
    pub to: u64,
}

impl Span {
    fn point(&self, at: u64) -> impl fmt::Display {
        Point { scale: self.scale, at }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: from {} to {}", self.tenure, self.point(self.from), self.point(self.to))
    }
}

struct Point {
    scale: Scale,
    at: u64,
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scale {
            Scale::Order => write!(f, "line {}", self.at),
            Scale::Time => {
                write!(f, "{}.{:09} s", self.at / 1_000_000_000, self.at % 1_000_000_000)
            }
        }
    }
}

/// Something that must not be in a ledger.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Finding {
    /// The fence of a tenure was found open at or past the end that the ledger itself gives it.
    ActedPastEnd {
        /// The tenure; its span reaches to what was done.
        span: Span,
        /// The end that it was given: its last deadline, or when it was said to be over.
        end: u64,
    },
    /// There is no tenure in the ledger, so that nothing is proved by it.
    Empty,
    /// A tenure is followed by another, and neither a deadline nor an end is told of it.
    EndUnknown {
        /// The tenure.
        tenure: TenureId,
    },
    /// Two tenures began under one epoch.
    EpochReused {
        /// The one that the ledger has first.
        first: TenureId,
        /// The other.
        second: TenureId,
    },
    /// A tenure began after one with a larger epoch.
    EpochWentBack {
        /// The one that began before, with the larger epoch.
        before: TenureId,
        /// The one that began after it.
        after: TenureId,
    },
    /// A line is no entry, so that it is not known what it would have said.
    Flawed {
        /// Which, from 1.
        line: u64,
        /// Why not.
        flaw: Flaw,
    },
    /// A line is about a tenure so old that it is not remembered: see
    /// [`Auditor::remember`](super::Auditor::remember).
    Forgotten {
        /// Which, from 1.
        line: u64,
        /// The epoch that it is about.
        epoch: Epoch,
    },
    /// A tenure acted, and nothing is told of when it began.
    NoBegin {
        /// The tenure.
        tenure: TenureId,
    },
    /// Two tenures overlapped.
    Overlap {
        /// The one that began first.
        first: Span,
        /// The other.
        second: Span,
    },
    /// A gate let in a write after one with a larger token.
    StaleAdmitted {
        /// The tenure whose write it was.
        tenure: TenureId,
        /// The line of that write.
        line: u64,
        /// The larger token.
        newer: Epoch,
        /// The line at which it was let in.
        newer_line: u64,
    },
    /// An entry has no time, although the first of its cluster has one.
    TimeMissing {
        /// The first such line.
        line: u64,
    },
    /// Entries of one cluster have times of different clocks.
    TwoClocks {
        /// The first line by another clock than the first of its cluster.
        line: u64,
    },
    /// A write took effect although the fence was shut.
    WroteAlthoughShut {
        /// The tenure.
        tenure: TenureId,
        /// The line of the write.
        line: u64,
    },
}

impl Finding {
    /// Whether it shows that something went wrong. Otherwise it is a gap: what the ledger says does
    /// not suffice to prove that nothing did.
    #[must_use]
    pub const fn is_violation(&self) -> bool {
        match self {
            Self::ActedPastEnd { .. }
            | Self::EpochReused { .. }
            | Self::EpochWentBack { .. }
            | Self::Overlap { .. }
            | Self::StaleAdmitted { .. }
            | Self::WroteAlthoughShut { .. } => true,
            Self::Empty
            | Self::EndUnknown { .. }
            | Self::Flawed { .. }
            | Self::Forgotten { .. }
            | Self::NoBegin { .. }
            | Self::TimeMissing { .. }
            | Self::TwoClocks { .. } => false,
        }
    }

    pub(super) fn is_of_the_same_pair(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Overlap { first, second }, Self::Overlap { first: one, second: two }) => {
                first.tenure == one.tenure && second.tenure == two.tenure
            }
            (Self::EpochWentBack { .. }, Self::EpochWentBack { .. })
            | (Self::EndUnknown { .. }, Self::EndUnknown { .. }) => self == other,
            _ => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ActedPastEnd { span, end } => {
                let (end, to) = (span.point(*end), span.point(span.to));
                write!(
                    f,
                    "{}: it was to end at {end}, and still acted right before {to}",
                    span.tenure
                )
            }
            Self::Empty => f.write_str("there is no tenure in it: nothing is proved"),
            Self::EndUnknown { tenure } => write!(
                f,
                "{tenure}: neither its deadline nor its end is told, and another one followed"
            ),
            Self::EpochReused { first, second } => {
                write!(f, "one epoch, two tenures:\n    {first}\n    {second}")
            }
            Self::EpochWentBack { before, after } => {
                write!(f, "the epoch went back:\n    {before}, and after it\n    {after}")
            }
            Self::Flawed { line, flaw } => write!(f, "line {line} is no entry: {flaw}"),
            Self::Forgotten { line, epoch } => write!(
                f,
                "line {line} is about epoch {epoch}, which is too old to be remembered: audit it \
                 with a longer memory"
            ),
            Self::NoBegin { tenure } => write!(f, "{tenure}: it acted, and its begin is not told"),
            Self::Overlap { first, second } => overlap(f, first, second),
            Self::StaleAdmitted { tenure, line, newer, newer_line } => write!(
                f,
                "{tenure}: its write of line {line} was admitted after one of epoch {newer} (line \
                 {newer_line})"
            ),
            Self::TimeMissing { line } => {
                write!(f, "line {line} has no time, and the first of its cluster has one")
            }
            Self::TwoClocks { line } => write!(
                f,
                "line {line} is by another clock than the first of its cluster: their times say \
                 nothing to each other"
            ),
            Self::WroteAlthoughShut { tenure, line } => {
                write!(f, "{tenure}: line {line} was written although its fence was shut")
            }
        }
    }
}

fn overlap(f: &mut fmt::Formatter<'_>, first: &Span, second: &Span) -> fmt::Result {
    let common = first.to.min(second.to).saturating_sub(second.from);
    match first.scale {
        Scale::Time => write!(f, "two tenures overlapped for {:?}:", Duration::from_nanos(common))?,
        Scale::Order => write!(f, "two tenures overlapped for {common} lines:")?,
    }
    write!(f, "\n    {first}\n    {second}")
}
