//! One round: a lease and two processes of its own, and what happens to them.

use crate::{
    Setup,
    compare::Watched,
    display::{self, View},
    ledger::{Ledger, Opened, Side, Tenure},
    member::{Heard, Member, Plan},
    processes::place::HandError,
    scenario::Scenario,
    wire::{Moment, Say},
};
use fencing::Epoch;
use lease_core::{ObjectKey, key::ClusterName};
use std::{fmt, io, path::PathBuf, time::Duration};
use tokio::sync::mpsc;

/// Which round of which scenario.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RoundId {
    pub(crate) scenario: Scenario,
    pub(crate) number: u32,
    /// For the comparison: the standby locks on to the phase of the renewals, or does not, and
    /// watches for long before the kill. `None`: it does, and does not watch for long.
    pub(crate) phase_lock: Option<bool>,
}

impl RoundId {
    const fn name(self) -> &'static str {
        match self.phase_lock {
            None => self.scenario.name(),
            Some(true) => "lock",
            Some(false) => "no lock",
        }
    }
}

impl fmt::Display for RoundId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<7} {:>3}", self.name(), self.number)
    }
}

/// Why a round did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RoundError {
    #[error("process {side} failed: {error}")]
    Child { side: &'static str, error: String },
    /// The store was so slow, compared with R, that the holder rightly lost the lease, could not
    /// release it, or a takeover lapsed before it was complete: that says something about the store,
    /// and nothing about the takeover that was to be seen.
    #[error("store operations took {slowest:.1?}, and {what}")]
    Disturbed { slowest: Duration, what: String },
    #[error("the lease could not be tampered with: {0}")]
    Hand(#[from] HandError),
    #[error("{attempted}: {source}")]
    Io { attempted: &'static str, source: io::Error },
    #[error("the lease could not be read: {0}")]
    Store(#[from] lease_core::StoreError),
    #[error("after {limit:.1?} it was still waited for {what}")]
    TimedOut { what: &'static str, limit: Duration },
    #[error("{0}")]
    Unexpected(String),
}

/// How a round went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) id: RoundId,
    /// How long the takeover took, and how long it may have taken.
    pub(crate) takeover: Option<Took>,
    /// How the standby watched before the kill, in a comparison.
    pub(crate) watched: Option<Watched>,
    pub(crate) overlaps: usize,
    pub(crate) refused: usize,
    /// How often it was begun anew, because the store was too slow to show anything.
    pub(crate) disturbed: u32,
    /// Everything that went wrong, in words.
    pub(crate) faults: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) measured: Duration,
    pub(crate) promised: Duration,
    /// The measured time of two store operations, which is promised on top.
    pub(crate) operations: Duration,
}

impl Took {
    pub(crate) fn is_in_time(&self) -> bool {
        self.measured <= self.promised + self.operations
    }
}

pub(crate) struct Round<'a> {
    setup: &'a Setup,
    id: RoundId,
    /// The cluster that both processes belong to, and where its lease is.
    cluster: ClusterName,
    lease: ObjectKey,
    dir: PathBuf,
    begun_at: Moment,
    heard: mpsc::UnboundedReceiver<(Side, Heard)>,
    hear: mpsc::UnboundedSender<(Side, Heard)>,
    members: [Option<Member>; 2],
    waits_for: &'static str,
    view: View,
    closed_at: Option<Moment>,
    pub(crate) ledger: Ledger,
    pub(crate) rng: fastrand::Rng,
    /// A process stands between its check and its write.
    pub(crate) about_to_write: Option<Moment>,
    /// When the thing was done that the round is about.
    pub(crate) done_at: Option<Moment>,
    pub(crate) watched: Option<Watched>,
}

/// How often a round that a slow store disturbed is played again.
const TRIES: u32 = 5;

/// Plays one round to its end and judges it.
pub(crate) async fn play(setup: &Setup, id: RoundId) -> Outcome {
    let limit = setup.round_limit(id);
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut round = Round::new(setup, id, attempt);
        let played = tokio::time::timeout(limit, round.play()).await;
        let played =
            played.unwrap_or_else(|_| Err(RoundError::TimedOut { what: round.waits_for, limit }));
        round.close().await;
        match played {
            Err(error @ RoundError::Disturbed { .. })
                if attempt < TRIES && round.ledger.violations().is_empty() =>
            {
                round.view.finish(&format!("{id}  played again: {error}"));
            }
            played => return round.judge(played, attempt - 1),
        }
    }
}

impl<'a> Round<'a> {
    fn new(setup: &'a Setup, id: RoundId, attempt: u32) -> Self {
        let (hear, heard) = mpsc::unbounded_channel();
        // With and without phase lock, the same is done at the same moments.
        let round = u64::from(id.number) << 16 | u64::from(attempt) << 8 | id.scenario as u64;
        let cluster = format!("{}-{}-{attempt}", id.name().replace(' ', "-"), id.number);
        let dir = setup.dir.path().join(&cluster);
        let cluster = ClusterName::new(&cluster).expect("a few words and numbers are a name");
        let lease = cluster.lease_key();
        setup.written.borrow_mut().push(lease.clone());
        Self {
            setup,
            id,
            cluster,
            lease,
            dir,
            begun_at: Moment::now(),
            heard,
            hear,
            members: [None, None],
            waits_for: "the processes to start",
            view: setup.display.round(id),
            closed_at: None,
            ledger: Ledger::default(),
            rng: fastrand::Rng::with_seed(setup.seed ^ round),
            about_to_write: None,
            done_at: None,
            watched: None,
        }
    }

    async fn play(&mut self) -> Result<Took, RoundError> {
        std::fs::create_dir(&self.dir).map_err(|source| RoundError::Io {
            attempted: "making the round's directory",
            source,
        })?;
        let (from, opened) = self.id.scenario.play(self).await?;
        self.id.scenario.settle(self).await?;
        let took = Took {
            measured: opened.at.since(from),
            promised: self.id.scenario.promise(self.setup.timing),
            operations: self.setup.operations.slowest(from, opened.at),
        };
        // Where one operation takes as long as a renewal may take in all, more than its time is
        // lost: a takeover then lapses before it is complete.
        if !took.is_in_time() && took.operations > self.setup.timing.renew() / 2 {
            let what = format!("the takeover took {:.3?}", took.measured);
            return Err(RoundError::Disturbed { slowest: took.operations, what });
        }
        Ok(took)
    }

    /// Both processes are killed, and what they still said is taken in.
    async fn close(&mut self) {
        self.closed_at = Some(Moment::now());
        for side in Side::BOTH {
            let Some(member) = &mut self.members[side.index()] else { continue };
            let was_running = member.frozen.is_empty();
            if !member.is_gone && member.kill().await.is_ok() {
                self.ledger.killed(side, Moment::now(), was_running);
            }
        }
        // The readers end with the processes: their last words are in the queue by then or never.
        while let Ok((side, heard)) = self.heard.try_recv() {
            let _ = self.take_in(side, &heard);
        }
    }

    fn judge(self, played: Result<Took, RoundError>, disturbed: u32) -> Outcome {
        let mut faults = self.ledger.violations();
        let overlaps = faults.len();
        let takeover = match played {
            Ok(took) => Some(took),
            Err(error) => {
                faults.push(error.to_string());
                None
            }
        };
        if let Some(took) = takeover.filter(|took| !took.is_in_time()) {
            let Took { measured, promised, operations } = took;
            faults.push(format!(
                "the takeover took {measured:.3?}; {promised:.3?} and {operations:.1?} for two \
                 store operations were promised"
            ));
        }
        let refused = self.ledger.refused();
        if self.id.scenario == Scenario::Freeze && refused == 0 {
            faults.push("the woken write was not refused".to_owned());
        }
        let line = self.line(takeover.map(|took| took.measured), faults.is_empty());
        self.view.finish(&line);
        for fault in &faults {
            self.setup.display.fault(self.id, fault);
        }
        if !faults.is_empty() {
            for line in self.last_words() {
                self.setup.display.say(&line);
            }
        }
        Outcome {
            id: self.id,
            takeover,
            watched: self.watched,
            overlaps,
            refused,
            disturbed,
            faults,
        }
    }

    fn last_words(&self) -> impl Iterator<Item = String> {
        Side::BOTH.into_iter().flat_map(|side| {
            let lines = self.members[side.index()].iter().flat_map(Member::last_lines);
            lines.map(move |line| format!("    {} said last: {line}", side.name()))
        })
    }

    pub(crate) const fn id(&self) -> RoundId {
        self.id
    }

    pub(crate) const fn setup(&self) -> &'a Setup {
        self.setup
    }

    /// The object that is the lease.
    pub(crate) const fn lease(&self) -> &ObjectKey {
        &self.lease
    }

    /// A random part of `whole`.
    pub(crate) fn part_of(&mut self, whole: Duration) -> Duration {
        whole.mul_f64(self.rng.f64())
    }

    pub(crate) fn start(&mut self, side: Side, first: bool) -> Result<(), RoundError> {
        let plan = Plan {
            side,
            program: &self.setup.program,
            store: &self.setup.place,
            cluster: self.cluster.as_str(),
            instance: &self.dir.join(side.name()),
            ttl: self.setup.timing.ttl(),
            renew: self.setup.timing.renew(),
            first,
            phase_lock: self.id.phase_lock.unwrap_or(true),
        };
        let member = Member::start(&plan, &self.hear)
            .map_err(|source| RoundError::Io { attempted: "starting a process", source })?;
        self.members[side.index()] = Some(member);
        Ok(())
    }

    pub(crate) fn member(&mut self, side: Side) -> Result<&mut Member, RoundError> {
        let missing = || RoundError::Unexpected(format!("{} was not started", side.name()));
        self.members[side.index()].as_mut().ok_or_else(missing)
    }

    /// Says what happened, for the timeline.
    pub(crate) fn note(&self, text: &str) {
        self.view.note(text);
    }

    /// Listens to both processes until `look` finds what it looks for.
    pub(crate) async fn until<T>(
        &mut self,
        what: &'static str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, RoundError> {
        self.waits_for = what;
        loop {
            if let Some(found) = look(self) {
                return Ok(found);
            }
            self.listen().await?;
            if self.done_at.is_none() {
                self.look_for_a_loss()?;
            }
        }
    }

    /// Before anything was done, nothing has to happen to the first tenure.
    fn look_for_a_loss(&self) -> Result<(), RoundError> {
        let Some(ended) = self.ledger.tenures.first().and_then(|it| it.ended.as_ref()) else {
            return Ok(());
        };
        Err(self.went_wrong(format!("the first tenure ended: {}", ended.reason)))
    }

    /// The fault of the store, if it was that slow, or of something that should not be.
    pub(crate) fn went_wrong(&self, what: String) -> RoundError {
        let slowest = self.setup.operations.slowest(self.begun_at, Moment::now());
        if slowest > self.setup.timing.renew() / 2 {
            RoundError::Disturbed { slowest, what }
        } else {
            RoundError::Unexpected(what)
        }
    }

    /// Listens to both processes for a while.
    pub(crate) async fn run_for(&mut self, span: Duration) -> Result<(), RoundError> {
        let ended = tokio::time::timeout(span, async {
            loop {
                self.listen().await?;
            }
        });
        ended.await.unwrap_or(Ok(()))
    }

    async fn listen(&mut self) -> Result<(), RoundError> {
        let tick = tokio::time::sleep(Duration::from_millis(100));
        tokio::select! {
            Some((side, heard)) = self.heard.recv() => self.take_in(side, &heard)?,
            () = tick => {}
        }
        if self.view.is_live() {
            self.view.refresh(&self.line(None, true));
        }
        Ok(())
    }

    fn take_in(&mut self, side: Side, heard: &Heard) -> Result<(), RoundError> {
        let Some(member) = &mut self.members[side.index()] else { return Ok(()) };
        member.hear(heard);
        if let Heard::Said(Say::Failed { error }) = heard {
            return Err(RoundError::Child { side: side.name(), error: error.clone() });
        }
        if let Heard::Gone = heard {
            self.ledger.killed(side, Moment::now(), member.frozen.is_empty());
        }
        if let Heard::Said(say) = heard {
            if let Some(tell) = self.ledger.hear(side, say) {
                member.tell(tell);
            }
            if let Say::AboutToWrite { at, .. } = say {
                self.about_to_write = Some(*at);
            }
            self.view.said(side, say);
        }
        Ok(())
    }

    /// Waits for the first tenure that opens after the one of `epoch`.
    pub(crate) async fn opened_after(
        &mut self,
        epoch: Option<Epoch>,
    ) -> Result<(Tenure, Opened), RoundError> {
        self.until("somebody to become active", |round| {
            let (tenure, opened) = round.ledger.latest()?;
            (Some(tenure.epoch) > epoch).then(|| (tenure.clone(), opened))
        })
        .await
    }

    /// The round in one line: a bar for each process.
    fn line(&self, took: Option<Duration>, is_good: bool) -> String {
        let verdict = match (took, is_good, self.done_at) {
            (Some(took), true, _) => format!("{:>6.3} s", took.as_secs_f64()),
            (Some(took), false, _) => format!("{:>6.3} s  FAILED", took.as_secs_f64()),
            (None, false, _) => "FAILED".to_owned(),
            (None, true, Some(done)) => {
                format!("{:>6.1} s …", Moment::now().since(done).as_secs_f64())
            }
            (None, true, None) => format!("waits for {}", self.waits_for),
        };
        let now = self.closed_at.unwrap_or_else(Moment::now);
        let window = display::Window::of(self.setup.timing, self.done_at, now);
        let bars = Side::BOTH.map(|side| {
            let member = self.members[side.index()].as_ref();
            let bar = window.bar(side, member, &self.ledger, self.setup.display.paint());
            format!("{} {bar}", side.name())
        });
        format!("{}  {}  {verdict}", self.id, bars.join("  "))
    }
}
