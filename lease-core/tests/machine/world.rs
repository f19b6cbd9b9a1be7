//! A small world: some machines, one store, one true time, in ticks of 5 ms.
//!
//! It is deterministic. Each node has its own clock (with its own rate), its own link to the store,
//! and a real fence. After every tick the world looks at all fences: two open at once is an overlap.

pub(crate) use crate::parts::{
    Counting, Fate, Link, Object, TICK, config, epoch, id, secs, timing,
};
use fencing::{Clock as _, Epoch, Fence, FenceControl, testing::ManualClock};
use lease_core::{
    key::InstanceId,
    machine::{
        Action, Config, Draft, Event, Facts, FenceOrder, Machine, Note, Past, Reply, Request,
        RequestId, Role, Rules, Sighting,
    },
    store::StoreErrorKind,
};
use std::{sync::Arc, time::Duration};

pub(crate) struct Node<R: Rules> {
    /// It does not run: its answers wait, its timers do not fire. Its clock goes on.
    pub(crate) is_paused: bool,
    /// How often it was started; answers to an earlier process are lost.
    starts: u32,
    pub(crate) name: InstanceId,
    pub(crate) machine: Machine<R>,
    pub(crate) clock: ManualClock,
    pub(crate) link: Link,
    /// Confirms a takeover as soon as it begins.
    pub(crate) confirms: bool,
    /// Notes for the history can be written.
    pub(crate) history_works: bool,
    pub(crate) notes: Vec<Note>,
    pub(crate) events: Vec<Event>,
    pub(crate) fence: Option<Fence>,
    control: Option<FenceControl>,
    config: Config,
    entropy: Counting,
}

impl<R: Rules> Node<R> {
    pub(crate) fn is_open(&self) -> bool {
        self.fence.as_ref().is_some_and(Fence::is_open)
    }

    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.machine.epoch()
    }

    fn is_due(&self) -> bool {
        let now = self.clock.reading();
        !self.is_paused && self.machine.poll_timeout(now).is_some_and(|wake| wake <= now.monotonic)
    }
}

enum Message {
    Arrives { node: usize, start: u32, id: RequestId, request: Request, link: Link },
    Answer { node: usize, start: u32, id: RequestId, reply: Reply },
}

pub(crate) struct World<R: Rules> {
    pub(crate) tick: Duration,
    pub(crate) time: Duration,
    pub(crate) nodes: Vec<Node<R>>,
    pub(crate) object: Option<Object>,
    messages: Vec<(Duration, Message)>,
    /// The epochs of all fences in the order in which they opened.
    pub(crate) opened: Vec<(Duration, usize, Epoch)>,
    pub(crate) writes: usize,
}

impl<R: Rules> World<R> {
    pub(crate) fn new() -> Self {
        Self {
            tick: TICK,
            time: Duration::ZERO,
            nodes: Vec::new(),
            object: None,
            messages: Vec::new(),
            opened: Vec::new(),
            writes: 0,
        }
    }

    /// Adds a running node that wants the lease; returns its number.
    pub(crate) fn add(&mut self, config: Config, past: Past) -> usize {
        self.add_behind(Link::default(), config, past)
    }

    /// The same, with a link of its own from its first request on.
    pub(crate) fn add_behind(&mut self, link: Link, config: Config, past: Past) -> usize {
        let clock = ManualClock::new();
        clock.advance(self.time);
        let mut machine = Machine::new(config.clone(), past, clock.reading());
        machine.want(true, clock.reading());
        let number = self.nodes.len();
        self.nodes.push(Node {
            is_paused: false,
            starts: 0,
            name: config.instance.clone(),
            machine,
            clock,
            link,
            confirms: true,
            history_works: true,
            notes: Vec::new(),
            events: Vec::new(),
            fence: None,
            control: None,
            config,
            entropy: Counting::from((number as u128 + 1) << 64),
        });
        self.settle(number);
        number
    }

    /// The process of a node ends, and another begins with `past` as its history. Its requests that
    /// are on their way may still land.
    pub(crate) fn restart(&mut self, number: usize, past: Past) {
        let node = &mut self.nodes[number];
        let now = node.clock.reading();
        node.starts += 1;
        node.is_paused = false;
        (node.control, node.fence) = (None, None);
        node.events.clear();
        node.machine = Machine::new(node.config.clone(), past, now);
        self.with(number, |machine, now| machine.want(true, now));
    }

    /// Runs to `until`. An error is an overlap, with who and when.
    pub(crate) fn run(&mut self, until: f64) -> Result<(), String> {
        while self.time < secs(until) {
            self.step()?;
        }
        Ok(())
    }

    /// Runs until `done` holds, at most to `limit`.
    pub(crate) fn run_until(
        &mut self,
        limit: f64,
        done: impl Fn(&Self) -> bool,
    ) -> Result<(), String> {
        while !done(self) {
            if self.time >= secs(limit) {
                return Err(format!("still waiting at {limit} s"));
            }
            self.step()?;
        }
        Ok(())
    }

    /// A node does something outside of its timers and answers.
    pub(crate) fn with(
        &mut self,
        node: usize,
        act: impl FnOnce(&mut Machine<R>, fencing::Reading),
    ) {
        let now = self.nodes[node].clock.reading();
        act(&mut self.nodes[node].machine, now);
        self.settle(node);
    }

    pub(crate) fn step(&mut self) -> Result<(), String> {
        self.time += self.tick;
        for node in &self.nodes {
            node.clock.advance(self.tick);
        }
        self.check()?;
        let mut due = Vec::new();
        let mut index = 0;
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
            self.deliver(message);
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_due() {
                self.with(node, |machine, now| machine.handle_timeout(now));
            }
        }
        self.check()
    }

    fn check(&self) -> Result<(), String> {
        let open: Vec<_> = self.nodes.iter().filter(|node| node.is_open()).collect();
        if open.len() > 1 {
            let who: Vec<_> = open.iter().map(|node| (&node.name, node.epoch())).collect();
            return Err(format!("two fences open at {:?}: {who:?}", self.time));
        }
        Ok(())
    }

    fn deliver(&mut self, message: Message) {
        match message {
            Message::Answer { node, start, .. } if self.nodes[node].starts != start => {}
            Message::Answer { node, id, reply, .. } => {
                self.with(node, |machine, now| machine.handle_reply(id, reply, now));
            }
            Message::Arrives { node, start, id, request, link } => {
                let reply = match link.fate {
                    Fate::Lost => return,
                    Fate::Told(error) => Reply::Failed(error),
                    Fate::AppliedInDoubt if !matches!(request, Request::Read { .. }) => {
                        self.apply(node, request);
                        Reply::Failed(StoreErrorKind::InDoubt)
                    }
                    Fate::Answered | Fate::AppliedInDoubt => self.apply(node, request),
                };
                let due = self.time + link.back;
                self.messages.push((due, Message::Answer { node, start, id, reply }));
            }
        }
    }

    fn apply(&mut self, node: usize, request: Request) -> Reply {
        let current = self.object.as_ref().map(Object::version);
        match request {
            Request::Read { unless } => Reply::Read(match (&self.object, current) {
                (Some(_), Some(version)) if unless.as_ref() == Some(&version) => {
                    Sighting::NotModified
                }
                (Some(object), Some(version)) => Sighting::Found {
                    version,
                    verdict: object.verdict,
                    facts: object.facts.clone(),
                    age: None,
                },
                _ => Sighting::Missing,
            }),
            Request::Create(draft) if current.is_none() => self.write(node, &draft),
            Request::Replace(draft, version) if current == Some(version.clone()) => {
                self.write(node, &draft)
            }
            _ => Reply::Failed(StoreErrorKind::Precondition),
        }
    }

    fn write(&mut self, node: usize, draft: &Draft) -> Reply {
        let node = &self.nodes[node];
        let holder = draft.held.then(|| node.name.clone());
        let facts =
            Facts::new(holder, draft.epoch, draft.seq, Some(draft.nonce), node.config.timing.ttl());
        let object = Object::of(facts);
        let version = object.version();
        self.object = Some(object);
        self.writes += 1;
        Reply::Written(version)
    }

    /// Carries out what a machine wants until it wants nothing more.
    fn settle(&mut self, number: usize) {
        for turn in 0.. {
            let node = &mut self.nodes[number];
            assert!(turn < 1_000, "{} never comes to rest: {:#?}", node.name, node.machine);
            let now = node.clock.reading();
            let mut entropy = node.entropy;
            let action = node.machine.poll_action(now, &mut entropy);
            node.entropy = entropy;
            let is_idle = action.is_none();
            if let Some(action) = action {
                self.act(number, action);
            }
            let was_quiet = self.drain_events(number);
            if is_idle && was_quiet {
                let node = &self.nodes[number];
                let wake = node.machine.poll_timeout(now);
                assert!(
                    !R::DEADLINE_IS_HALF_OPEN || wake.is_none_or(|wake| wake > now.monotonic),
                    "{} has done all it can and wants to wake at once: {:#?}",
                    node.name,
                    node.machine
                );
                return;
            }
        }
    }

    fn act(&mut self, number: usize, action: Action) {
        let node = &mut self.nodes[number];
        let now = node.clock.reading();
        match action {
            Action::Send(id, request) => {
                let (link, start) = (node.link, node.starts);
                let arrives = Message::Arrives { node: number, start, id, request, link };
                self.messages.push((self.time + link.out, arrives));
            }
            Action::Fence(FenceOrder::Open { sent, window }) => {
                let control = node.control.as_mut().expect("a tenure has a fence before it opens");
                let epoch = control.fence().epoch();
                match control.open(sent, window) {
                    Ok(()) => self.opened.push((self.time, number, epoch)),
                    Err(_) => node.machine.handle_fence_shut(epoch, now),
                }
            }
            Action::Fence(FenceOrder::Extend { sent, window }) => {
                if let Some(Err(shut)) = node.control.as_mut().map(|it| it.extend(sent, window)) {
                    node.machine.handle_fence_shut(shut.epoch, now);
                }
            }
            Action::Fence(_) => node.control = None,
            Action::Persist(id, note) => {
                if node.history_works {
                    node.notes.push(note);
                }
                node.machine.handle_persisted(id, node.history_works, now);
            }
            Action::FetchFloor(id) => node.machine.handle_floor(id, Ok(None), now),
            _ => {}
        }
    }

    /// Takes in what happened; true if nothing did.
    fn drain_events(&mut self, number: usize) -> bool {
        let node = &mut self.nodes[number];
        let events_before = node.events.len();
        while let Some(event) = node.machine.poll_event() {
            if let Event::TakingOver { epoch, .. } = event {
                let control = FenceControl::new(epoch, Arc::new(node.clock.clone()));
                node.fence = Some(control.fence());
                node.control = Some(control);
                if node.confirms {
                    let now = node.clock.reading();
                    node.machine.confirm(now);
                }
            }
            node.events.push(event);
        }
        node.events.len() == events_before
    }
}

/// Two nodes with T and R, the first of them active since a while, the second watching.
pub(crate) fn active_and_standby<R: Rules>(ttl: f64, renew: f64) -> World<R> {
    let mut world = active_alone(ttl, renew);
    world.add(config("b", ttl, renew), Past::default());
    // Ends between two renewals.
    world.run(world.time.as_secs_f64() + 2.25 * renew).unwrap();
    world
}

/// One node with T and R, active.
pub(crate) fn active_alone<R: Rules>(ttl: f64, renew: f64) -> World<R> {
    let mut world = World::new();
    world.add(config("a", ttl, renew), Past::default());
    world.run_until(3.0 * ttl, |world| world.nodes[0].machine.role() == Role::Active).unwrap();
    // Ends between two renewals.
    world.run(world.time.as_secs_f64() + 2.25 * renew).unwrap();
    world
}
