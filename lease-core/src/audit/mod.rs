//! Did two instances ever act at once? An auditor reads what they wrote down, and proves that they
//! did not, or shows the pair.
//!
//! A service, or a test of one, lets every instance append to one file, the *ledger*: when a tenure
//! begins, when it was renewed, every write with its epoch and what the fence and the gate said to
//! it, and when the tenure ends. The [`Auditor`] reads that as a stream. It needs no lease and no
//! runtime, and knows nothing of how the instances came to hold what they held.
//!
//! ```
//! use lease_core::audit::{Auditor, Finding, Verdict};
//!
//! let mut auditor = Auditor::new();
//! auditor.read(&br#"
//!     {"what":"begin","instance":"a","epoch":1,"at":0,"until":1000}
//!     {"what":"write","instance":"a","epoch":1,"at":10,"fence":"open","gate":"admitted"}
//!     {"what":"begin","instance":"b","epoch":2,"at":999,"until":2000}
//! "#[..])?;
//! let report = auditor.finish();
//! assert_eq!(report.verdict(), Verdict::Violated);
//! let Finding::Overlap { first, second } = &report.findings()[0] else { panic!("{report}") };
//! assert_eq!((first.to, second.from), (1000, 999));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The ledger
//!
//! JSON, one object on each line ([`Entry`] reads and writes them):
//!
//! | field | in | |
//! | --- | --- | --- |
//! | `what` | all | `begin`, `renewed`, `write`, `end`; or `note`, which is passed over with all that is in it |
//! | `cluster` | all | whose lease; may be left out where the ledger is about one |
//! | `instance` | all | who says it. One process at a time has this name |
//! | `epoch` | all | the tenure, an integer from 1 |
//! | `at` | all | when: nanoseconds of the suspend-aware clock ([`SystemClock`](fencing::SystemClock)) of the one machine that the instances of the cluster are on. Optional, for all or for none |
//! | `clock` | all | which machine and boot `at` is of; optional. Two of them in one cluster are a gap |
//! | `until` | `begin`, `renewed` | the deadline at which the fence shuts by itself; optional in `begin` |
//! | `fence` | `write` | `open`, `shut` (the write was withheld), `unasked` |
//! | `gate` | `write` | `admitted`, `refused`; left out where there is no gate |
//!
//! Other fields are ignored, and so are empty lines. `begin` is not later than the opening of the
//! fence, and `end` not earlier than its shutting; the `at` of a write is the time at which its fence
//! was asked. Writes that a gate admits stand in the ledger in the order in which it admitted them:
//! let them be appended while the admission is held. The order of all other lines is free, where there
//! are times: whoever was stopped may write late.
//!
//! # What is proved
//!
//! The *span* of a tenure is from its `begin` to the earlier of its `end` and its last deadline, and
//! never less than what it did. Spans are half-open.
//!
//! 1. No spans of two instances in one cluster overlap. One instance overlaps with itself only if it did
//!    something under one epoch after it began the next: the process of before was dead by then,
//!    whatever its deadline.
//! 2. From begin to begin the epochs grow, and no two tenures have the same.
//! 3. No gate admitted a write after one with a larger epoch, and nothing was written through a fence
//!    that was shut, or past the end of its own tenure.
//!
//! **Without times** the order of the lines stands for them, and a span ends with the `end` of the
//! tenure. That is a proof only where each line was written when it happened.
//!
//! What is missing is told as a gap, and leaves the verdict [`Unproved`](Verdict::Unproved): a line
//! that cannot be read, a tenure that acted without a begin, one that is followed by another and has
//! neither deadline nor end. Nothing proves that what is *not* in a ledger did not happen: where there
//! is no gate, a ledger tells when a write was decided on, and not when it arrived.
//!
//! # Memory
//!
//! Writes cost nothing: what is kept is a few hundred bytes for each tenure, of the newest
//! [65 536](Auditor::remember) to twice as many in each cluster; and the first [`FINDINGS_MAX`]
//! findings. A line is at most [`LINE_BYTES_MAX`] bytes.

mod cluster;
mod entry;
mod finding;
mod lines;
mod report;
mod tenure;

pub use entry::{Entry, FenceSaid, Flaw, GateSaid, LINE_BYTES_MAX, What};
pub use finding::{Finding, Scale, Span, TenureId};
pub use report::{FINDINGS_MAX, Report, TenureReport, Verdict};
pub use tenure::Acts;

use cluster::Cluster;
use lines::Line;
use report::Findings;
use std::{
    collections::BTreeMap,
    io::{self, BufRead},
};

/// Reads a ledger and judges it.
///
/// See the [module](self) for what a ledger is and what is proved.
#[derive(Debug)]
#[must_use = "the verdict is what `finish` returns"]
pub struct Auditor {
    clusters: BTreeMap<String, Cluster>,
    findings: Findings,
    lines: u64,
    torn: u64,
    are_torn_lines_last_words: bool,
    remembered: usize,
}

impl Default for Auditor {
    fn default() -> Self {
        Self {
            clusters: BTreeMap::new(),
            findings: Findings::default(),
            lines: 0,
            torn: 0,
            are_torn_lines_last_words: false,
            remembered: 1 << 16,
        }
    }
}

impl Auditor {
    /// An auditor that has read nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a torn line for the last words of a process that died while it wrote it, and no gap.
    ///
    /// That is so where each process appends a line by one write, and stops if that fails: nothing
    /// else tears one. The report names it as an assumption.
    pub fn torn_lines_are_last_words(self) -> Self {
        Self { are_torn_lines_last_words: true, ..self }
    }

    /// How many tenures of each cluster are at least remembered; 65 536 if this is not said.
    ///
    /// Older ones are judged and forgotten once there are twice as many. A line about one of them is a
    /// gap from then on.
    pub fn remember(self, tenures: usize) -> Self {
        Self { remembered: tenures.max(1), ..self }
    }

    /// Reads all lines. Whatever they are, they are findings at worst.
    ///
    /// May be called again for the next part of a ledger, or for the ledger of another machine whose
    /// clusters are others.
    ///
    /// # Errors
    ///
    /// Only what the reader itself fails with. What was read until then counts.
    pub fn read(&mut self, mut from: impl BufRead) -> io::Result<()> {
        let mut buffer = Vec::new();
        while let Some(line) = lines::next(&mut from, &mut buffer)? {
            let read = match line {
                Line::Whole => Entry::parse(&buffer),
                Line::TooLong => Err(Flaw::TooLong),
            };
            self.lines += 1;
            match read {
                Ok(Some(entry)) => self.take_in(&entry),
                Ok(None) => {}
                Err(Flaw::Torn) if self.are_torn_lines_last_words => self.torn += 1,
                Err(flaw) => self.findings.add(Finding::Flawed { line: self.lines, flaw }),
            }
        }
        Ok(())
    }

    /// Takes in an entry as the next line.
    pub fn note(&mut self, entry: &Entry) {
        self.lines += 1;
        self.take_in(entry);
    }

    fn take_in(&mut self, entry: &Entry) {
        if !self.clusters.contains_key(&entry.cluster) {
            self.clusters.insert(entry.cluster.clone(), Cluster::new(entry));
        }
        let Some(cluster) = self.clusters.get_mut(&entry.cluster) else { return };
        cluster.take_in(entry, self.lines, &mut self.findings);
        if cluster.len() > self.remembered.saturating_mul(2) {
            cluster.forget_all_but(self.remembered, &mut self.findings);
        }
    }

    /// Judges what was read.
    #[must_use]
    pub fn finish(mut self) -> Report {
        let clusters = std::mem::take(&mut self.clusters);
        let mut judgements = Vec::new();
        for cluster in clusters.into_values() {
            judgements.push(cluster.finish(&mut self.findings));
        }
        if judgements.iter().all(|judgement| judgement.tenures == 0) {
            self.findings.add(Finding::Empty);
        }
        let mut report = Report::new(self.lines, self.torn, self.findings);
        for judgement in judgements {
            report.add(judgement);
        }
        report
    }
}
