//! The world: hosts, one store, one true time, and a queue of what is going to happen.

use super::{
    Factory,
    application::{Host, Resource},
    clock::{HostClock, TrueTime},
    dice::Dice,
    hazards::{Hazard, Setting},
    invariants::{Hosts, Invariant, Scene},
    link::{Fate, Link, Passage},
    node::{Directory, Input, Node, Process, Wish},
    object::ObjectStore,
    report::Violation,
    trace::{Step, Tenure, Trace},
    troubles::Outage,
};
use crate::{
    key::InstanceId,
    machine::{
        Action, Config, Draft, Event, FenceOrder, Machine, Reply, Request, RequestId, Rules,
        Sighting,
    },
    store::{StoreErrorKind, Version},
    timing::Timing,
};
use fencing::{Clock as _, Epoch, Fence, FenceControl, Reading, WallTime};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    fmt,
    sync::Arc,
    time::Duration,
};

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
    /// Applications stop giving up.
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
    pub(super) nodes: Vec<Node<R>>,
    pub(super) store: ObjectStore,
    pub(super) outage: Option<Outage>,
    pub(super) is_peaceful: bool,
    /// Applications do not give up any more.
    pub(super) is_resolved: bool,
    /// The version and the epoch that each host read last.
    pub(super) seen: BTreeMap<usize, (Version, Epoch)>,
    /// The nonce of the last release that each host sent.
    pub(super) releases: BTreeMap<usize, crate::record::Nonce>,
    factory: Factory,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    dues: BTreeMap<u64, Due>,
    ordered: u64,
    tenures: u32,
    instances: u32,
    /// The highest epoch that was ever open: what snapshots prove.
    highest_opened: Option<Epoch>,
    resource: Resource,
    invariants: Vec<Box<dyn Invariant>>,
    trace: Trace,
    violation: Option<Violation>,
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
struct View<'a, R: Rules>(&'a [Node<R>]);

impl<R: Rules> fmt::Debug for Node<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("directory", &self.directory).finish_non_exhaustive()
    }
}

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
        factory: Factory,
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
            factory,
            queue: BinaryHeap::new(),
            dues: BTreeMap::new(),
            ordered: 0,
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
        // Whoever gave up a takeover keeps out for T: that is over when peace begins.
        let resolved = hazardous.saturating_sub(world.setting.largest_ttl() * 11 / 10);
        world.after(resolved, Due::Resolve);
        world.after(hazardous, Due::Peace);
        world.after(hazardous + world.setting.peace, Due::End);
        world
    }

    /// Runs to the end of the world, or to the first thing that is not as it must be.
    pub(super) fn run(mut self) -> (Counts, Trace, Option<Violation>) {
        while self.violation.is_none() {
            let Some(Reverse((at, order))) = self.queue.pop() else { break };
            self.time.set(at);
            match self.dues.remove(&order) {
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
        self.ordered += 1;
        self.queue.push(Reverse((self.time.now() + after, self.ordered)));
        self.dues.insert(self.ordered, due);
    }

    fn happens(&mut self, due: Due) {
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
            Due::Resolve => self.is_resolved = true,
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

    fn peace(&mut self) {
        self.is_peaceful = true;
        self.outage = None;
        // What is still on its way arrives now.
        let (on_its_way, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.dues).into_iter().partition(|(_, due)| {
                let is_told = matches!(due, Due::Input { input: Input::Persisted(..), .. });
                is_told || matches!(due, Due::Arrives { .. } | Due::Disk { .. })
            });
        self.dues = rest;
        for (_, due) in on_its_way {
            self.happens(due);
        }
        self.dues.retain(|_, due| !matches!(due, Due::Undo(_) | Due::Trouble));
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

    // ---- hosts and processes ----

    pub(super) fn new_directory(&mut self) -> Directory {
        self.instances += 1;
        let name = format!("instance-{}", self.instances);
        let instance = InstanceId::new(&name).unwrap_or_else(|_| unreachable!("a plain name"));
        Directory::new(instance)
    }

    /// A host with its own clocks, and a process on it.
    pub(super) fn add_host(&mut self, timing: Timing, directory: Directory) {
        let setting = &self.setting;
        let rate = setting.rate(&mut self.dice);
        let offset = self.dice.up_to(setting.wall_offset);
        let wall = WallTime::from_unix_seconds(1_767_225_600) + self.time.now() + offset;
        let uptime = Duration::from_secs(10) + self.dice.up_to(Duration::from_secs(10_000));
        let clock = HostClock::new(&self.time, uptime, wall, rate);
        let host = self.nodes.len();
        self.nodes.push(Node {
            timing,
            clock,
            directory,
            disk_works: true,
            link: Link::calm(timing.renew() / 25),
            floor_works: true,
            starts: 0,
            process: None,
        });
        self.start(host);
    }

    /// A process is started on a host that has none.
    pub(super) fn start(&mut self, host: usize) {
        let application = (self.factory)(host);
        let setting = &self.setting;
        let seed = self.dice.roll();
        let node = &mut self.nodes[host];
        let mut config = Config::new(node.directory.instance.clone(), node.timing);
        config.epochs = setting.epochs;
        config.phase_lock = setting.phase_lock;
        config.has_secret = setting.secret;
        config.has_floor = setting.floor;
        config.has_history = true;
        config.takeover_budget = setting.largest_ttl() * 3;
        config.jitter_seed = Some(seed);
        let past = node.directory.told(setting.reclaim);
        let now = node.clock.reading();
        node.starts += 1;
        node.process = Some(Process::new(config, past, application, now, &mut self.dice));
        self.with(host, |machine, now| machine.want(true, now));
    }

    /// The process of a host is gone, with everything in its memory.
    pub(super) fn kill(&mut self, host: usize) {
        let Some(process) = self.nodes[host].process.take() else { return };
        if let Some(tenure) = process.tenure {
            self.note(Step::Shut { tenure });
        }
        self.note(Step::Trouble { host: Some(host), what: super::PROCESS_DIES });
    }

    /// A process that stood still goes on: what waited for it comes before its timers, or after.
    pub(super) fn resume(&mut self, host: usize) {
        let Some(process) = &mut self.nodes[host].process else { return };
        if !std::mem::take(&mut process.is_paused) {
            return;
        }
        let inbox = std::mem::take(&mut process.inbox);
        let start = self.nodes[host].starts;
        self.note(Step::Trouble { host: Some(host), what: "its process goes on" });
        if self.dice.one_in(2) {
            self.with(host, |machine, now| machine.handle_timeout(now));
        }
        for input in inbox {
            self.input(host, start, input);
        }
        self.with(host, |machine, now| machine.handle_timeout(now));
    }

    fn input(&mut self, host: usize, start: u32, input: Input) {
        let node = &mut self.nodes[host];
        if node.starts != start {
            return;
        }
        let Some(process) = &mut node.process else { return };
        if process.is_paused {
            process.inbox.push(input);
            return;
        }
        match input {
            Input::Floor(id, told) => self.with(host, |it, now| it.handle_floor(id, told, now)),
            Input::Persisted(id, ok) => {
                self.with(host, |machine, now| machine.handle_persisted(id, ok, now));
            }
            Input::Reply(id, reply) => {
                if let Reply::Read(Sighting::Found { version, facts: Some(facts), .. }) = &reply {
                    self.seen.insert(host, (version.clone(), facts.epoch));
                }
                self.note(Step::Answered { host, reply: reply.clone() });
                self.with(host, |machine, now| machine.handle_reply(id, reply, now));
            }
            Input::Timer(timer) => {
                self.ask(host, |application, host| application.woken(timer, host));
                self.settle(host);
            }
        }
    }

    /// Something happens to the machine of a host, and what follows from it.
    pub(super) fn with(&mut self, host: usize, act: impl FnOnce(&mut Machine<R>, Reading)) {
        let node = &mut self.nodes[host];
        let now = node.clock.reading();
        if let Some(process) = &mut node.process {
            act(&mut process.machine, now);
            self.settle(host);
        }
    }

    /// Carries out what a machine wants until it wants nothing more.
    fn settle(&mut self, host: usize) {
        for _ in 0..1_000 {
            let node = &mut self.nodes[host];
            let now = node.clock.reading();
            let Some(process) = &mut node.process else { return };
            if let Some(action) = process.machine.poll_action(now, &mut process.entropy) {
                self.act(host, action, now);
            } else if let Some(event) = process.machine.poll_event() {
                self.hear(host, event);
            } else {
                return self.rest(host, now);
            }
            if self.violation.is_some() {
                return;
            }
        }
        let what = format!("host {host} never comes to rest");
        self.violation.get_or_insert(Violation::new("rest", self.time.now(), what));
    }

    fn rest(&mut self, host: usize, now: Reading) {
        self.ordered += 1;
        let order = self.ordered;
        let node = &mut self.nodes[host];
        let Some(process) = &mut node.process else { return };
        let wake = process.machine.poll_timeout(now);
        process.wake_order = order;
        self.note(Step::Rested { host, wake });
        let node = &self.nodes[host];
        let Some(due) = wake.and_then(|wake| node.clock.when(wake)) else { return };
        // A timer runs late: by a little as a rule, now and then by a lot.
        let renew = node.timing.renew();
        let most = match !self.is_peaceful && self.dice.one_in(300) {
            true => renew * 2,
            false => renew / 50,
        };
        // To the nanosecond, too: what is half-open has to show.
        let late = if self.dice.one_in(4) { Duration::ZERO } else { self.dice.of_any_size(most) };
        let start = self.nodes[host].starts;
        let at = due.max(self.time.now()) + late;
        self.queue.push(Reverse((at, order)));
        self.dues.insert(order, Due::Wake { host, start, order });
    }

    fn act(&mut self, host: usize, action: Action, now: Reading) {
        let start = self.nodes[host].starts;
        match action {
            Action::Send(id, request) => self.send(host, start, id, request, now),
            Action::Fence(order) => self.fence(host, order, now),
            Action::Persist(id, note) => {
                let (out, takes) = (self.hop(host), self.nodes[host].timing.ttl());
                match self.nodes[host].disk_works {
                    true => self.after(out, Due::Disk { host, start, id, note }),
                    false => {
                        let takes = self.dice.of_any_size(takes);
                        let input = Input::Persisted(id, false);
                        self.after(takes, Due::Input { host, start, input });
                    }
                }
            }
            Action::FetchFloor(id) => {
                let out = self.hop(host);
                self.after(out, Due::Floor { host, start, id });
            }
            _ => {}
        }
    }

    fn disk(&mut self, host: usize, start: u32, id: RequestId, note: &crate::machine::Note) {
        if self.nodes[host].starts != start || self.nodes[host].process.is_none() {
            return;
        }
        self.nodes[host].directory.write(note);
        let back = self.hop(host);
        self.after(back, Due::Input { host, start, input: Input::Persisted(id, true) });
    }

    fn fence(&mut self, host: usize, order: FenceOrder, now: Reading) {
        let clock = self.nodes[host].clock.clone();
        let Some(process) = &mut self.nodes[host].process else { return };
        let Some(tenure) = process.tenure else { return };
        let Some(control) = process.control.as_mut() else { return };
        let step = match order {
            FenceOrder::Open { sent, window } => {
                let accepted = control.open(sent, window).is_ok();
                if accepted {
                    self.highest_opened = self.highest_opened.max(Some(tenure.epoch));
                    self.counts.opened += 1;
                }
                Step::Opened { tenure, sent, window, accepted }
            }
            FenceOrder::Extend { sent, window } => {
                let mut accepted = control.extend(sent, window).is_ok();
                if !accepted && !R::FENCE_NEVER_OPENS_AGAIN {
                    let mut again = FenceControl::new(tenure.epoch, Arc::new(clock));
                    accepted = again.open(sent, window).is_ok();
                    process.fence = Some(again.fence());
                    *control = again;
                }
                Step::Extended { tenure, sent, window, accepted }
            }
            FenceOrder::Shut => {
                process.control = None;
                Step::Shut { tenure }
            }
        };
        if let Step::Opened { accepted: false, .. } | Step::Extended { accepted: false, .. } = step
        {
            process.machine.handle_fence_shut(tenure.epoch, now);
        }
        self.note(step);
    }

    fn hear(&mut self, host: usize, event: Event) {
        match event {
            Event::TakingOver { epoch, predecessor, held_back_until } => {
                self.tenures += 1;
                let tenure = Tenure { number: self.tenures, host, epoch };
                let node = &mut self.nodes[host];
                let Some(process) = &mut node.process else { return };
                let clock = match R::WALL_CLOCK_IS_LOOKED_AT {
                    true => node.clock.clone(),
                    false => node.clock.without_wall(),
                };
                let control = FenceControl::new(epoch, Arc::new(clock));
                process.fence = Some(control.fence());
                process.control = Some(control);
                process.tenure = Some(tenure);
                let told = predecessor.clone();
                self.note(Step::TakingOver { tenure, predecessor, held_back_until });
                self.ask(host, |application, host| application.taking_over(&told, host));
            }
            Event::Active { .. } => self.ask(host, |application, host| application.active(host)),
            Event::Ended { epoch, reason } => {
                let Some(process) = &mut self.nodes[host].process else { return };
                let Some(tenure) = process.tenure.filter(|tenure| tenure.epoch == epoch) else {
                    let what = format!("host {host} ends epoch {epoch}, which it does not have");
                    self.violation.get_or_insert(Violation::new("one end", self.time.now(), what));
                    return;
                };
                self.note(Step::Ended { tenure, reason: reason.clone() });
                self.ask(host, |application, host| application.ended(&reason, host));
            }
            _ => {}
        }
    }

    /// The application looks at its fence.
    pub(super) fn look(&mut self, host: usize) {
        let Some(process) = &self.nodes[host].process else { return };
        if let (Some(tenure), Some(fence)) = (process.tenure, &process.fence) {
            let is_open = fence.is_open();
            self.note(Step::Looked { tenure, is_open });
        }
    }

    /// Calls the application of a host, and does what it asks for.
    fn ask(&mut self, host: usize, call: impl FnOnce(&mut dyn super::Application, &mut Host<'_>)) {
        self.look(host);
        let node = &mut self.nodes[host];
        let (start, ttl) = (node.starts, node.timing.ttl());
        let Some(process) = &mut node.process else { return };
        let mut wishes = Vec::new();
        let mut seen = Host {
            fence: process.fence.as_ref(),
            tenure: process.tenure,
            dice: &mut self.dice,
            wishes: &mut wishes,
            is_peaceful: self.is_resolved,
            ttl,
        };
        call(process.application.as_mut(), &mut seen);
        for wish in wishes {
            let node = &mut self.nodes[host];
            let now = node.clock.reading();
            let Some(process) = &mut node.process else { return };
            let machine = &mut process.machine;
            match wish {
                Wish::Abandon => {
                    machine.abandon(crate::machine::AbandonReason::Application, now);
                }
                Wish::Confirm => machine.confirm(now),
                Wish::Release => machine.release(now),
                Wish::GateWrite(after, tenure) => self.after(after, Due::GateWrite(tenure)),
                Wish::Wake(after, timer) => {
                    let input = Input::Timer(timer);
                    self.after(after, Due::Input { host, start, input });
                }
                Wish::Write(after, write) => self.after(after, Due::Write(write)),
            }
        }
    }

    // ---- requests ----

    pub(super) fn calm_latency(&self, host: usize) -> Duration {
        self.nodes[host].timing.renew() / 25
    }

    /// One way between a host and something near.
    fn hop(&mut self, host: usize) -> Duration {
        let most = self.calm_latency(host);
        self.dice.of_any_size(most)
    }

    fn send(&mut self, host: usize, start: u32, id: RequestId, request: Request, at: Reading) {
        self.note(Step::Sent { host, request: request.clone(), at });
        let mut passage = self.nodes[host].link.passage(&mut self.dice);
        if let Some(outage) = self.outage {
            passage.fate = outage.fate(&mut self.dice);
        }
        if let Request::Replace(Draft { held: false, nonce, .. }, _) = &request {
            self.releases.insert(host, *nonce);
            // See the module: a release that lands late on a record that was put back.
            if self.setting.hazards.has(Hazard::PutBack)
                && let Fate::ToldThenLate(_) = passage.fate
            {
                passage.fate = Fate::Doubtful;
            }
        }
        let (out, back) = (passage.out, passage.back);
        match passage.fate {
            Fate::Lost => {}
            Fate::Told(error) => {
                let input = Input::Reply(id, Reply::Failed(error));
                self.after(out + back, Due::Input { host, start, input });
            }
            Fate::ToldThenLate(later) => {
                let input = Input::Reply(id, Reply::Failed(StoreErrorKind::InDoubt));
                self.after(out + back, Due::Input { host, start, input });
                if !matches!(request, Request::Read { .. }) {
                    let passage = Passage { fate: Fate::Mute, ..passage };
                    let due = Due::Arrives { host, start, id, request, passage };
                    self.after(out + back + later, due);
                }
            }
            Fate::Answered | Fate::Doubtful | Fate::Mute => {
                let copy = request.clone();
                self.after(out, Due::Arrives { host, start, id, request, passage });
                if let Some(again) = passage.again {
                    let (request, passage) = (copy, Passage { fate: Fate::Mute, ..passage });
                    self.after(out + again, Due::Arrives { host, start, id, request, passage });
                }
            }
        }
    }

    fn arrives(
        &mut self,
        host: usize,
        start: u32,
        id: RequestId,
        request: Request,
        passage: Passage,
    ) {
        let reply = self.apply(host, request);
        let reply = match passage.fate {
            Fate::Answered => reply,
            Fate::Doubtful => Reply::Failed(StoreErrorKind::InDoubt),
            Fate::Lost | Fate::Mute | Fate::Told(_) | Fate::ToldThenLate(_) => return,
        };
        let input = Input::Reply(id, reply);
        self.after(passage.back, Due::Input { host, start, input });
    }

    fn apply(&mut self, host: usize, request: Request) -> Reply {
        let now = self.time.now();
        let node = &self.nodes[host];
        let record =
            |draft: &Draft| self.store.record(draft, &node.directory.instance, node.timing.ttl());
        let written = match &request {
            Request::Read { unless } => {
                return Reply::Read(self.store.read(unless.as_ref(), now));
            }
            Request::Create(draft) => {
                let record = record(draft);
                self.store.create(record, now)
            }
            Request::Replace(draft, version) => {
                let record = record(draft);
                let is_takeover = draft.held && draft.seq == 1;
                if is_takeover && !R::TAKEOVER_IS_CONDITIONAL {
                    Ok(self.store.put(record, now))
                } else {
                    self.store.replace(record, version, now)
                }
            }
        };
        match written {
            Err(error) => Reply::Failed(error),
            Ok(version) => {
                self.counts.written += 1;
                let is_release = matches!(&request, Request::Replace(Draft { held: false, .. }, _));
                if is_release && !R::RELEASE_KEEPS_THE_OBJECT {
                    self.store.delete(now);
                }
                let nonce = self.store.object().and_then(super::object::Object::nonce);
                self.note(Step::Applied { host: Some(host), nonce });
                Reply::Written(version)
            }
        }
    }

    /// Whether a host has a process that does not stand still.
    pub(super) fn is_running(&self, host: usize) -> bool {
        self.nodes[host].process.as_ref().is_some_and(|process| !process.is_paused)
    }
}
