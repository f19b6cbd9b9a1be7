//! What has a bar, measured: one [`Row`] each.

pub mod fence;
pub mod local;
pub mod machine;
pub mod peers;
pub mod s3;
pub mod scale;
pub mod takeover;

use std::{fmt, time::Duration};

/// How long to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effort {
    /// Long enough to go by.
    Full,
    /// Long enough to see that it works, and about where it stands.
    Quick,
}

impl Effort {
    /// As criterion takes its command line: `None` if nothing is to be measured.
    #[must_use]
    pub fn of_bench() -> Option<Self> {
        let told = |argument| std::env::args().any(|it| it == argument);
        match told("--bench") && !told("--test") {
            _ if told("--list") => None,
            true => Some(Self::Full),
            false => Some(Self::Quick),
        }
    }

    /// So many, or in a hurry a tenth of that.
    #[must_use]
    pub const fn of(self, full: usize) -> usize {
        match self {
            Self::Full => full,
            Self::Quick => full.div_ceil(10),
        }
    }
}

/// What has to hold of a figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bar {
    /// It is no more.
    AtMost(f64),
    /// It is less.
    Below(f64),
    /// It is that.
    Exactly(f64),
    /// Nothing: it is shown for comparison.
    None,
}

impl Bar {
    fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(bar) => figure <= bar,
            Self::Below(bar) => figure < bar,
            #[expect(clippy::float_cmp, reason = "counts are whole")]
            Self::Exactly(bar) => figure == bar,
            Self::None => true,
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(bar) => write!(f, "<={bar}"),
            Self::Below(bar) => write!(f, "<{bar}"),
            Self::Exactly(bar) => write!(f, "={bar}"),
            Self::None => f.write_str("-"),
        }
    }
}

/// What came of a measurement.
#[derive(Clone, PartialEq, Debug)]
pub enum Figure {
    /// It was measured.
    Measured(f64),
    /// What it measures is not there yet.
    Pending(String),
    /// Something that it needs is not on this machine.
    Skipped(String),
}

/// One line of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name, without spaces: what is measured, beside what, in which unit if it is no ratio.
    pub path: &'static str,
    /// What was measured, beside what, for people.
    pub what: String,
    /// What came of it.
    pub figure: Figure,
    /// What has to hold.
    pub bar: Bar,
    /// How it came about: times, counts, durability.
    pub note: String,
}

impl Row {
    /// A figure that was measured.
    #[must_use]
    pub fn new(path: &'static str, figure: f64, bar: Bar, what: &str, note: String) -> Self {
        Self { path, what: what.to_owned(), figure: Figure::Measured(figure), bar, note }
    }

    /// The ratio of two ways that were measured in turn.
    #[must_use]
    pub fn of(path: &'static str, pairs: &crate::paired::Pairs, bar: Bar, what: &str) -> Self {
        let [ours, bare] = pairs.at(50);
        let note = format!(
            "{} beside {}; {:.2} at the 10th percentile; {} pairs",
            Short(ours),
            Short(bare),
            pairs.ratio_at(10),
            pairs.count()
        );
        Self::new(path, pairs.ratio(), bar, what, note)
    }

    /// What is not there yet.
    #[must_use]
    pub fn pending(path: &'static str, bar: Bar, what: &str, why: &str) -> Self {
        let figure = Figure::Pending(why.to_owned());
        Self { path, what: what.to_owned(), figure, bar, note: why.to_owned() }
    }

    /// What this machine lacks something for.
    #[must_use]
    pub fn skipped(path: &'static str, bar: Bar, what: &str, why: &str) -> Self {
        let figure = Figure::Skipped(why.to_owned());
        Self { path, what: what.to_owned(), figure, bar, note: why.to_owned() }
    }

    /// `ok`, `short` of its bar, `pending`, `skipped`, or `shown` if it has no bar.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match (&self.figure, self.bar) {
            (Figure::Measured(_), Bar::None) => "shown",
            (Figure::Measured(figure), bar) if bar.holds(*figure) => "ok",
            (Figure::Measured(_), _) => "short",
            (Figure::Pending(_), _) => "pending",
            (Figure::Skipped(_), _) => "skipped",
        }
    }

    /// The figure as it is printed.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.figure {
            Figure::Measured(figure) if figure.fract() == 0.0 && figure >= 0.0 => {
                format!("{figure:.0}")
            }
            Figure::Measured(figure) if figure >= 100.0 => format!("{figure:.0}"),
            Figure::Measured(figure) => format!("{figure:.3}"),
            Figure::Pending(_) | Figure::Skipped(_) => "-".to_owned(),
        }
    }
}

/// `path ratio bar verdict`.
impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.path, self.shown(), self.bar, self.verdict())
    }
}

/// A duration in three figures.
#[derive(Clone, Copy, Debug)]
pub struct Short(pub Duration);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_secs_f64() * 1e9;
        let (value, unit) = match nanos {
            ..1e3 => (nanos, "ns"),
            1e3..1e6 => (nanos / 1e3, "µs"),
            1e6..1e9 => (nanos / 1e6, "ms"),
            _ => (nanos / 1e9, "s"),
        };
        match value {
            ..10.0 => write!(f, "{value:.2} {unit}"),
            10.0..100.0 => write!(f, "{value:.1} {unit}"),
            _ => write!(f, "{value:.0} {unit}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_measured_and_holds_is_ok() {
        let at = |figure, bar| Row::new("p", figure, bar, "", String::new()).verdict();
        assert_eq!(at(1.15, Bar::AtMost(1.15)), "ok");
        assert_eq!(at(1.151, Bar::AtMost(1.15)), "short");
        assert_eq!(at(1.0, Bar::Below(1.0)), "short");
        assert_eq!(at(2.0, Bar::Exactly(1.0)), "short");
        assert_eq!(at(f64::NAN, Bar::AtMost(1.0)), "short");
        assert_eq!(at(2.0, Bar::None), "shown");
        assert_eq!(Row::pending("p", Bar::AtMost(1.0), "", "not yet").verdict(), "pending");
        assert_eq!(Row::skipped("p", Bar::AtMost(1.0), "", "no etcd").verdict(), "skipped");
    }
}
