//! The world: hosts, one store, one true time, and a queue of what is going to happen.

use super::{
    super::{
        agenda::Agenda,
        clock::TrueTime,
        dice::Dice,
        link::{Link, Passage},
        node::Node,
        report::Violation,
        trace::Trace,
        troubles::Outage,
    },
    invariants::{Hosts, Invariant, Scene},
    node::{Input, Process},
    setting::Setting,
    store::Store,
    trace::{Step, Tenure},
    troubles::Undo,
};
use crate::{
    ObjectKey,
    key::InstanceId,
    machine::{Note, RequestId},
    session::{Object, Request, SessionRules},
    timing::Timing,
};
use fencing::{Clock as _, FencingGate, Reading};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    time::Duration,
};

/// Something that is going to happen.
#[derive(Debug)]
pub(super) enum Due {
    /// A request reaches the store; its answer goes back, or nobody waits for one.
    Arrives {
        host: usize,
        start: u32,
        id: RequestId,
        object: Object,
        request: Request,
        passage: Passage,
    },
    /// A note reaches the disk.
    Disk { host: usize, start: u32, id: RequestId, note: Note },
    /// The world is over.
    End,
    /// A write reaches the resource under a lease.
    GateWrite(Tenure),
    /// Each lease is given back once from here on.
    HandOver,
    /// Something reaches a process.
    Input { host: usize, start: u32, input: Input },
    /// Nothing goes wrong from here on.
    Peace,
    /// A tenure is given back, in peace.
    Release(Tenure),
    /// No disk fails from here on.
    Resolve,
    /// Something goes wrong.
    Trouble,
    /// Something that went wrong is right again.
    Undo(Undo),
    /// A timer of a process runs.
    Wake { host: usize, start: u32, order: u64 },
}

pub(super) struct World<R: SessionRules> {
    pub(super) setting: Setting,
    pub(super) dice: Dice,
    pub(super) time: TrueTime,
    pub(super) nodes: Vec<Node<Process<R>>>,
    pub(super) names: Vec<ObjectKey>,
    pub(super) store: Store,
    pub(super) outage: Option<Outage>,
    /// The one object that a host does not reach.
    pub(super) cut_off: BTreeMap<usize, Object>,
    pub(super) is_peaceful: bool,
    /// Disks do not fail any more.
    pub(super) is_resolved: bool,
    /// Who waits for each lease in peace.
    pub(super) wanted_by: Vec<BTreeSet<InstanceId>>,
    /// Instances of which a process was started.
    pub(super) used: BTreeSet<InstanceId>,
    /// The nonce of the last release that each host sent.
    pub(super) releases: BTreeMap<usize, crate::record::Nonce>,
    pub(super) agenda: Agenda<Due>,
    pub(super) tenures: u32,
    pub(super) instances: u32,
    gates: Vec<FencingGate>,
    invariants: Vec<Box<dyn Invariant>>,
    trace: Trace<Step>,
    pub(super) violation: Option<Violation>,
    pub(super) counts: Counts,
}

/// What happened how often.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Counts {
    /// Tenures of leases whose fence opened.
    pub opened: u64,
    /// Lives of sessions whose fence opened.
    pub lives: u64,
    /// Sessions that were ended by another, since they were silent.
    pub killed: u64,
    /// Writes that the store carried out.
    pub written: u64,
    /// Things that went wrong, apart from single requests.
    pub troubles: u64,
    /// Leases that were changed by hand in a way that the token alone covers.
    pub token_alone: u64,
    /// Writes at a resource that were refused, since a larger token was seen.
    pub stale_writes_refused: u64,
    /// Steps in all.
    pub steps: u64,
}

impl<R: SessionRules> fmt::Debug for World<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").field("setting", &self.setting).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct View<'a, R: SessionRules>(&'a [Node<Process<R>>], &'a [BTreeSet<InstanceId>]);

impl<R: SessionRules> Hosts for View<'_, R> {
    fn reading(&self, host: usize) -> Reading {
        self.0.get(host).map(|node| node.clock.reading()).unwrap_or_default()
    }

    fn timing(&self, host: usize) -> Timing {
        self.0.get(host).map(|node| node.timing).unwrap_or_default()
    }

    fn instance(&self, host: usize) -> Option<&InstanceId> {
        self.0.get(host).map(|node| &node.directory.instance)
    }

    fn is_wanted(&self, name: usize) -> bool {
        self.1.get(name).is_some_and(|by| !by.is_empty())
    }
}

impl<R: SessionRules> World<R> {
    pub(super) fn new(
        setting: Setting,
        dice: Dice,
        invariants: Vec<Box<dyn Invariant>>,
        trace: Trace<Step>,
    ) -> Self {
        let names = (0..setting.names).filter_map(|name| ObjectKey::new(&format!("n{name}")).ok());
        let mut world = Self {
            dice,
            time: TrueTime::default(),
            nodes: Vec::new(),
            names: names.collect(),
            store: Store::new(setting.world.secret, setting.world.tells_age),
            outage: None,
            cut_off: BTreeMap::new(),
            is_peaceful: false,
            is_resolved: false,
            wanted_by: vec![BTreeSet::new(); setting.names],
            used: BTreeSet::new(),
            releases: BTreeMap::new(),
            agenda: Agenda::new(),
            tenures: 0,
            instances: 0,
            gates: (0..setting.names).map(|_| FencingGate::new()).collect(),
            invariants,
            trace,
            violation: None,
            counts: Counts::default(),
            setting,
        };
        for timing in world.setting.world.instances.clone() {
            let directory = world.new_directory();
            world.add_host(timing, directory);
        }
        let sizes = &world.setting.world;
        let (hazardous, ttl) = (sizes.hazardous, sizes.largest_ttl());
        let first = world.next_trouble();
        world.after(first, Due::Trouble);
        world.after(hazardous.saturating_sub(ttl * 11 / 10), Due::Resolve);
        world.after(hazardous, Due::Peace);
        world.after(hazardous + world.setting.owned_within(), Due::HandOver);
        world.after(hazardous + world.setting.peace(), Due::End);
        world
    }

    /// Runs to the end of the world, or to the first thing that is not as it must be.
    pub(super) fn run(mut self) -> (Counts, Trace<Step>, Option<Violation>) {
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
        self.watched(|invariant, scene| invariant.finish(scene));
    }

    /// Tells everybody who watches.
    pub(super) fn note(&mut self, step: Step) {
        self.trace.note(self.time.now(), &step);
        self.watched(|invariant, scene| invariant.observe(&step, scene));
    }

    fn watched(&mut self, look: impl Fn(&mut dyn Invariant, &Scene<'_>) -> Result<(), String>) {
        let view = View(&self.nodes, &self.wanted_by);
        let scene = Scene { now: self.time.now(), setting: &self.setting, hosts: &view };
        for invariant in &mut self.invariants {
            if let Err(what) = look(invariant.as_mut(), &scene) {
                let violation = Violation::new(invariant.name(), scene.now, what);
                self.violation.get_or_insert(violation);
            }
        }
    }

    pub(super) fn after(&mut self, after: Duration, due: Due) {
        self.agenda.put(self.time.now() + after, due);
    }

    fn happens(&mut self, due: Due) {
        match due {
            Due::Arrives { host, start, id, object, request, passage } => {
                self.arrives((host, start, id), &object, &request, passage);
            }
            Due::Disk { host, start, id, note } => self.disk(host, start, id, &note),
            Due::End => {}
            Due::GateWrite(tenure) => match self.gates[tenure.name].admit(tenure.epoch) {
                Ok(_) => self.note(Step::Admitted { tenure }),
                Err(_) => {
                    self.counts.stale_writes_refused += 1;
                    self.note(Step::Refused { tenure });
                }
            },
            Due::HandOver => self.hand_over(),
            Due::Input { host, start, input } => self.input(host, start, input),
            Due::Peace => self.peace(),
            Due::Release(tenure) => self.release(tenure),
            Due::Resolve => {
                self.is_resolved = true;
                self.nodes.iter_mut().for_each(|node| node.disk_works = true);
            }
            Due::Trouble => self.trouble(),
            Due::Undo(undo) => self.undo(undo),
            Due::Wake { host, start, order } => {
                let node = &self.nodes[host];
                let process = node.process.as_ref().filter(|_| node.starts == start);
                if process.is_some_and(|it| !it.is_paused && it.wake_order == order) {
                    self.with(host, |machine, now| machine.handle_timeout(now));
                }
            }
        }
    }

    fn peace(&mut self) {
        self.is_peaceful = true;
        self.outage = None;
        self.cut_off.clear();
        // What is still on its way arrives now.
        let on_its_way = self.agenda.take(|due| {
            let is_told = matches!(due, Due::Input { input: Input::Persisted(..), .. });
            is_told || matches!(due, Due::Arrives { .. } | Due::Disk { .. })
        });
        for due in on_its_way {
            self.happens(due);
        }
        self.agenda.take(|due| matches!(due, Due::Undo(_) | Due::Trouble));
        self.choose_who_waits();
        self.note(Step::Peace);
        for host in 0..self.nodes.len() {
            let latency = self.calm_latency(host);
            let node = &mut self.nodes[host];
            (node.link, node.disk_works) = (Link::calm(latency), true);
            node.clock.set_standing(false);
            self.resume(host);
            if self.nodes[host].process.as_ref().is_some_and(|process| process.is_stopping) {
                self.kill(host);
            }
            if self.nodes[host].process.is_none() {
                self.start(host);
            }
            self.wish_in_peace(host, true);
        }
    }

    /// Each lease is waited for by at least one instance, and as often as not not by all: what somebody
    /// holds without knowing must not depend on their wanting it again.
    fn choose_who_waits(&mut self) {
        let instances: Vec<_> =
            self.nodes.iter().map(|node| node.directory.instance.clone()).collect();
        for name in 0..self.names.len() {
            let everybody = self.dice.one_in(3);
            let mut by: BTreeSet<_> =
                instances.iter().filter(|_| everybody || self.dice.one_in(2)).cloned().collect();
            by.extend(self.dice.pick(&instances).cloned());
            self.wanted_by[name] = by;
        }
    }

    fn hand_over(&mut self) {
        self.note(Step::HandOver);
        let held = self.nodes.iter().filter_map(|node| node.process.as_ref());
        let held: Vec<_> =
            held.flat_map(|process| process.leases.values().map(|held| held.tenure)).collect();
        for tenure in held {
            let within = self.setting.world.largest_renew() * 2;
            let after = self.dice.up_to(within);
            self.after(after, Due::Release(tenure));
        }
    }
}
