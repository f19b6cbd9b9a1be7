//! One cluster: its processes, who is active, and what is waited for.

use crate::{
    Setup,
    member::{Heard, Member},
    tally::Took,
    wire::{Moment, Say},
};
use fencing::Epoch;
use indicatif::ProgressBar;
use std::{
    collections::BTreeSet, io, os::unix::fs::MetadataExt as _, path::PathBuf, time::Duration,
};
use tokio::sync::mpsc;

/// Why a cluster cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("process {member} failed: {error}")]
    Child { member: String, error: String },
    #[error("process {member} ended, and nobody had asked it to")]
    Ended { member: String },
    #[error("{attempted}: {source}")]
    Io { attempted: &'static str, source: io::Error },
    #[error("after {limit:.1?} it was still waited for {what}")]
    TimedOut { what: &'static str, limit: Duration },
}

impl ClusterError {
    pub(crate) const fn io(attempted: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { attempted, source }
    }
}

/// Who is active.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) member: usize,
    pub(crate) epoch: Epoch,
    /// How many of its renewals were seen.
    pub(crate) renewals: u32,
    /// When its first write took effect.
    pub(crate) acted_at: Option<Moment>,
}

pub(crate) struct Cluster<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) name: String,
    pub(crate) members: Vec<Member>,
    /// Which of them have seen the lease in their present life.
    pub(crate) have_seen: Vec<bool>,
    /// Of whom it is expected that they end.
    pub(crate) may_end: BTreeSet<usize>,
    heard: mpsc::UnboundedReceiver<(usize, u64, Heard)>,
    pub(crate) active: Option<Active>,
    /// Tenures that were told to be over.
    pub(crate) ended: Option<Epoch>,
    pub(crate) about_to_write: Option<Epoch>,
    pub(crate) jumped: Option<(usize, i64)>,
    /// Who is started again, and when.
    pub(crate) restarts: Vec<(Moment, usize)>,
    /// Files that are locked for all.
    locks: Vec<PathBuf>,
    pub(crate) rng: fastrand::Rng,
    bar: Option<ProgressBar>,
    last: String,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(
        setup: &'a Setup,
        name: String,
        members: Vec<Member>,
        heard: mpsc::UnboundedReceiver<(usize, u64, Heard)>,
        locks: Vec<PathBuf>,
    ) -> Self {
        let seed =
            name.bytes().fold(setup.seed, |seed, byte| seed.wrapping_mul(31) ^ u64::from(byte));
        let have_seen = vec![false; members.len()];
        let bar = setup.display.bar();
        Self {
            setup,
            name,
            members,
            have_seen,
            may_end: BTreeSet::new(),
            heard,
            active: None,
            ended: None,
            about_to_write: None,
            jumped: None,
            restarts: Vec::new(),
            locks,
            rng: fastrand::Rng::with_seed(seed),
            bar,
            last: "starting".to_owned(),
        }
    }

    /// The first process is active, the others have seen that.
    pub(crate) async fn start(&mut self) -> Result<(), ClusterError> {
        self.start_member(0)?;
        self.until("the first process to be active", |it| it.active.map(drop)).await?;
        for index in 1..self.members.len() {
            self.start_member(index)?;
        }
        Ok(())
    }

    pub(crate) fn start_member(&mut self, index: usize) -> Result<(), ClusterError> {
        self.have_seen[index] = false;
        self.may_end.remove(&index);
        self.members[index].start().map_err(ClusterError::io("starting a process"))
    }

    /// An active process of which so many renewals were seen, and standbys that have seen the lease.
    pub(crate) async fn settled(&mut self, renewals: u32) -> Result<Active, ClusterError> {
        self.until("an active process and its renewals", |it| {
            let active = it.active?;
            let are_there = (0..it.members.len()).all(|index| {
                let has_seen = index == active.member || it.have_seen[index];
                it.members[index].is_running() && !it.members[index].is_frozen && has_seen
            });
            let is_settled = active.acted_at.is_some() && active.renewals >= renewals;
            (are_there && is_settled).then_some(active)
        })
        .await
    }

    /// Somebody acts under a larger epoch: when.
    pub(crate) async fn taken_over(&mut self, epoch: Epoch) -> Result<Moment, ClusterError> {
        self.until("somebody to take over", |it| {
            let active = it.active.filter(|active| active.epoch > epoch)?;
            active.acted_at
        })
        .await
    }

    /// Measures a takeover against its bound.
    pub(crate) async fn take_over(
        &mut self,
        fault: &'static str,
        from: Moment,
        epoch: Epoch,
    ) -> Result<Duration, ClusterError> {
        let acted_at = self.taken_over(epoch).await?;
        let measured = acted_at.since(from);
        let (bound, slowest) = (self.setup.bound(), self.setup.operations.slowest(from, acted_at));
        let took = Took { fault, measured, bound, slack: slowest * 2 };
        let is_late = self.setup.tally.borrow_mut().took(took, self.setup.timing.renew());
        if is_late {
            let slack = took.slack;
            self.fault(&format!(
                "the takeover after a {fault} took {measured:.3?}; {bound:.3?} and {slack:.1?} for \
                 operations of the store were promised"
            ));
        }
        Ok(measured)
    }

    /// Listens to all processes until `look` finds what it looks for.
    pub(crate) async fn until<T>(
        &mut self,
        what: &'static str,
        mut look: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T, ClusterError> {
        let limit = self.setup.patience();
        let waiting = async {
            loop {
                if let Some(found) = look(self) {
                    return Ok(found);
                }
                self.listen().await?;
            }
        };
        let waited = tokio::time::timeout(limit, waiting).await;
        waited.unwrap_or(Err(ClusterError::TimedOut { what, limit }))
    }

    /// Listens to all processes for a while.
    pub(crate) async fn run_for(&mut self, span: Duration) -> Result<(), ClusterError> {
        let ended = tokio::time::timeout(span, async {
            loop {
                self.listen().await?;
            }
        });
        ended.await.unwrap_or(Ok(()))
    }

    async fn listen(&mut self) -> Result<(), ClusterError> {
        let tick = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            Some((index, life, heard)) = self.heard.recv() => self.take_in(index, life, heard)?,
            () = tick => {}
        }
        let now = Moment::now();
        while let Some(due) = self.restarts.iter().position(|(at, _)| *at <= now) {
            let (_, index) = self.restarts.swap_remove(due);
            self.start_member(index)?;
        }
        self.refresh();
        Ok(())
    }

    fn take_in(&mut self, index: usize, life: u64, heard: Heard) -> Result<(), ClusterError> {
        let member = &mut self.members[index];
        if life != member.life {
            return Ok(());
        }
        let was_running = member.is_running();
        member.hear(&heard);
        match heard {
            Heard::Said(say) => self.said(index, say),
            Heard::Gone if was_running && !self.may_end.contains(&index) => {
                Err(ClusterError::Ended { member: self.members[index].name().to_owned() })
            }
            Heard::Gone | Heard::Logged(_) => Ok(()),
        }
    }

    fn said(&mut self, member: usize, say: Say) -> Result<(), ClusterError> {
        match say {
            Say::Started => {}
            Say::Seen => self.have_seen[member] = true,
            Say::Opened { epoch } => {
                // A process that was frozen may tell late.
                if self.active.is_none_or(|active| active.epoch < epoch) {
                    self.active = Some(Active { member, epoch, renewals: 0, acted_at: None });
                }
            }
            Say::Acted { at, epoch } => {
                if let Some(active) = self.of(epoch) {
                    active.acted_at = Some(at);
                }
            }
            Say::Renewed { epoch } => {
                if let Some(active) = self.of(epoch) {
                    active.renewals += 1;
                }
            }
            Say::AboutToWrite { epoch } => self.about_to_write = Some(epoch),
            Say::Refused => {}
            Say::Ended { epoch, .. } => {
                self.ended = self.ended.max(Some(epoch));
                self.active = self.active.filter(|active| active.epoch != epoch);
            }
            Say::Jumped { seconds } => {
                let before = self.jumped.filter(|(who, _)| *who == member).map_or(0, |(_, by)| by);
                self.jumped = Some((member, before + seconds));
            }
            Say::Failed { error } => {
                let member = self.members[member].name().to_owned();
                return Err(ClusterError::Child { member, error });
            }
        }
        Ok(())
    }

    pub(crate) fn of(&mut self, epoch: Epoch) -> Option<&mut Active> {
        self.active.as_mut().filter(|active| active.epoch == epoch)
    }

    /// The inodes of the files that are locked for all. (A lock file is made when it is needed.)
    pub(crate) fn locks(&self) -> BTreeSet<u64> {
        self.locks.iter().filter_map(|path| path.metadata().ok()).map(|it| it.ino()).collect()
    }

    pub(crate) fn part_of(&mut self, whole: Duration) -> Duration {
        whole.mul_f64(self.rng.f64())
    }

    /// Something that should not be.
    pub(crate) fn fault(&self, what: &str) {
        let what = format!("{}  FAILED: {what}", self.name);
        self.setup.display.say(&what);
        self.setup.tally.borrow_mut().faults.push(what);
    }

    /// What was done, and how it came out.
    pub(crate) fn note(&mut self, text: String) {
        self.last = text;
        match &self.bar {
            Some(_) => self.refresh(),
            None => self.setup.display.say(&format!("{}  {}", self.name, self.last)),
        }
    }

    fn refresh(&self) {
        let Some(bar) = &self.bar else { return };
        let who = match self.active {
            Some(active) => {
                let member = self.members[active.member].name();
                format!("{member} active, {:>3} renewals", active.renewals)
            }
            None => "nobody active".to_owned(),
        };
        bar.set_message(format!("{}  {who:<24}  {}", self.name, self.last));
    }

    /// Everybody is killed. What the processes said last, if something went wrong.
    pub(crate) async fn close(&mut self, has_failed: bool) {
        for member in &mut self.members {
            // It is gone, then, or goes with its handle.
            let _ = member.kill().await;
            if has_failed {
                for line in member.last_lines() {
                    self.setup.display.say(&format!("    {} said last: {line}", member.name()));
                }
            }
        }
    }
}
