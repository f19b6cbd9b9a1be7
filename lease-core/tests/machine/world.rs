//! A small world: some machines, one store, one true time, in ticks of 5 ms.
//!
//! It is deterministic. Each node has its own clock (with its own rate), its own link to the store,
//! and a real fence. After every tick the world looks at all fences: two open at once is an overlap.

use fencing::{Clock as _, Epoch, Fence, FenceControl, testing::ManualClock};
use lease_core::{
    auth::Verdict,
    key::InstanceId,
    machine::{
        Action, Config, Draft, Entropy, Event, Facts, FenceOrder, Machine, Note, Past, Reply,
        Request, RequestId, Role, Rules, Sighting,
    },
    record::Nonce,
    store::{StoreErrorKind, Version},
    timing::Timing,
};
use std::{sync::Arc, time::Duration};

pub(crate) const TICK: Duration = Duration::from_millis(5);

pub(crate) fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

pub(crate) fn id(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

/// What the store holds: something with a verdict, and the facts if it can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    pub(crate) verdict: Verdict,
    pub(crate) facts: Option<Arc<Facts>>,
}

impl Object {
    pub(crate) fn garbage() -> Self {
        Self { verdict: Verdict::Unreadable, facts: None }
    }

    pub(crate) fn of(facts: Facts) -> Self {
        Self { verdict: Verdict::Unsigned, facts: Some(Arc::new(facts)) }
    }

    pub(crate) fn forged(facts: Facts) -> Self {
        Self { verdict: Verdict::Forged, facts: Some(Arc::new(facts)) }
    }

    /// Versions come from content, as on S3 and on a directory: what is put back has its old one.
    fn version(&self) -> Version {
        Version::new(format!("{self:?}"))
    }
}

/// How a node's requests fare, looked at when one is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) out: Duration,
    pub(crate) back: Duration,
    pub(crate) fate: Fate,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Answered,
    /// Never arrives, never answered.
    Lost,
    /// Never arrives; the sender is told that it is in doubt.
    DroppedInDoubt,
    /// A write arrives and acts, or does not; its sender is told that it is in doubt.
    AppliedInDoubt,
}

impl Default for Link {
    fn default() -> Self {
        Self { out: TICK, back: TICK, fate: Fate::Answered }
    }
}

pub(crate) struct Node<R: Rules> {
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
    ttl: Duration,
    entropy: Counting,
}

#[derive(Clone, Copy)]
pub(crate) struct Counting(u128);

impl From<u128> for Counting {
    fn from(last: u128) -> Self {
        Self(last)
    }
}

impl Entropy for Counting {
    fn nonce(&mut self) -> Nonce {
        self.0 += 1;
        Nonce::from_bytes(self.0.to_be_bytes())
    }
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
        self.machine.poll_timeout(now).is_some_and(|wake| wake <= now.monotonic)
    }
}

enum Message {
    Arrives { node: usize, id: RequestId, request: Request, link: Link },
    Answer { node: usize, id: RequestId, reply: Reply },
}

pub(crate) struct World<R: Rules> {
    pub(crate) time: Duration,
    pub(crate) nodes: Vec<Node<R>>,
    pub(crate) object: Option<Object>,
    messages: Vec<(Duration, Message)>,
    /// The epochs of all fences in the order in which they opened.
    pub(crate) opened: Vec<(Duration, usize, Epoch)>,
    pub(crate) writes: usize,
}

pub(crate) fn timing(ttl: f64, renew: f64) -> Timing {
    Timing::short(secs(ttl), secs(renew)).unwrap()
}

pub(crate) fn config(name: &str, ttl: f64, renew: f64) -> Config {
    let mut config = Config::new(id(name), timing(ttl, renew));
    config.has_history = true;
    config
}

impl<R: Rules> World<R> {
    pub(crate) fn new() -> Self {
        Self {
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
            ttl: config.timing.ttl(),
            entropy: Counting((number as u128 + 1) << 64),
        });
        self.settle(number);
        number
    }

    /// Runs to `until`. An error is an overlap, with who and when.
    pub(crate) fn run(&mut self, until: f64) -> Result<(), String> {
        while self.time < secs(until) {
            self.tick()?;
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
            self.tick()?;
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

    fn tick(&mut self) -> Result<(), String> {
        self.time += TICK;
        for node in &self.nodes {
            node.clock.advance(TICK);
        }
        self.check()?;
        let mut due = Vec::new();
        let mut index = 0;
        while index < self.messages.len() {
            if self.messages[index].0 <= self.time {
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
            Message::Answer { node, id, reply } => {
                self.with(node, |machine, now| machine.handle_reply(id, reply, now));
            }
            Message::Arrives { node, id, request, link } => {
                let reply = match link.fate {
                    Fate::Lost => return,
                    Fate::DroppedInDoubt => Reply::Failed(StoreErrorKind::InDoubt),
                    Fate::AppliedInDoubt if !matches!(request, Request::Read { .. }) => {
                        self.apply(node, request);
                        Reply::Failed(StoreErrorKind::InDoubt)
                    }
                    Fate::Answered | Fate::AppliedInDoubt => self.apply(node, request),
                };
                let due = self.time + link.back;
                self.messages.push((due, Message::Answer { node, id, reply }));
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
        let facts = Facts::new(holder, draft.epoch, draft.seq, Some(draft.nonce), node.ttl);
        let object = Object::of(facts);
        let version = object.version();
        self.object = Some(object);
        self.writes += 1;
        Reply::Written(version)
    }

    /// Carries out what a machine wants until it wants nothing more.
    fn settle(&mut self, number: usize) {
        loop {
            let node = &mut self.nodes[number];
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
                let link = node.link;
                let arrives = Message::Arrives { node: number, id, request, link };
                self.messages.push((self.time + link.out, arrives));
            }
            Action::Fence(FenceOrder::Open { sent, window }) => {
                let Some(control) = &mut node.control else { panic!("no fence to open") };
                if control.open(sent, window).is_ok() {
                    let epoch = control.fence().epoch();
                    self.opened.push((self.time, number, epoch));
                }
            }
            Action::Fence(FenceOrder::Extend { sent, window }) => {
                if let Some(control) = &mut node.control {
                    let _ = control.extend(sent, window);
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
