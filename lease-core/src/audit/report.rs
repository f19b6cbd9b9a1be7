//! What an audit comes to.

use super::{
    cluster::Judgement,
    finding::{Finding, Scale, Span},
    tenure::{Acts, Judged},
};
use std::{collections::BTreeSet, fmt, time::Duration};

/// How many findings are kept; the others are counted.
pub const FINDINGS_MAX: usize = 1000;

#[derive(Debug, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    violations: u64,
    gaps: u64,
}

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        let (count, most) = match finding.is_violation() {
            true => (&mut self.violations, FINDINGS_MAX),
            // However many lines are garbage, they leave room for what went wrong.
            false => (&mut self.gaps, FINDINGS_MAX / 2),
        };
        if *count < most as u64 && self.kept.len() < FINDINGS_MAX {
            self.kept.push(finding);
        }
        *count += 1;
    }

    /// The same for a pair that may have been told before.
    pub(super) fn add_once(&mut self, finding: Finding) {
        if !self.kept.iter().any(|it| it.is_of_the_same_pair(&finding)) {
            self.add(finding);
        }
    }
}

/// What an audit comes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// No two tenures overlapped, epochs grew, and no stale write was let in.
    Proved,
    /// Nothing of the kind was found, but the ledger has gaps in which it could be.
    Unproved,
    /// Something was found.
    Violated,
}

/// One tenure of a report.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct TenureReport {
    /// From when until when it may have acted.
    pub span: Span,
    /// The first thing that it did, as the span is measured.
    pub first_act: Option<u64>,
    /// How much it did.
    pub acts: Acts,
}

/// What an [`Auditor`](super::Auditor) found.
///
/// Its `Display` is for people: the verdict in one line, what it covers, and what is assumed; or the
/// findings, each with the pair that it is about.
#[derive(Debug)]
pub struct Report {
    findings: Findings,
    tenures: Vec<TenureReport>,
    closest: Option<(Duration, Span, Span)>,
    lines: u64,
    clusters: usize,
    instances: usize,
    tenures_count: u64,
    acts: Acts,
    torn: u64,
    scales: BTreeSet<&'static str>,
}

impl Report {
    pub(super) fn new(lines: u64, torn: u64, findings: Findings) -> Self {
        Self {
            findings,
            tenures: Vec::new(),
            closest: None,
            lines,
            clusters: 0,
            instances: 0,
            tenures_count: 0,
            acts: Acts::default(),
            torn,
            scales: BTreeSet::new(),
        }
    }

    pub(super) fn add(&mut self, judgement: Judgement) {
        self.clusters += 1;
        self.instances += judgement.instances;
        self.tenures_count += judgement.tenures;
        self.acts.add(judgement.counts);
        self.tenures.extend(judgement.judged.into_iter().map(TenureReport::from));
        let scale = match judgement.scale {
            Scale::Order => "their order in the ledger, which has no times",
            Scale::Time => "the times of one clock",
        };
        self.scales.insert(scale);
        if judgement.scale == Scale::Time
            && let Some((apart, one, other)) = judgement.closest
        {
            let apart = Duration::from_nanos(apart);
            if self.closest.as_ref().is_none_or(|(least, ..)| apart < *least) {
                self.closest = Some((apart, one, other));
            }
        }
    }

    /// The verdict.
    #[must_use]
    pub const fn verdict(&self) -> Verdict {
        match (self.findings.violations, self.findings.gaps) {
            (0, 0) => Verdict::Proved,
            (0, _) => Verdict::Unproved,
            _ => Verdict::Violated,
        }
    }

    /// What was found: the first [`FINDINGS_MAX`], gaps among them up to half of that.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings.kept
    }

    /// How many findings there are that show that something went wrong, kept or not.
    #[must_use]
    pub const fn violations(&self) -> u64 {
        self.findings.violations
    }

    /// How many pairs of tenures overlapped, of the findings that are kept.
    #[must_use]
    pub fn overlaps(&self) -> usize {
        let is_overlap = |it: &&Finding| matches!(it, Finding::Overlap { .. });
        self.findings.kept.iter().filter(is_overlap).count()
    }

    /// How many gaps there are, kept or not.
    #[must_use]
    pub const fn gaps(&self) -> u64 {
        self.findings.gaps
    }

    /// The tenures that are remembered, cluster by cluster, each in the order of their begins.
    #[must_use]
    pub fn tenures(&self) -> &[TenureReport] {
        &self.tenures
    }

    /// How many tenures were judged, remembered or not.
    #[must_use]
    pub const fn tenures_count(&self) -> u64 {
        self.tenures_count
    }

    /// What all of them did.
    #[must_use]
    pub const fn acts(&self) -> Acts {
        self.acts
    }

    /// How many lines there are.
    #[must_use]
    pub const fn lines(&self) -> u64 {
        self.lines
    }

    /// How many of them were torn, and taken for the last words of a process: see
    /// [`Auditor::torn_lines_are_last_words`](super::Auditor::torn_lines_are_last_words).
    #[must_use]
    pub const fn last_words(&self) -> u64 {
        self.torn
    }

    /// The two tenures of different instances that came closest to each other, one behind the other,
    /// and how far apart they were. Only where there are times.
    #[must_use]
    pub fn closest(&self) -> Option<(Duration, &Span, &Span)> {
        self.closest.as_ref().map(|(apart, one, other)| (*apart, one, other))
    }

    fn assumptions(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scales: Vec<_> = self.scales.iter().copied().collect();
        writeln!(f, "  judged by  {}", scales.join("; and by "))?;
        f.write_str("  assumed    every tenure and every write is in the ledger")?;
        if self.scales.iter().any(|scale| scale.contains("one clock")) {
            f.write_str("; all times are of one clock of one machine")?;
            f.write_str("; a fence shuts at its deadline")?;
        }
        f.write_str("; an instance has one process at a time")?;
        if self.torn > 0 {
            write!(f, "; whoever tore a line ({} torn) did nothing more", self.torn)?;
        }
        writeln!(f)
    }
}

impl From<Judged> for TenureReport {
    fn from(judged: Judged) -> Self {
        Self { span: judged.span, first_act: judged.first_act, acts: judged.counts }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Acts { acted, refused, withheld, renewals } = self.acts;
        let tenures = self.tenures_count;
        match self.verdict() {
            Verdict::Proved => writeln!(f, "proved: no two of {tenures} tenures overlapped")?,
            Verdict::Unproved => writeln!(
                f,
                "unproved: no two of {tenures} tenures are seen to overlap, but the ledger has {} \
                 gaps",
                self.gaps()
            )?,
            Verdict::Violated => {
                writeln!(f, "VIOLATED: {} findings in {tenures} tenures", self.violations())?;
            }
        }
        writeln!(
            f,
            "  covers     {} lines: {} clusters, {} instances, {renewals} renewals",
            self.lines, self.clusters, self.instances
        )?;
        writeln!(
            f,
            "  writes     {acted} took effect, {refused} refused as stale, {withheld} withheld at a \
             shut fence"
        )?;
        if let Some((apart, one, other)) = self.closest() {
            writeln!(f, "  closest    {apart:?} between {} and {}", one.tenure, other.tenure)?;
        }
        self.assumptions(f)?;
        for finding in self.findings() {
            writeln!(f, "- {finding}")?;
        }
        let left_out = self.violations() + self.gaps() - self.findings.kept.len() as u64;
        if left_out > 0 {
            writeln!(f, "- and {left_out} more")?;
        }
        Ok(())
    }
}
