//! What ten thousand leases under one session hold in memory: the machine's table and the fences.

use fencing::{Clock as _, Epoch, FenceControl, SystemClock};
use lease_core::{
    ObjectKey,
    auth::Verdict,
    key::InstanceId,
    machine::{Entropy, Facts, FenceOrder, Past},
    record::Nonce,
    session::{
        Action, Config, LeaseFenceOrder, Life, NamedFacts, Object, Reply, Request, SessionMachine,
        Sighting,
    },
    store::Version,
    timing::Timing,
};
use libtest_mimic::{Arguments, Failed, Trial};
use peak_alloc::PeakAlloc;
use std::{collections::BTreeMap, sync::Arc};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const LEASES: usize = 10_000;
/// What one of them may hold.
const LIMIT: usize = 1_024;

fn main() {
    let arguments = Arguments::from_args();
    let trial = Trial::test("ten_thousand_leases_hold_less_than_a_kibibyte_each", measure);
    libtest_mimic::run(&arguments, vec![trial]).exit();
}

struct Counting(u128);

impl Entropy for Counting {
    fn nonce(&mut self) -> Nonce {
        self.0 += 1;
        Nonce::from_bytes(self.0.to_be_bytes())
    }
}

/// A process that holds leases, on a store where each was released once and every write succeeds.
struct Process {
    machine: SessionMachine,
    entropy: Counting,
    session: Option<FenceControl>,
    leases: BTreeMap<ObjectKey, FenceControl>,
    writes: u128,
}

impl Process {
    fn settle(&mut self) -> Result<(), Failed> {
        let clock = SystemClock::new();
        while let Some(action) = self.machine.poll_action(clock.reading(), &mut self.entropy) {
            match action {
                Action::Send { id, object, request } => {
                    let reply = match (object, request) {
                        (Object::Lease(_), Request::Read { .. }) => Reply::Lease(released()?),
                        (_, Request::Read { .. }) => Reply::Session(Sighting::Missing),
                        _ => {
                            self.writes += 1;
                            // As long as an ETag.
                            Reply::Written(Version::new(format!("\"{:032x}\"", self.writes)))
                        }
                    };
                    self.machine.handle_reply(id, reply, clock.reading());
                }
                Action::Fence { epoch, order: FenceOrder::Open { sent, window } } => {
                    let control = FenceControl::new(epoch, Arc::new(clock));
                    self.session.insert(control).open(sent, window)?;
                }
                Action::LeaseFence { lease, epoch, order } => {
                    let session = self.session.as_ref().ok_or("no session")?.fence();
                    let mut control = FenceControl::under(&session, epoch);
                    if let LeaseFenceOrder::Open { sent, window } = order {
                        control.open(sent, window)?;
                    }
                    self.leases.insert(lease, control);
                }
                _ => {}
            }
            while self.machine.poll_event().is_some() {}
        }
        Ok(())
    }
}

fn released() -> Result<Sighting<NamedFacts>, Failed> {
    let (session, nonce) = (InstanceId::new("b")?, Nonce::from_bytes([1; 16]));
    let lease = Facts::new(None, Epoch::MIN, 2, Some(nonce), Timing::default().ttl());
    let life = Life { epoch: Epoch::MIN, nonce };
    Ok(Sighting::Found {
        version: Version::new(format!("\"{:032x}\"", 0)),
        verdict: Verdict::Unsigned,
        facts: Some(Arc::new(NamedFacts { lease, session, life, held_back: false })),
        age: None,
    })
}

fn measure() -> Result<(), Failed> {
    let clock = SystemClock::new();
    for every in [None, Some(std::time::Duration::from_secs(60))] {
        let mut config = Config::new(InstanceId::new("a")?, Timing::default());
        config.fresh_instance = true;
        if let Some(every) = every {
            config = config.with_audit(every)?;
        }
        let machine = SessionMachine::new(config, Past::default(), clock.reading());
        let (session, leases) = (None, BTreeMap::new());
        let mut process = Process { machine, entropy: Counting(0), session, leases, writes: 0 };
        process.settle()?;
        let before = ALLOCATOR.current_usage();
        for number in 0..LEASES {
            let lease = ObjectKey::new(&format!("orders/leases/shard-{number}"))?;
            process.machine.acquire(lease, clock.reading())?;
        }
        process.settle()?;
        if process.machine.all_held().count() != LEASES {
            return Err(format!("{} held", process.machine.all_held().count()).into());
        }
        let each = (ALLOCATOR.current_usage() - before) / LEASES;
        assert_eq!(process.leases.len(), LEASES, "each has a fence");
        println!("{each} bytes for each lease held, audit {every:?}");
        if each > LIMIT {
            return Err(format!("{each} bytes for each lease, more than {LIMIT}").into());
        }
    }
    Ok(())
}
