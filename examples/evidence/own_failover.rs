//! A service of one's own in simulated failovers: what the lease alone does not give it.
//!
//! The service numbers orders. Whoever is active reads the last number when it takes over, counts on
//! in memory, and sends each order to a log that is somewhere else; an order may be on its way for
//! long. What must hold is the service's own: no number is given to two orders.
//!
//! ```console
//! cargo run --release --example own_failover -- --runs 2000 --log sealed
//! cargo run --release --example own_failover -- --runs 2000 --log gated
//! cargo run --release --example own_failover -- --runs 2000 --log plain
//! ```
//!
//! A log that takes what comes (`plain`) gives numbers twice: an order that was sent while its fence
//! was open arrives when another instance is active. One with a gate (`gated`) refuses it once it has
//! seen the larger token, which is too late for what comes before the new one's first order. Only one
//! that is told of the takeover first (`sealed`), and read after that, keeps the numbers apart.
//!
//! The last line is `runs=… violations=…`; the exit code is 1 if something did not hold.

mod shared;

use clap::{Parser, ValueEnum};
use lease_core::{
    fencing::{Epoch, FencingGate},
    machine::{EndReason, Predecessor},
    testing::sim::{Application, Failure, Host, Simulation},
};
use shared::{bar, in_parallel};
use std::{cell::RefCell, collections::BTreeMap, process::ExitCode, rc::Rc, time::Duration};

#[derive(Parser, Debug)]
#[command(about = "Runs a service that numbers orders through simulated failovers")]
struct Args {
    /// How many worlds.
    #[arg(long, default_value_t = 2_000)]
    runs: u64,
    /// The seed of the first.
    #[arg(long, default_value_t = 0)]
    first_seed: u64,
    /// What the log does with orders of earlier tenures.
    #[arg(long, value_enum, default_value_t = Defence::Sealed)]
    log: Defence,
}

/// What a log does with orders of earlier tenures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Defence {
    /// It takes them.
    Plain,
    /// It refuses a token below one that came with an order.
    Gated,
    /// It also learns the token of a takeover before it is read.
    Sealed,
}

/// Where the orders go. It outlives every process, and all instances share it.
struct Log {
    defence: Defence,
    gate: FencingGate,
    orders: BTreeMap<u64, Epoch>,
}

impl Log {
    fn new(defence: Defence) -> Self {
        Self { defence, gate: FencingGate::default(), orders: BTreeMap::new() }
    }

    /// What a takeover does: seal, then read.
    fn take_over(&self, token: Epoch) -> u64 {
        if self.defence == Defence::Sealed {
            // A refusal means that a later tenure sealed it already; this one's orders will fail.
            let _ = self.gate.raise(token);
        }
        self.orders.last_key_value().map_or(1, |(last, _)| last + 1)
    }

    /// Takes an order, unless it is of an earlier tenure. It is wrong if the number was given before.
    fn take(&mut self, number: u64, token: Epoch) -> Result<(), String> {
        if self.defence != Defence::Plain && self.gate.admit(token).is_err() {
            return Ok(()); // refused: whoever sent it is told, and nothing is wrong
        }
        match self.orders.insert(number, token) {
            None => Ok(()),
            Some(other) => Err(format!("order {number} of epoch {token} meets one of {other}")),
        }
    }
}

/// One process of the service.
struct Orders {
    log: Rc<RefCell<Log>>,
    next: u64,
    /// Timers of earlier tenures do not count.
    tenure: u64,
}

impl Application for Orders {
    fn taking_over(&mut self, _: &Predecessor, host: &mut Host<'_>) {
        if let Some(token) = host.epoch() {
            self.next = self.log.borrow().take_over(token);
            host.confirm();
        }
    }

    fn active(&mut self, host: &mut Host<'_>) {
        self.tenure += 1;
        host.wake_after(Duration::from_millis(100), self.tenure);
    }

    fn woken(&mut self, timer: u64, host: &mut Host<'_>) {
        let open = host.fence().filter(|fence| fence.check().is_ok());
        let Some(token) = open.map(|fence| fence.epoch()).filter(|_| timer == self.tenure) else {
            return;
        };
        let (number, log) = (self.next, Rc::clone(&self.log));
        self.next += 1;
        let longest = 2 * host.ttl();
        let travel = host.dice().up_to(longest);
        host.write_later(travel, move || log.borrow_mut().take(number, token));
        host.wake_after(Duration::from_millis(700), self.tenure);
    }

    fn ended(&mut self, _: &EndReason, _: &mut Host<'_>) {
        self.tenure += 1;
    }
}

fn run(seed: u64, defence: Defence) -> Option<Failure> {
    let simulation = Simulation::new(seed).application(move || {
        let log = Rc::new(RefCell::new(Log::new(defence)));
        move |_host| Orders { log: Rc::clone(&log), next: 1, tenure: 0 }
    });
    simulation.run().err().map(|failure| *failure)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let bar = bar(args.runs, "worlds");
    let seeds = args.first_seed..args.first_seed.saturating_add(args.runs);
    let parts = in_parallel(seeds, |seeds| {
        let failures = seeds.filter_map(|seed| {
            bar.inc(1);
            run(seed, args.log)
        });
        failures.collect::<Vec<_>>()
    });
    bar.finish_and_clear();
    let mut failures: Vec<_> = parts.into_iter().flatten().collect();
    failures.sort_by_key(|failure| failure.seed);
    if let Some(first) = failures.first() {
        println!("{first}");
    }
    println!("runs={} violations={}", args.runs, failures.len());
    ExitCode::from(u8::from(!failures.is_empty()))
}
