//! The world: hosts, one store, one true time, and a queue of what is going to happen.

use super::{
    Processes,
    agenda::Agenda,
    application::Resource,
    clock::TrueTime,
    dice::Dice,
    hazards::Setting,
    invariants::{Hosts, Invariant, Scene},
    link::{Link, Passage},
    node::{Input, Node, Process},
    object::ObjectStore,
    report::Violation,
    trace::{Step, Tenure, Trace},
    troubles::Outage,
};
use crate::{
    machine::{Request, RequestId, Rules},
    store::{StoreErrorKind, Version},
    timing::Timing,
};
use fencing::{Clock as _, Epoch, Fence, Reading};
use std::{collections::BTreeMap, fmt, time::Duration};

/// Something that is going to happen.
pub(super) enum Due {
    /// A request reaches the store; its answer goes back, or nobody waits for one.
    Arrives { host: usize, start: u32, id: RequestId, request: Request, passage: Passage },
    /// A note reaches the disk.
    Disk { host: usize, start: u32, id: RequestId, note: crate::machine::Note },
    /// The world is over.
    End,
    /// The epoch floor is looked up.
    Floor { host: usize, start: u32, id: RequestId },
    /// A write reaches the world's resource.
    GateWrite(Tenure),
    /// Something reaches a process.
    Input { host: usize, start: u32, input: Input },
    /// Nothing goes wrong from here on.
    Peace,
    /// Nobody gives a takeover up from here on.
    Resolve,
    /// Something goes wrong.
    Trouble,
    /// Something that went wrong is right again.
    Undo(super::troubles::Undo),
    /// A timer of a process runs.
    Wake { host: usize, start: u32, order: u64 },
    /// A write of an application takes effect.
    Write(Box<dyn FnOnce() -> Result<(), String>>),
}

pub(super) struct World<R: Rules> {
    pub(super) setting: Setting,
    pub(super) dice: Dice,
    pub(super) time: TrueTime,
    pub(super) nodes: Vec<Node<Process<R>>>,
    pub(super) store: ObjectStore,
    pub(super) outage: Option<Outage>,
    pub(super) is_peaceful: bool,
    /// Nobody gives a takeover up any more.
    pub(super) is_resolved: bool,
    /// The version and the epoch that each host read last.
    pub(super) seen: BTreeMap<usize, (Version, Epoch)>,
    /// The nonce of the last release that each host sent.
    pub(super) releases: BTreeMap<usize, crate::record::Nonce>,
    pub(super) processes: Processes,
    pub(super) agenda: Agenda<Due>,
    pub(super) tenures: u32,
    pub(super) instances: u32,
    /// The highest epoch that was ever open: what snapshots prove.
    pub(super) highest_opened: Option<Epoch>,
    resource: Resource,
    invariants: Vec<Box<dyn Invariant>>,
    trace: Trace,
    pub(super) violation: Option<Violation>,
    pub(super) counts: Counts,
}

/// What happened how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Tenures whose fence opened.
    pub opened: u64,
    /// Writes of the lease that the store carried out.
    pub written: u64,
    /// Things that went wrong, apart from single requests.
    pub troubles: u64,
    /// Writes at the resource that were refused, since a larger token was seen.
    pub stale_writes_refused: u64,
    /// Steps in all.
    pub steps: u64,
}

impl<R: Rules> fmt::Debug for World<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("setting", &self.setting).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct View<'a, R: Rules>(&'a [Node<Process<R>>]);

impl<R: Rules> Hosts for View<'_, R> {
    fn reading(&self, host: usize) -> Reading {
        self.0.get(host).map(|node| node.clock.reading()).unwrap_or_default()
    }

    fn fence(&self, host: usize) -> Option<&Fence> {
        self.0.get(host)?.process.as_ref()?.fence.as_ref()
    }

    fn timing(&self, host: usize) -> Timing {
        self.0.get(host).map(|node| node.timing).unwrap_or_default()
    }

    fn recorded_epoch(&self, host: usize) -> Option<Epoch> {
        self.0.get(host)?.directory.past.last_epoch
    }
}

impl<R: Rules> World<R> {
    pub(super) fn new(
        setting: Setting,
        dice: Dice,
        processes: Processes,
        invariants: Vec<Box<dyn Invariant>>,
        trace: Trace,
    ) -> Self {
        let store = ObjectStore::new(setting.secret, setting.tells_age);
        let mut world = Self {
            dice,
            time: TrueTime::default(),
            nodes: Vec::new(),
            store,
            outage: None,
            is_peaceful: false,
            is_resolved: false,
            releases: BTreeMap::new(),
            seen: BTreeMap::new(),
            processes,
            agenda: Agenda::new(),
            tenures: 0,
            instances: 0,
            highest_opened: None,
            resource: Resource::default(),
            invariants,
            trace,
            violation: None,
            counts: Counts::default(),
            setting,
        };
        for timing in world.setting.instances.clone() {
            let directory = world.new_directory();
            world.add_host(timing, directory);
        }
        let hazardous = world.setting.hazardous;
        let first = world.next_trouble();
        world.after(first, Due::Trouble);
        let resolved = hazardous.saturating_sub(world.setting.largest_ttl() * 11 / 10);
        world.after(resolved, Due::Resolve);
        world.after(hazardous, Due::Peace);
        world.after(hazardous + world.setting.peace, Due::End);
        world
    }

    /// Runs to the end of the world, or to the first thing that is not as it must be.
    pub(super) fn run(mut self) -> (Counts, Trace, Option<Violation>) {
        while self.violation.is_none() {
            let Some((at, due)) = self.agenda.next() else { break };
            self.time.set(at);
            match due {
                Some(Due::End) => {
                    self.finish();
                    break;
                }
                Some(due) => self.happens(due),
                None => {}
            }
        }
        self.counts.steps = self.trace.steps();
        (self.counts, self.trace, self.violation)
    }

    fn finish(&mut self) {
        let mut invariants = std::mem::take(&mut self.invariants);
        let view = View(&self.nodes);
        let scene = Scene { now: self.time.now(), setting: &self.setting, hosts: &view };
        for invariant in &mut invariants {
            if let Err(what) = invariant.finish(&scene) {
                let (now, name) = (scene.now, invariant.name());
                self.violation.get_or_insert(Violation::new(name, now, what));
            }
        }
        self.invariants = invariants;
    }

    /// Tells everybody who watches.
    pub(super) fn note(&mut self, step: Step) {
        let now = self.time.now();
        self.trace.note(now, &step);
        let view = View(&self.nodes);
        let scene = Scene { now, setting: &self.setting, hosts: &view };
        for invariant in &mut self.invariants {
            if let Err(what) = invariant.observe(&step, &scene) {
                self.violation.get_or_insert(Violation::new(invariant.name(), now, what));
            }
        }
    }

    pub(super) fn after(&mut self, after: Duration, due: Due) {
        self.agenda.put(self.time.now() + after, due);
    }

    pub(super) fn happens(&mut self, due: Due) {
        match due {
            Due::Arrives { host, start, id, request, passage } => {
                self.arrives(host, start, id, request, passage);
            }
            Due::Disk { host, start, id, note } => self.disk(host, start, id, &note),
            Due::End => {}
            Due::Floor { host, start, id } => {
                let node = &self.nodes[host];
                let told = match node.floor_works {
                    true => Ok(self.highest_opened),
                    false => Err(StoreErrorKind::Unavailable),
                };
                let back = self.hop(host);
                self.after(back, Due::Input { host, start, input: Input::Floor(id, told) });
            }
            Due::GateWrite(tenure) => match self.resource.admits(tenure) {
                true => self.note(Step::Admitted { tenure }),
                false => {
                    self.counts.stale_writes_refused += 1;
                    self.note(Step::Refused { tenure });
                }
            },
            Due::Input { host, start, input } => self.input(host, start, input),
            Due::Peace => self.peace(),
            Due::Resolve => self.resolve(),
            Due::Trouble => self.trouble(),
            Due::Undo(undo) => self.undo(undo),
            Due::Wake { host, start, order } => {
                let node = &self.nodes[host];
                let is_due = node.starts == start
                    && node
                        .process
                        .as_ref()
                        .is_some_and(|it| !it.is_paused && it.wake_order == order);
                if is_due {
                    self.with(host, |machine, now| machine.handle_timeout(now));
                }
            }
            Due::Write(write) => {
                if let Err(what) = write() {
                    let now = self.time.now();
                    self.violation.get_or_insert(Violation::new("application", now, what));
                }
            }
        }
    }

    /// Whoever gives a takeover up keeps out for T. So that this is over when peace begins, nobody has
    /// a reason to any more: applications are ready, and disks work.
    fn resolve(&mut self) {
        self.is_resolved = true;
        for host in 0..self.nodes.len() {
            self.nodes[host].disk_works = true;
            if self.is_running(host) {
                self.with(host, |machine, now| machine.confirm(now));
            }
        }
    }

    fn peace(&mut self) {
        self.is_peaceful = true;
        self.outage = None;
        // What is still on its way arrives now.
        let on_its_way = self.agenda.take(|due| {
            let is_told = matches!(due, Due::Input { input: Input::Persisted(..), .. });
            is_told || matches!(due, Due::Arrives { .. } | Due::Disk { .. })
        });
        for due in on_its_way {
            self.happens(due);
        }
        self.agenda.take(|due| matches!(due, Due::Undo(_) | Due::Trouble));
        self.note(Step::Peace);
        for host in 0..self.nodes.len() {
            let latency = self.calm_latency(host);
            let node = &mut self.nodes[host];
            (node.link, node.disk_works, node.floor_works) = (Link::calm(latency), true, true);
            node.clock.set_standing(false);
            match &node.process {
                None => self.start(host),
                Some(_) => self.resume(host),
            }
            self.with(host, |machine, now| {
                machine.want(true, now);
                machine.confirm(now);
            });
        }
    }
}
