//! What is done to the two processes, and what is promised of it.

use crate::{
    compare,
    ledger::{Ended, Opened, Side, Tenure},
    round::{Round, RoundError},
    wire::{Moment, Tell},
};
use clap::ValueEnum;
use fencing::{Clock as _, Epoch, SystemClock};
use lease_core::{LeaseStore as _, Read, Timing, record::LeaseRecord};
use std::time::Duration;

/// What happens in a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub(crate) enum Scenario {
    /// The active process is killed (SIGKILL).
    Kill,
    /// It is frozen between its check and its write (SIGSTOP), for longer than T, then woken.
    Freeze,
    /// It is stopped gracefully (SIGTERM) and releases the lease.
    Stop,
    /// The lease is deleted by hand.
    Delete,
    /// The lease is replaced by something that is no lease.
    Garbage,
    /// Both processes are started at once where there is no lease.
    Start,
}

impl Scenario {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Freeze => "freeze",
            Self::Stop => "stop",
            Self::Delete => "delete",
            Self::Garbage => "garbage",
            Self::Start => "start",
        }
    }

    /// How long a takeover may take, two store operations not counted.
    pub(crate) fn promise(self, timing: Timing) -> Duration {
        match self {
            Self::Stop => timing.renew(),
            _ => timing.ttl() + timing.renew(),
        }
    }

    /// The promise in symbols, and from when on it counts.
    pub(crate) const fn promise_text(self) -> (&'static str, &'static str) {
        match self {
            Self::Kill | Self::Freeze => ("T + R", "the last renewal was sent"),
            Self::Stop => ("R", "the release"),
            Self::Delete => ("T + R", "the deletion"),
            Self::Garbage => ("T + R", "the replacement"),
            Self::Start => ("T + R", "the first was ready"),
        }
    }

    /// Plays the round until the takeover. Returns from when on it is timed, and how it came out.
    pub(crate) async fn play(self, round: &mut Round<'_>) -> Result<(Moment, Opened), RoundError> {
        let from = match self {
            Self::Kill => kill(round).await?,
            Self::Freeze => freeze(round).await?,
            Self::Stop => stop(round).await?,
            Self::Delete => delete(round).await?,
            Self::Garbage => garbage(round).await?,
            Self::Start => start(round).await?,
        };
        let before = match self {
            Self::Start => None,
            _ => round.ledger.tenures.first().map(|tenure| tenure.epoch),
        };
        let (after, opened) = round.opened_after(before).await?;
        round
            .until("the new active process to write", |round| {
                (round.ledger.count(after.side, after.epoch, true) > 0).then_some(())
            })
            .await?;
        Ok((from, opened))
    }

    /// What has to be seen after the takeover.
    pub(crate) async fn settle(self, round: &mut Round<'_>) -> Result<(), RoundError> {
        let Some(first) = round.ledger.tenures.first().map(|tenure| (tenure.side, tenure.epoch))
        else {
            return Ok(());
        };
        match self {
            Self::Freeze => wake(round, first).await?,
            Self::Delete | Self::Garbage => drop(ended(round, first).await?),
            Self::Kill | Self::Stop | Self::Start => {}
        }
        // A second process that thinks it is active would show itself now.
        round.run_for(round.setup().timing.renew()).await
    }
}

/// `a` is active and has renewed, `b` has seen that: from here on everything can happen.
async fn pair(round: &mut Round<'_>) -> Result<Tenure, RoundError> {
    round.start(Side::A, true)?;
    let (tenure, _) = round.opened_after(None).await?;
    // When the two look at the store relative to each other is left to chance.
    let renew = round.setup().timing.renew();
    let lag = round.part_of(renew);
    round.run_for(lag).await?;
    round.start(Side::B, false)?;
    round
        .until("the standby to see the lease", |round| {
            round.member(Side::B).ok().filter(|it| it.has_seen_lease).map(drop)
        })
        .await?;
    let seen_at = Moment::now();
    renewed_after(round, tenure.epoch, seen_at).await?;
    Ok(tenure)
}

/// Waits for a renewal that was sent after `after`.
async fn renewed_after(
    round: &mut Round<'_>,
    epoch: Epoch,
    after: Moment,
) -> Result<Moment, RoundError> {
    round
        .until("a renewal", |round| {
            let tenure = round.ledger.tenures.iter().find(|tenure| tenure.epoch == epoch)?;
            tenure.renewed.filter(|sent| *sent > after)
        })
        .await
}

async fn kill(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    let tenure = pair(round).await?;
    if let Some(phase_lock) = round.id().phase_lock {
        compare::watch(round, &tenure, phase_lock).await?;
    }
    let span = round.part_of(round.setup().timing.renew());
    round.run_for(span).await?;
    compare::count(round)?;
    let died = round.member(tenure.side)?.kill().await;
    died.map_err(|source| RoundError::Io { attempted: "killing the active process", source })?;
    let dead_by = Moment::now();
    round.ledger.killed(tenure.side, dead_by, true);
    round.done_at = Some(dead_by);
    round.note("a was killed");
    last_renewal(round, &tenure).await
}

async fn freeze(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    let tenure = pair(round).await?;
    let renew = round.setup().timing.renew();
    let signalled = |source| RoundError::Io { attempted: "stopping the active process", source };
    loop {
        round.member(tenure.side)?.tell(Tell::Pause);
        round
            .until("the active process to stand between check and write", |round| {
                round.about_to_write.take()
            })
            .await?;
        round.member(tenure.side)?.freeze().map_err(signalled)?;
        let frozen_at = Moment::now();
        // It goes on when it is woken. Until then this waits in the pipe.
        round.member(tenure.side)?.tell(Tell::Go);
        let sent = last_renewal(round, &tenure).await?;
        if frozen_at.since(sent) < renew.mul_f64(0.8) {
            round.done_at = Some(frozen_at);
            round.note("a was frozen between its check and its write");
            return Ok(sent);
        }
        // Too late: it may be renewing, and would keep the lock of the file. Once more.
        round.member(tenure.side)?.thaw().map_err(signalled)?;
    }
}

/// The frozen process is woken: its write must come, and be refused.
async fn wake(round: &mut Round<'_>, (side, epoch): (Side, Epoch)) -> Result<(), RoundError> {
    let frozen_at = round.done_at.unwrap_or_else(Moment::now);
    let timing = round.setup().timing;
    let long_enough = frozen_at.plus(timing.ttl() + timing.retry());
    let admitted = round.ledger.count(side, epoch, true);
    round.run_for(long_enough.since(Moment::now())).await?;
    let woken = round.member(side)?.thaw();
    woken.map_err(|source| RoundError::Io { attempted: "waking the process", source })?;
    round.note("a was woken");
    round
        .until("the woken process to write", |round| {
            let ledger = &round.ledger;
            let written = ledger.count(side, epoch, true) > admitted;
            (written || ledger.count(side, epoch, false) > 0).then_some(())
        })
        .await?;
    if round.ledger.count(side, epoch, false) == 0 {
        return Err(RoundError::Unexpected("the resource admitted the woken write".to_owned()));
    }
    ended(round, (side, epoch)).await.map(drop)
}

async fn stop(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    let tenure = pair(round).await?;
    let span = round.part_of(round.setup().timing.renew());
    round.run_for(span).await?;
    round.done_at = Some(Moment::now());
    let told = round.member(tenure.side)?.terminate();
    told.map_err(|source| RoundError::Io { attempted: "stopping the active process", source })?;
    round.note("a was told to stop");
    let ended = ended(round, (tenure.side, tenure.epoch)).await?;
    if !ended.released {
        let what = format!("the lease was not released, the tenure ended: {}", ended.reason);
        return Err(round.went_wrong(what));
    }
    Ok(ended.at)
}

async fn delete(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    let tenure = pair(round).await?;
    loop {
        between_renewals(round, &tenure).await?;
        let deleted_at = Moment::now();
        round.setup().hand.remove(round.lease()).await?;
        round.done_at = Some(deleted_at);
        round.note("the lease was deleted");
        let is_gone = round
            .until("the holder to notice that its lease is gone", |round| {
                let tenure = round.ledger.tenures.iter().find(|it| it.epoch == tenure.epoch)?;
                let is_renewed = tenure.renewed.is_some_and(|sent| sent > deleted_at);
                tenure.ended.as_ref().map(|_| true).or(is_renewed.then_some(false))
            })
            .await?;
        if is_gone {
            return Ok(deleted_at);
        }
        round.note("a renewal that was under way wrote it again");
        round.done_at = None;
    }
}

async fn garbage(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    let tenure = pair(round).await?;
    between_renewals(round, &tenure).await?;
    let (hand, store) = (&round.setup().hand, &*round.setup().store);
    let replaced_at = hand.overwrite(store, round.lease(), "no lease at all".into()).await?;
    round.done_at = Some(replaced_at);
    round.note("the lease was replaced by garbage");
    Ok(replaced_at)
}

async fn start(round: &mut Round<'_>) -> Result<Moment, RoundError> {
    // Nobody tells them that the cluster is new.
    round.start(Side::A, false)?;
    round.start(Side::B, false)?;
    round
        .until("both processes to start", |round| {
            let started = Side::BOTH.map(|side| round.member(side).ok()?.started_at);
            let [Some(a), Some(b)] = started else { return None };
            round.done_at = Some(a.min(b));
            round.done_at
        })
        .await
}

async fn ended(round: &mut Round<'_>, (side, epoch): (Side, Epoch)) -> Result<Ended, RoundError> {
    round
        .until("the tenure of before to end", |round| {
            let mut tenures = round.ledger.tenures.iter();
            tenures.find(|it| it.side == side && it.epoch == epoch)?.ended.clone()
        })
        .await
}

/// A hand that does not take the store's lock must not come in the middle of a renewal, which would
/// write over what it did.
async fn between_renewals(round: &mut Round<'_>, tenure: &Tenure) -> Result<(), RoundError> {
    renewed_after(round, tenure.epoch, Moment::now()).await?;
    let renew = round.setup().timing.renew();
    let span = round.part_of(renew.mul_f64(0.75));
    round.run_for(span).await
}

/// When the renewal was sent that the lease shows: the process may have died, or been frozen,
/// before it could tell of it.
async fn last_renewal(round: &Round<'_>, tenure: &Tenure) -> Result<Moment, RoundError> {
    let tenures = &round.ledger.tenures;
    let told = tenures.iter().find(|it| it.epoch == tenure.epoch).and_then(|it| it.renewed);
    let told = told.unwrap_or(tenure.taking_over_at);
    let read = round.setup().store.read_versioned(round.lease(), None).await?;
    let Read::Found { content, .. } = read else { return Ok(told) };
    let unreadable = |what: String| {
        RoundError::Unexpected(format!("the lease that the process left behind is odd: {what}"))
    };
    let record = LeaseRecord::decode(&content).map_err(|error| unreadable(error.to_string()))?;
    if record.epoch != tenure.epoch {
        return Ok(told);
    }
    let written: jiff::Timestamp =
        record.renewed_at.parse().map_err(|error: jiff::Error| unreadable(error.to_string()))?;
    // In whole milliseconds, cut: never later than it was.
    let written = Duration::from_millis(u64::try_from(written.as_millisecond()).unwrap_or(0));
    let now = SystemClock::new().reading();
    let age = Duration::from_nanos(now.wall.unix_nanos()).saturating_sub(written);
    Ok(told.max(Moment::from(now.monotonic).minus(age)))
}
