//! What is remembered of one tenure, and the span that follows from it.

use super::{
    entry::{Entry, FenceSaid, GateSaid, What},
    finding::{Scale, Span, TenureId},
};
use fencing::Epoch;
use std::sync::Arc;

/// Where an entry stands: its line, and its time if it has one that counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) line: u64,
    pub(super) at: Option<u64>,
}

impl Place {
    const fn on(self, scale: Scale) -> Option<u64> {
        match scale {
            Scale::Order => Some(self.line),
            Scale::Time => self.at,
        }
    }

    /// The earlier of both, each by itself: a line can be written late.
    fn earlier(self, other: Self) -> Self {
        let at = [self.at, other.at].into_iter().flatten().min();
        Self { line: self.line.min(other.line), at }
    }

    fn later(self, other: Self) -> Self {
        Self { line: self.line.max(other.line), at: self.at.max(other.at) }
    }
}

/// A tenure of which something was read.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    first_line: u64,
    pub(super) begin: Option<Place>,
    until: Option<u64>,
    end: Option<Place>,
    /// The first and the last time that its fence was open, or not asked, when it decided to write.
    open: Option<(Place, Place)>,
    /// The same of what took effect.
    pub(super) acted: Option<(Place, Place)>,
    pub(super) counts: Acts,
}

/// What a tenure did.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct Acts {
    /// Writes that took effect.
    pub acted: u64,
    /// Writes that a gate refused as stale.
    pub refused: u64,
    /// Writes that were not sent, since the fence was shut.
    pub withheld: u64,
    /// Renewals that succeeded.
    pub renewals: u64,
}

impl Acts {
    pub(super) const fn add(&mut self, other: Self) {
        self.acted += other.acted;
        self.refused += other.refused;
        self.withheld += other.withheld;
        self.renewals += other.renewals;
    }
}

/// A tenure as it is judged.
#[derive(Clone, Debug)]
pub(super) struct Judged {
    pub(super) span: Span,
    /// What `to` would be if nothing had been done past it; `None` if the ledger does not tell.
    pub(super) bound: Option<u64>,
    /// Right behind the last thing that it did, or found itself allowed to do.
    pub(super) done_until: Option<u64>,
    pub(super) has_begun: bool,
    pub(super) first_act: Option<u64>,
    pub(super) counts: Acts,
}

impl Seen {
    pub(super) const fn new(line: u64) -> Self {
        let counts = Acts { acted: 0, refused: 0, withheld: 0, renewals: 0 };
        Self {
            first_line: line,
            begin: None,
            until: None,
            end: None,
            open: None,
            acted: None,
            counts,
        }
    }

    pub(super) fn take_in(&mut self, entry: &Entry, place: Place) {
        match entry.what {
            What::Begin { until } => {
                self.begin = Some(self.begin.map_or(place, |begin| begin.earlier(place)));
                self.until = self.until.max(until.map(|until| until.as_nanos()));
            }
            What::Renewed { until } => {
                self.until = self.until.max(Some(until.as_nanos()));
                self.counts.renewals += 1;
            }
            What::End => self.end = Some(self.end.map_or(place, |end| end.earlier(place))),
            What::Write { fence, gate } => self.write(fence, gate, place),
        }
    }

    fn write(&mut self, fence: FenceSaid, gate: GateSaid, place: Place) {
        let takes_effect = match (fence, gate) {
            (_, GateSaid::Admitted) => true,
            (FenceSaid::Shut, _) | (_, GateSaid::Refused) => false,
            (FenceSaid::Open | FenceSaid::Unasked, GateSaid::Unasked) => true,
        };
        if takes_effect {
            self.counts.acted += 1;
            self.acted = Some(widened(self.acted, place));
        } else if gate == GateSaid::Refused {
            self.counts.refused += 1;
        } else {
            self.counts.withheld += 1;
        }
        // A stale write that was refused still shows that the fence was open when it was asked.
        if takes_effect || fence == FenceSaid::Open {
            self.open = Some(widened(self.open, place));
        }
    }

    /// Its span. `None` if it never began and never did anything: a takeover that came to nothing.
    pub(super) fn judged(
        &self,
        names: (&Arc<str>, &Arc<str>),
        epoch: Epoch,
        scale: Scale,
    ) -> Option<Judged> {
        // By order alone, a refused write says nothing of when its fence was asked.
        let evidence = match scale {
            Scale::Order => self.acted,
            Scale::Time => self.open,
        };
        let on = |place: Place| place.on(scale);
        let done =
            evidence.and_then(|(first, last)| Some((on(first)?, on(last)?.saturating_add(1))));
        let begin = self.begin.and_then(on);
        let from = [begin, done.map(|(first, _)| first)].into_iter().flatten().min()?;
        let until = self.until.filter(|_| scale == Scale::Time);
        let bound = [until, self.end.and_then(on)].into_iter().flatten().min();
        let done_until = done.map(|(_, last)| last);
        let line = self.begin.map_or(self.first_line, |begin| begin.line);
        let (cluster, instance) = (Arc::clone(names.0), Arc::clone(names.1));
        let tenure = TenureId { cluster, epoch, instance, line };
        let to = bound.unwrap_or(from).max(done_until.unwrap_or(from));
        Some(Judged {
            span: Span { tenure, scale, from, to },
            bound,
            done_until,
            has_begun: begin.is_some(),
            first_act: self.acted.and_then(|(first, _)| on(first)),
            counts: self.counts,
        })
    }
}

fn widened(seen: Option<(Place, Place)>, place: Place) -> (Place, Place) {
    seen.map_or((place, place), |(first, last)| (first.earlier(place), last.later(place)))
}

impl Judged {
    /// Whether this tenure and `other`, which did not begin before it, were there at once.
    pub(super) fn overlaps(&self, other: &Self) -> bool {
        let (one, two) = (&self.span, &other.span);
        if one.tenure.instance == two.tenure.instance {
            // An instance has one process at a time: when it began again, the one before was dead,
            // however far its deadline reached. What it did is another matter.
            return self.done_until.is_some_and(|done| two.from < done);
        }
        one.from.max(two.from) < one.to.min(two.to)
    }
}
