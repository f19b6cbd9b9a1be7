//! A small world: some processes with a session each, one store, one true time, in ticks of 5 ms.
//!
//! It is deterministic. Each node has its own clock, its own link to the store, and real fences. After
//! every tick the world looks at all fences: two open at once for one lease are an overlap.

use crate::{
    fences::Fences,
    parts::{Counting, LOST, Link, TICK, config, key, secs},
    store::{Served, Store},
};
use fencing::{Clock as _, Epoch, Reading, testing::ManualClock};
use lease_core::{
    ObjectKey,
    key::InstanceId,
    machine::{Past, RequestId},
    session::{
        Action, Config, Event, LeaseFenceOrder, Object, Reply, Request, SessionMachine,
        SessionRules,
    },
};
use std::{collections::BTreeMap, time::Duration};

/// Decides how a request fares when it is sent.
pub(crate) type Route = Box<dyn FnMut(&Object, &Request) -> Link>;

pub(crate) struct Node<R: SessionRules> {
    /// It does not run: its answers wait, its timers do not fire. Its clock goes on.
    pub(crate) is_paused: bool,
    starts: u32,
    pub(crate) name: InstanceId,
    pub(crate) machine: SessionMachine<R>,
    pub(crate) clock: ManualClock,
    route: Route,
    pub(crate) events: Vec<Event>,
    pub(crate) fences: Fences,
    config: Config,
    entropy: Counting,
}

enum Message {
    Arrives { node: usize, start: u32, id: RequestId, object: Object, request: Request, link: Link },
    Answer { node: usize, start: u32, id: RequestId, reply: Reply },
}

pub(crate) struct World<R: SessionRules> {
    pub(crate) tick: Duration,
    pub(crate) time: Duration,
    pub(crate) nodes: Vec<Node<R>>,
    pub(crate) store: Store,
    messages: Vec<(Duration, Message)>,
    pub(crate) most_in_flight: usize,
    /// Two open fences are no fault: for what happens beyond what is promised.
    pub(crate) tolerates_overlaps: bool,
    /// The last epoch whose fence opened, for each lease.
    last_opened: BTreeMap<ObjectKey, Epoch>,
}

impl<R: SessionRules> World<R> {
    pub(crate) fn new() -> Self {
        Self {
            tick: TICK,
            time: Duration::ZERO,
            nodes: Vec::new(),
            store: Store::default(),
            messages: Vec::new(),
            most_in_flight: 0,
            tolerates_overlaps: false,
            last_opened: BTreeMap::new(),
        }
    }

    pub(crate) fn add(&mut self, config: Config) -> usize {
        let clock = ManualClock::new();
        clock.advance(self.time);
        let machine = SessionMachine::new(config.clone(), Past::default(), clock.reading());
        let number = self.nodes.len();
        self.nodes.push(Node {
            is_paused: false,
            starts: 0,
            name: config.instance.clone(),
            machine,
            fences: Fences::new(clock.clone(), R::LEASES_END_WITH_THE_SESSION),
            clock,
            route: Box::new(|_, _| Link::default()),
            events: Vec::new(),
            config,
            entropy: Counting::from((number as u128 + 1) << 64),
        });
        self.settle(number).unwrap();
        number
    }

    /// The process of a node ends, and another of the same instance begins. What is on its way to the
    /// store may still land.
    pub(crate) fn restart(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        node.starts += 1;
        node.is_paused = false;
        node.fences = Fences::new(node.clock.clone(), R::LEASES_END_WITH_THE_SESSION);
        node.events.clear();
        node.config.fresh_instance = false;
        node.machine =
            SessionMachine::new(node.config.clone(), Past::default(), node.clock.reading());
        self.settle(number).unwrap();
    }

    pub(crate) fn route(
        &mut self,
        node: usize,
        route: impl FnMut(&Object, &Request) -> Link + 'static,
    ) {
        self.nodes[node].route = Box::new(route);
    }

    pub(crate) fn cut_off(&mut self, node: usize) {
        self.route(node, |_, _| LOST);
    }

    pub(crate) fn reconnect(&mut self, node: usize) {
        self.route(node, |_, _| Link::default());
    }

    /// Runs for so many seconds. An error is an overlap, or a check that failed.
    pub(crate) fn run(&mut self, seconds: f64) -> Result<(), String> {
        let until = self.time + secs(seconds);
        while self.time < until {
            self.step()?;
        }
        Ok(())
    }

    /// Runs until `done` holds, at most for so many seconds.
    pub(crate) fn run_until(
        &mut self,
        most: f64,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), String> {
        let until = self.time + secs(most);
        while !done(self) {
            if self.time >= until {
                return Err(format!("still waiting at {:?}", self.time));
            }
            self.step()?;
        }
        Ok(())
    }

    /// A node does something outside of its timers and answers.
    pub(crate) fn with<T>(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut SessionMachine<R>, Reading) -> T,
    ) -> Result<T, String> {
        let now = self.nodes[node].clock.reading();
        let result = act(&mut self.nodes[node].machine, now);
        self.settle(node)?;
        Ok(result)
    }

    pub(crate) fn acquire(&mut self, node: usize, lease: &str) {
        let result = self.with(node, |machine, now| machine.acquire(key(lease), now));
        result.unwrap().unwrap();
    }

    pub(crate) fn give_up(&mut self, node: usize, lease: &str) {
        self.with(node, |machine, now| machine.give_up(&key(lease), now)).unwrap();
    }

    pub(crate) fn release(&mut self, node: usize, lease: &str) {
        let result = self.with(node, |machine, now| machine.release(&key(lease), now));
        result.unwrap().unwrap();
    }

    /// Whether the fence of this lease is open at this node.
    pub(crate) fn holds(&self, node: usize, lease: &str) -> bool {
        self.nodes[node].fences.is_open(&key(lease))
    }

    pub(crate) fn is_live(&self, node: usize) -> bool {
        self.nodes[node].machine.life().is_some()
    }

    /// A node acquires a lease and holds it.
    pub(crate) fn take(&mut self, node: usize, lease: &str, most: f64) -> Result<(), String> {
        self.acquire(node, lease);
        self.run_until(most, |world| world.holds(node, lease))
    }

    pub(crate) fn session(&self, node: usize) -> Object {
        Object::Session(self.nodes[node].name.clone())
    }

    pub(crate) fn step(&mut self) -> Result<(), String> {
        self.time += self.tick;
        for node in &self.nodes {
            node.clock.advance(self.tick);
        }
        self.check()?;
        let mut index = 0;
        let mut due = Vec::new();
        while index < self.messages.len() {
            let (at, message) = &self.messages[index];
            let is_held =
                matches!(message, Message::Answer { node, .. } if self.nodes[*node].is_paused);
            if *at <= self.time && !is_held {
                due.push(self.messages.remove(index).1);
            } else {
                index += 1;
            }
        }
        for message in due {
            self.deliver(message)?;
        }
        for number in 0..self.nodes.len() {
            let node = &self.nodes[number];
            let now = node.clock.reading();
            let is_due = node.machine.poll_timeout(now).is_some_and(|at| at <= now.monotonic);
            if is_due && !node.is_paused {
                self.with(number, |machine, now| machine.handle_timeout(now))?;
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        if self.nodes.len() == 1 || self.tolerates_overlaps {
            return Ok(());
        }
        let mut holders: BTreeMap<&ObjectKey, &InstanceId> = BTreeMap::new();
        for node in &self.nodes {
            for lease in node.fences.open() {
                if let Some(other) = holders.insert(lease, &node.name) {
                    let (at, name) = (self.time, &node.name);
                    return Err(format!("{lease} is open at {other} and at {name} at {at:?}"));
                }
            }
        }
        Ok(())
    }

    fn deliver(&mut self, message: Message) -> Result<(), String> {
        use crate::parts::Fate;
        match message {
            Message::Answer { node, start, .. } if self.nodes[node].starts != start => Ok(()),
            Message::Answer { node, id, reply, .. } => {
                self.with(node, |machine, now| machine.handle_reply(id, reply, now))
            }
            Message::Arrives { node, start, id, object, request, link } => {
                let reply = match link.fate {
                    Fate::Lost => return Ok(()),
                    Fate::Told(error) => Reply::Failed(error),
                    Fate::Answered | Fate::Unanswered => {
                        let is_write = !matches!(request, Request::Read { .. });
                        let served =
                            Served { at: self.time, node, object: object.clone(), is_write };
                        self.store.served.push(served);
                        let Node { name, config, .. } = &self.nodes[node];
                        self.store.serve(name, config.timing.ttl(), object, request)
                    }
                };
                if link.fate != Fate::Unanswered {
                    let answer = Message::Answer { node, start, id, reply };
                    self.messages.push((self.time + link.back, answer));
                }
                Ok(())
            }
        }
    }

    /// Carries out what a machine wants until it wants nothing more.
    fn settle(&mut self, number: usize) -> Result<(), String> {
        for turn in 0.. {
            let node = &mut self.nodes[number];
            assert!(turn < 100_000, "{} never comes to rest", node.name);
            let now = node.clock.reading();
            let mut entropy = node.entropy;
            let action = node.machine.poll_action(now, &mut entropy);
            node.entropy = entropy;
            let is_idle = action.is_none();
            if let Some(action) = action {
                self.act(number, action)?;
            }
            let node = &mut self.nodes[number];
            let events = node.events.len();
            while let Some(event) = node.machine.poll_event() {
                node.fences.learn(&event)?;
                node.events.push(event);
            }
            self.most_in_flight = self.most_in_flight.max(node.machine.in_flight());
            if is_idle && events == node.events.len() {
                let wake = node.machine.poll_timeout(now);
                assert!(
                    wake.is_none_or(|wake| wake > now.monotonic),
                    "{} has done all it can and wants to wake at once: {:#?}",
                    node.name,
                    node.machine
                );
                return Ok(());
            }
        }
        Ok(())
    }

    fn act(&mut self, number: usize, action: Action) -> Result<(), String> {
        let node = &mut self.nodes[number];
        let now = node.clock.reading();
        match action {
            Action::Send { id, object, request } => {
                let link = (node.route)(&object, &request);
                let start = node.starts;
                let arrives = Message::Arrives { node: number, start, id, object, request, link };
                self.messages.push((self.time + link.out, arrives));
            }
            Action::Fence { epoch, order } => match node.fences.order(epoch, order) {
                Ok(()) => {}
                Err(_) => node.machine.handle_fence_shut(epoch, now),
            },
            Action::LeaseFence { lease, epoch, order } => {
                if node.fences.order_lease(&lease, epoch, order).is_err() {
                    node.machine.handle_lease_fence_shut(&lease, epoch, now);
                } else if let LeaseFenceOrder::Open { .. } = order
                    && let Some(last) = self.last_opened.insert(lease.clone(), epoch)
                    && epoch <= last
                {
                    return Err(format!("{lease} opens under {epoch} after {last}"));
                }
            }
            Action::Persist(id, _) => node.machine.handle_persisted(id, true, now),
            _ => {}
        }
        Ok(())
    }
}

/// Nodes with T = 10 s and R = 2 s whose sessions are live.
pub(crate) fn live<R: SessionRules>(names: &[&str]) -> World<R> {
    live_with(names, config)
}

/// The same, with configurations of one's own.
pub(crate) fn live_with<R: SessionRules>(
    names: &[&str],
    config: impl Fn(&str) -> Config,
) -> World<R> {
    let mut world = World::new();
    for name in names {
        world.add(config(name));
    }
    let all = names.len();
    world.run_until(30.0, |world| (0..all).all(|node| world.is_live(node))).unwrap();
    world
}
