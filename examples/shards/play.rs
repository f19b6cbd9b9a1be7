//! Processes come and go, and every balance is timed.

use crate::{
    args::Args,
    display::Display,
    ledger::Ledger,
    member::{Heard, Member, MemberId},
    processes::place::Place,
    wire::{Moment, Say},
};
use lease_core::{Timing, audit::Verdict};
use std::{fmt, io, time::Duration};
use tokio::sync::mpsc;

/// How many processes there are at least, and at most.
const MEMBERS: (usize, usize) = (2, 6);

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    changes: u32,
    pub(crate) overlaps: usize,
    /// Changes after which there was no balance in time.
    pub(crate) faults: u32,
    worst_balance: Duration,
    requests: u64,
    separate: f64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { changes, overlaps, worst_balance, requests, separate, .. } = self;
        let worst_balance = worst_balance.as_secs_f64();
        write!(f, "changes={changes} overlaps={overlaps} worst_balance={worst_balance:.2}s ")?;
        write!(f, "requests={requests} separate={separate:.0}")
    }
}

struct Play<'a> {
    args: &'a Args,
    timing: Timing,
    place: &'a Place,
    display: Display,
    random: fastrand::Rng,
    begun: Moment,
    members: Vec<Member>,
    /// Told to stop, and not gone yet: what it holds is still its own.
    leaving: Vec<Member>,
    started: u32,
    heard: mpsc::UnboundedReceiver<(MemberId, Heard)>,
    hears: mpsc::UnboundedSender<(MemberId, Heard)>,
    ledger: Ledger,
    /// How many shards were lost by sessions that ended although nobody had ended them.
    lost: u32,
    outcome: Outcome,
    /// Since when the number of processes is what it is.
    counted: Moment,
}

pub(crate) async fn play(args: &Args, timing: Timing, place: &Place) -> io::Result<Outcome> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    let (hears, heard) = mpsc::unbounded_channel();
    let now = Moment::now();
    let mut play = Play {
        args,
        timing,
        place,
        display: Display::new(),
        random: fastrand::Rng::with_seed(seed),
        begun: now,
        members: Vec::new(),
        leaving: Vec::new(),
        started: 0,
        heard,
        hears,
        ledger: Ledger::default(),
        lost: 0,
        outcome: Outcome::default(),
        counted: now,
    };
    play.introduce(seed);
    for _ in 0..3 {
        play.add()?;
    }
    play.balance("start a0, b0 and c0").await;
    for _ in 0..args.changes {
        play.change().await?;
    }
    play.finish().await?;
    Ok(play.outcome)
}

impl Play<'_> {
    fn introduce(&self, seed: u64) {
        let Self { args, timing, .. } = self;
        self.display.say(&format!(
            "{} shards in {}, T = {:?}, R = {:?}, a balance within {:?}; --seed {seed}",
            args.shards,
            self.place,
            timing.ttl(),
            timing.renew(),
            self.limit(),
        ));
    }

    /// T + 3R.
    fn limit(&self) -> Duration {
        self.timing.ttl() + self.timing.renew() * 3
    }

    /// Each of these leases would be renewed by its holder, and looked at by every other process.
    fn count_separate(&mut self) {
        let now = Moment::now();
        let rounds = now.since(self.counted).as_secs_f64() / self.timing.renew().as_secs_f64();
        let processes = (self.members.len() + self.leaving.len()) as f64;
        self.outcome.separate += rounds * processes * f64::from(self.args.shards);
        self.counted = now;
    }

    fn add(&mut self) -> io::Result<MemberId> {
        self.count_separate();
        let id = MemberId(self.started);
        self.started += 1;
        self.members.push(Member::start(id, self.args, self.place, &self.hears)?);
        Ok(id)
    }

    async fn change(&mut self) -> io::Result<()> {
        // At any phase of what the processes do by themselves.
        let pause = self.timing.renew().mul_f64(self.random.f64() * 2.0);
        self.listen(pause).await;
        let (least, most) = MEMBERS;
        let way = match self.members.len() {
            few if few <= least => 2,
            many if many >= most => self.random.u8(..2),
            _ => self.random.u8(..3),
        };
        let what = match way {
            0 => self.kill().await?,
            1 => self.stop()?,
            _ => format!("add  {}", self.add()?),
        };
        self.outcome.changes += 1;
        self.balance(&what).await;
        Ok(())
    }

    async fn kill(&mut self) -> io::Result<String> {
        let mut member = self.take();
        let died = member.kill().await?;
        // What it said before is in the pipe.
        self.hear();
        self.ledger.died(member.id, died);
        self.outcome.requests += member.requests;
        Ok(format!("kill {}", member.id))
    }

    fn stop(&mut self) -> io::Result<String> {
        let member = self.take();
        member.stop()?;
        let what = format!("stop {}", member.id);
        self.leaving.push(member);
        Ok(what)
    }

    fn take(&mut self) -> Member {
        self.count_separate();
        let at = self.random.usize(..self.members.len());
        self.members.remove(at)
    }

    fn is_balanced(&self) -> bool {
        let held: Vec<_> = self.members.iter().map(|it| self.ledger.held(it.id)).collect();
        let most = held.iter().max().copied().unwrap_or_default();
        let least = held.iter().min().copied().unwrap_or_default();
        held.iter().sum::<usize>() == usize::from(self.args.shards) && most - least <= 1
    }

    /// Waits for a balance, and tells how long that took.
    async fn balance(&mut self, what: &str) {
        let begun = Moment::now();
        while !self.is_balanced() && begun.elapsed() <= self.limit() * 3 {
            self.listen(Duration::from_millis(10)).await;
        }
        let took = begun.elapsed();
        self.outcome.worst_balance = self.outcome.worst_balance.max(took);
        let is_late = took > self.limit();
        self.outcome.faults += u32::from(is_late);
        let at = self.begun.elapsed().as_secs_f64();
        let shares = Display::shares(&self.ledger, self.members.iter().map(|it| it.id));
        let late = match (is_late, std::mem::take(&mut self.lost)) {
            (false, 0) => String::new(),
            (true, 0) => "  NO BALANCE IN TIME".to_owned(),
            (false, lost) => format!("  {lost} lost: this machine is too busy for such an R"),
            (true, lost) => format!("  NO BALANCE IN TIME, {lost} lost: this machine is too busy"),
        };
        self.display.say(&format!(
            "{at:>7.2} s  {what:<8} balanced after {:>5.2} s  {}  {shares}{late}",
            took.as_secs_f64(),
            self.display.map(&self.ledger, self.args.shards),
        ));
    }

    /// Listens to the processes for a while.
    async fn listen(&mut self, time: Duration) {
        let deadline = tokio::time::sleep(time);
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                Some((member, heard)) = self.heard.recv() => self.take_in(member, heard),
                () = &mut deadline => break,
            }
        }
        self.display.refresh(|| {
            format!(
                "{}\n{}  requests {}  as separate leases {:.0}",
                self.display.map(&self.ledger, self.args.shards),
                Display::shares(&self.ledger, self.members.iter().map(|it| it.id)),
                self.requests(),
                self.outcome.separate,
            )
        });
    }

    /// Takes in what was said already.
    fn hear(&mut self) {
        while let Ok((member, heard)) = self.heard.try_recv() {
            self.take_in(member, heard);
        }
    }

    fn take_in(&mut self, id: MemberId, heard: Heard) {
        match heard {
            Heard::Said(Say::Begin { at, shard, epoch }) => {
                self.ledger.begin(shard, id, epoch, at);
                // It was dead by then, and this came late.
                if !self.members.iter().chain(&self.leaving).any(|member| member.id == id) {
                    self.ledger.died(id, Moment::now());
                }
            }
            Heard::Said(Say::End { at, shard, epoch, lost }) => {
                self.ledger.end(shard, id, epoch, at);
                self.lost += u32::from(lost);
            }
            Heard::Said(Say::Requests { count }) => {
                let mut all = self.members.iter_mut().chain(&mut self.leaving);
                if let Some(member) = all.find(|member| member.id == id) {
                    member.requests = count;
                }
            }
            Heard::Gone => self.gone(id),
        }
    }

    fn gone(&mut self, id: MemberId) {
        self.count_separate();
        if let Some(at) = self.leaving.iter().position(|member| member.id == id) {
            self.outcome.requests += self.leaving.remove(at).requests;
            self.ledger.died(id, Moment::now());
        } else if let Some(at) = self.members.iter().position(|member| member.id == id) {
            self.outcome.requests += self.members.remove(at).requests;
            self.ledger.died(id, Moment::now());
            self.outcome.faults += 1;
            self.display.say(&format!("{id} has ended by itself: see its last words above"));
        }
    }

    fn requests(&self) -> u64 {
        let running = self.members.iter().chain(&self.leaving).map(|member| member.requests);
        self.outcome.requests + running.sum::<u64>()
    }

    async fn finish(&mut self) -> io::Result<()> {
        self.listen(Duration::from_millis(200)).await;
        self.count_separate();
        for mut member in self.members.drain(..).chain(self.leaving.drain(..)) {
            let died = member.kill().await?;
            while let Ok((member, Heard::Said(say))) = self.heard.try_recv() {
                match say {
                    Say::Begin { at, shard, epoch } => self.ledger.begin(shard, member, epoch, at),
                    Say::End { at, shard, epoch, .. } => self.ledger.end(shard, member, epoch, at),
                    Say::Requests { .. } => {}
                }
            }
            self.ledger.died(member.id, died);
            self.outcome.requests += member.requests;
        }
        self.display.close();
        let report = self.ledger.audit();
        self.outcome.overlaps = report.overlaps();
        self.outcome.faults += u32::from(report.verdict() != Verdict::Proved);
        self.display.say(report.to_string().trim_end());
        Ok(())
    }
}
