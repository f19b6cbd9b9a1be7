//! What phase lock is worth: the same kills with it and without it.

use crate::{
    Setup,
    ledger::{Side, Tenure},
    round::{Outcome, Round, RoundError},
    table,
    wire::Moment,
};
use comfy_table::Table;
use serde::Serialize;
use std::{io, path::Path, time::Duration};

/// How many renewals a standby watches before the kill: long enough that the reads with which it
/// searches for the phase at first do not decide how many it makes per R.
const RENEWALS: usize = 60;
/// How many it watches at most, if it has not found their phase by then.
pub(crate) const RENEWALS_MAX: u32 = 90;
/// How much more often than without phase lock it may read.
const REQUESTS_MAX: f64 = 1.1;

/// How a standby watched before the kill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    /// From its first read to its last.
    span: Duration,
    /// How many came after the first.
    reads: usize,
    /// It knew when the renewals come.
    has_found: bool,
    /// The renewals meanwhile, and those that came more than R + R/20 after the one before.
    renewals: usize,
    late: usize,
}

/// Lets the standby watch, with phase lock until it has found the phase.
pub(crate) async fn watch(
    round: &mut Round<'_>,
    tenure: &Tenure,
    phase_lock: bool,
) -> Result<(), RoundError> {
    let before = tenure.renewals.len();
    round
        .until("the standby to have watched for long", |round| {
            let seen = renewals(round).len().saturating_sub(before);
            let may_go = !phase_lock || has_found(round) || seen >= RENEWALS_MAX as usize;
            (seen >= RENEWALS && may_go).then_some(())
        })
        .await
}

/// When the first holder renewed.
fn renewals<'a>(round: &'a Round<'_>) -> &'a [Moment] {
    round.ledger.tenures.first().map_or(&[], |it| &it.renewals)
}

/// Counts what the standby has read so far.
pub(crate) fn count(round: &mut Round<'_>) -> Result<(), RoundError> {
    let has_found = has_found(round);
    let apart = round.setup().timing.renew().mul_f64(1.05);
    let late = renewals(round).windows(2).filter(|two| two[1].since(two[0]) > apart).count();
    let renewals = renewals(round).len();
    // The very first one, before it can know anything, looks whether the secrets agree.
    if let [_, first, .., last] = round.member(Side::B)?.reads[..] {
        let reads = round.member(Side::B)?.reads.len() - 2;
        round.watched = Some(Watched { span: last.since(first), reads, has_found, renewals, late });
    }
    Ok(())
}

/// Whether the standby reads close behind the renewals.
fn has_found(round: &mut Round<'_>) -> bool {
    let close = round.setup().timing.renew() / 10;
    round.member(Side::B).is_ok_and(|it| it.phase.is_some_and(|behind| behind <= close))
}

/// The rounds with phase lock, or those without.
struct Half {
    takeovers: Vec<Duration>,
    watched: Vec<Watched>,
    reads_per_renew: f64,
}

impl Half {
    fn of(setup: &Setup, outcomes: &[Outcome], phase_lock: bool) -> Self {
        let own = || outcomes.iter().filter(|it| it.id.phase_lock == Some(phase_lock));
        let mut takeovers: Vec<_> =
            own().filter_map(|it| it.takeover).map(|it| it.measured).collect();
        takeovers.sort_unstable();
        let watched: Vec<_> = own().filter_map(|it| it.watched).collect();
        let reads: usize = watched.iter().map(|it| it.reads).sum();
        let reads = f64::from(u32::try_from(reads).unwrap_or(u32::MAX));
        let span: Duration = watched.iter().map(|it| it.span).sum();
        let reads_per_renew = reads / span.div_duration_f64(setup.timing.renew());
        Self { takeovers, watched, reads_per_renew }
    }

    /// In the middle of an even number: of the two there, their mean.
    fn median(&self) -> Option<Duration> {
        let count = self.takeovers.len();
        let upper = self.takeovers.get(count / 2)?;
        let lower = self.takeovers.get(count.saturating_sub(1) / 2)?;
        Some((*lower + *upper) / 2)
    }

    fn row(&self, name: &str) -> Vec<String> {
        let time = |it: Option<Duration>| {
            it.map_or_else(|| "-".to_owned(), |it| format!("{:.3}", it.as_secs_f64()))
        };
        let watched: Duration = self.watched.iter().map(|it| it.span).sum();
        vec![
            name.to_owned(),
            self.takeovers.len().to_string(),
            time(self.takeovers.first().copied()),
            time(self.median()),
            time(self.takeovers.last().copied()),
            format!("{:.1}", watched.as_secs_f64()),
            self.watched.iter().map(|it| it.reads).sum::<usize>().to_string(),
            format!("{:.3}", self.reads_per_renew),
        ]
    }
}

/// What is written of one half: from when the last renewal was sent until the other was active.
#[derive(Serialize)]
struct Kills {
    took_nanos: Vec<u64>,
    reads_per_renew: f64,
}

impl From<Half> for Kills {
    fn from(half: Half) -> Self {
        let nanos = |took: &Duration| u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let took_nanos = half.takeovers.iter().map(nanos).collect();
        Self { took_nanos, reads_per_renew: half.reads_per_renew }
    }
}

#[derive(Serialize)]
struct Compared {
    locked: Kills,
    unlocked: Kills,
}

/// Writes every takeover to a file.
pub(crate) fn write(setup: &Setup, outcomes: &[Outcome], path: &Path) -> io::Result<()> {
    let [locked, unlocked] = [true, false].map(|lock| Kills::from(Half::of(setup, outcomes, lock)));
    std::fs::write(path, serde_json::to_vec(&Compared { locked, unlocked })?)
}

/// Both halves, what the columns mean, and whether what is promised of phase lock held.
pub(crate) fn report(setup: &Setup, outcomes: &[Outcome]) -> (Table, String, bool) {
    let [with, without] = [true, false].map(|lock| Half::of(setup, outcomes, lock));
    let mut table = table::narrow([
        "phase lock",
        "kills",
        "min",
        "median",
        "max",
        "watched",
        "reads",
        "reads per R",
    ]);
    table.add_row(with.row("on")).add_row(without.row("off"));
    let bound = setup.timing.ttl() + setup.timing.renew() / 4;
    let ratio = with.reads_per_renew / without.reads_per_renew;
    let is_soon = with.median().is_some_and(|median| median <= bound);
    let is_cheap = ratio <= REQUESTS_MAX; // not so either if nothing was read
    let found = with.watched.iter().filter(|it| it.has_found).count();
    let both = || with.watched.iter().chain(&without.watched);
    let late: usize = both().map(|it| it.late).sum();
    let renewals: usize = both().map(|it| it.renewals).sum();
    let verdict = |holds| if holds { "held" } else { "MISSED" };
    let notes = format!(
        "All times in seconds. min, median, max: the other is active so long after the last\n  \
         renewal was sent. watched: before the kills, all rounds together, at least {RENEWALS}\n  \
         renewals in each; it read close behind them at the end in {found} of {} with phase lock\n\
         renewals that came more than R/20 late: {late} of {renewals}; their phase cannot be known\n\
         median with phase lock: {:.3}, at most T + R/4 = {:.3}: {}\n\
         requests of the standby with phase lock : without: {ratio:.3}, at most {REQUESTS_MAX}: {}\n",
        with.watched.len(),
        with.median().unwrap_or_default().as_secs_f64(),
        bound.as_secs_f64(),
        verdict(is_soon),
        verdict(is_cheap),
    );
    (table, notes, is_soon && is_cheap)
}
