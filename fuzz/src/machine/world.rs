//! The world of one schedule: instances, one store, what travels between them, one true time.

use super::{
    checks::Lineage,
    node::{Counting, Disk, DiskFate, Fate, FloorFate, Link, Node, Wanted},
    schedule::{Clocks, Setup, Step, What, span},
    store::{Object, Place, Store, version},
};
use fencing::{Clock as _, Epoch, MonotonicTime, Reading};
use lease_core::{
    auth::Verdict,
    key::InstanceId,
    machine::{
        AbandonReason, Draft, Entropy as _, Facts, Note, Reply, Request, RequestId, Role, Sighting,
    },
    store::StoreErrorKind,
};
use std::{sync::Arc, time::Duration};

/// So many things happen in one schedule, then it ends.
const MAX_HAPPENINGS: usize = 1_500;
/// So many characters describe any machine. What it holds is bounded by what fits into T.
const MAX_DESCRIPTION: usize = 200_000;

#[derive(Debug)]
pub(super) struct World {
    setup: Setup,
    time: Duration,
    nodes: Vec<Node>,
    store: Store,
    messages: Vec<(Duration, Message)>,
    /// The highest epoch whose fence opened, which is what a floor tells.
    opened: Option<Epoch>,
    happenings: usize,
    entropy: Counting,
    salt: u32,
    tells: bool,
}

#[derive(Debug)]
struct Message {
    node: usize,
    life: u32,
    id: RequestId,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Request {
        request: Request,
        sent: Reading,
        link: Link,
    },
    Reply(Reply, Shown),
    /// A disk at work; the note that it then has.
    Disk {
        ok: bool,
        note: Option<Note>,
    },
    Floor(Result<Option<Epoch>, StoreErrorKind>),
}

/// What an answer to a read shows; `None` for other answers.
type Shown = Option<Option<Place>>;

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let nodes = (0..setup.nodes).map(|number| Node::new(&setup, number)).collect();
        let mut world = Self {
            setup,
            time: Duration::ZERO,
            nodes,
            store: Store::default(),
            messages: Vec::new(),
            opened: None,
            happenings: 0,
            entropy: Counting::default(),
            salt: 0,
            tells: std::env::var_os("HOLDFAST_TRACE").is_some(),
        };
        world.tell(|| format!("{setup:?}"));
        for node in 0..world.nodes.len() {
            world.start(node);
        }
        world
    }

    /// One step of the schedule; false once enough has happened.
    pub(super) fn step(&mut self, step: Step) -> bool {
        let Step { node, how, what } = step;
        let number = node % self.nodes.len();
        self.tell(|| format!("-- {what:?} {number} {how}"));
        let span = span(how, self.setup.timings[number]);
        let high = how >> 4;
        match what {
            What::Pass => self.pass(span),
            What::Fate => {
                let link = &mut self.nodes[number].link;
                (link.fate, link.times) = (Fate::of(how), high + 1);
            }
            What::Travel if high & 1 == 0 => self.nodes[number].link.out = span,
            What::Travel => self.nodes[number].link.back = span,
            What::Confirms => self.nodes[number].confirms = how & 1 == 0,
            What::Disk => {
                self.nodes[number].disk_fate = match high & 7 {
                    0 | 5.. => DiskFate::Written,
                    1 => DiskFate::WrittenLate(span),
                    2 => DiskFate::Refused,
                    3 => DiskFate::InDoubt(span),
                    4 => DiskFate::Hangs,
                };
            }
            What::Floor => {
                self.nodes[number].floor_fate = match high & 1 {
                    0 => FloorFate::Told(span),
                    _ => FloorFate::Fails(span),
                };
            }
            What::Restart => self.restart(number, how),
            What::Pause => {
                let until = &mut self.nodes[number].paused_until;
                *until = (*until).max(self.time + span);
            }
            What::Suspend if self.nodes[number].asleep.is_none() => {
                let (time, clocks) = (self.time, self.setup.clocks);
                self.nodes[number].falls_asleep(clocks, time, span, high & 3);
            }
            What::Suspend => {}
            What::JumpWall if self.setup.clocks == Clocks::Jumping => {
                let seconds = i64::from(i16::from(how) - 128);
                self.nodes[number].clock.jump_wall(seconds * seconds.abs());
                self.act(number, lease_core::machine::Machine::handle_timeout);
            }
            What::Rate if self.setup.clocks != Clocks::Exact => {
                let node = &mut self.nodes[number];
                node.ppm = 920_000 + u64::from(how) * 160_000 / 255;
                node.clock.set_rate(node.ppm);
            }
            What::JumpWall | What::Rate => {}
            What::Repeat => self.repeat(number, how),
            What::Delete | What::Garbage | What::Forge | What::WriteByHand | What::PutBack => {
                self.vandal(what, how);
            }
            wish => self.wish(wish, number, how),
        }
        self.happenings < MAX_HAPPENINGS
    }

    fn wish(&mut self, wish: What, number: usize, how: u8) {
        self.act(number, |machine, now| match wish {
            What::Confirm => machine.confirm(now),
            What::Abandon => machine.abandon(AbandonReason::Application, now),
            What::Release => machine.release(now),
            What::Drop => machine.drop_tenure(how & 1 == 1, now),
            What::Want => machine.want(how & 1 == 0, now),
            What::Stop => machine.stop(now),
            other => panic!("{other:?} is no wish"),
        });
    }

    fn restart(&mut self, number: usize, how: u8) {
        let node = &mut self.nodes[number];
        node.process = None;
        if how & 2 != 0 {
            node.disk = Disk::default();
        }
        if how & 1 == 0 && node.asleep.is_none() {
            self.start(number);
        }
    }

    fn start(&mut self, number: usize) {
        self.nodes[number].start();
        self.settle(number);
    }

    fn repeat(&mut self, number: usize, how: u8) {
        let Some(process) = &self.nodes[number].process else { return };
        if let Some((id, reply)) = process.replies.get(usize::from(how) % 8).cloned() {
            self.act(number, |machine, now| machine.handle_reply(id, reply, now));
        }
    }

    /// The process does something, if there is one and it runs.
    fn act(&mut self, number: usize, act: impl FnOnce(&mut lease_core::machine::Machine, Reading)) {
        let node = &mut self.nodes[number];
        if node.paused_until > self.time {
            return;
        }
        if let Some(process) = &mut node.process {
            act(&mut process.machine, node.clock.reading());
            self.settle(number);
        }
    }

    // ---- time ----

    fn pass(&mut self, span: Duration) {
        let until = self.time + span;
        while self.happenings < MAX_HAPPENINGS {
            let Some((due, happening)) = self.next().filter(|(due, _)| *due <= until) else {
                self.advance_to(until);
                return;
            };
            self.happenings += 1;
            self.advance_to(due);
            match happening {
                Happening::Message(at) => {
                    let (_, message) = self.messages.remove(at);
                    self.deliver(message);
                }
                Happening::Wake(number) => {
                    self.act(number, lease_core::machine::Machine::handle_timeout);
                }
                Happening::Awake(number) => {
                    let time = self.time;
                    self.nodes[number].awake(time);
                }
            }
        }
    }

    fn advance_to(&mut self, time: Duration) {
        let by = time - self.time;
        if !by.is_zero() {
            self.time = time;
            self.nodes.iter().for_each(|node| node.advance(by));
            self.look();
        }
    }

    fn next(&self) -> Option<(Duration, Happening)> {
        let messages = self.messages.iter().enumerate().map(|(at, (due, message))| {
            let is_answer = !matches!(message.content, Content::Request { .. });
            let runs_at = self.nodes[message.node].paused_until;
            let due = if is_answer { runs_at.max(*due) } else { *due };
            (due, Happening::Message(at))
        });
        let wakes = self.nodes.iter().enumerate().filter_map(|(number, node)| {
            if node.asleep.is_some() {
                return Some((node.paused_until, Happening::Awake(number)));
            }
            let due = (self.time + node.due_in()?).max(node.paused_until);
            Some((due, Happening::Wake(number)))
        });
        let next = match self.setup.timers_first {
            true => wakes.chain(messages).min_by_key(|(due, it)| (*due, !it.is_awake())),
            false => messages.chain(wakes).min_by_key(|(due, it)| (*due, !it.is_awake())),
        };
        next.map(|(due, happening)| (due.max(self.time), happening))
    }

    fn look(&self) {
        let mut open = self.nodes.iter().enumerate().filter(|(_, node)| node.is_open());
        if let (Some((a, _)), Some((b, _))) = (open.next(), open.next()) {
            panic!("two fences open at {:?}: {a} and {b}", self.time);
        }
    }

    // ---- messages ----

    fn settle(&mut self, number: usize) {
        loop {
            let wanted = self.nodes[number].settle(&mut self.entropy);
            if wanted.is_empty() {
                break;
            }
            for wanted in wanted {
                self.carry_out(number, wanted);
            }
        }
        self.look();
    }

    fn carry_out(&mut self, number: usize, wanted: Wanted) {
        match wanted {
            Wanted::Send(id, request) => self.send(number, id, request),
            Wanted::Opened(epoch) => self.fence_opened(number, epoch),
            Wanted::Floor(id) => {
                let (told, after) = match self.nodes[number].floor_fate {
                    FloorFate::Told(after) => (Ok(self.opened), after),
                    FloorFate::Fails(after) => (Err(StoreErrorKind::Unavailable), after),
                };
                self.post(number, id, after, Content::Floor(told));
            }
            Wanted::Persist(id, note) => {
                let node = &mut self.nodes[number];
                let (ok, note, after) = match node.disk_fate {
                    DiskFate::Written => (true, Some(note), Duration::ZERO),
                    DiskFate::WrittenLate(after) => (true, Some(note), after),
                    DiskFate::Refused => (false, None, Duration::ZERO),
                    DiskFate::InDoubt(after) => (false, Some(note), after),
                    DiskFate::Hangs => return,
                };
                self.post(number, id, after, Content::Disk { ok, note });
            }
        }
    }

    fn send(&mut self, number: usize, id: RequestId, request: Request) {
        let node = &mut self.nodes[number];
        let (sent, link) = (node.clock.reading(), node.link);
        node.link.times = link.times.saturating_sub(1);
        if node.link.times == 0 {
            node.link.fate = Fate::Answered;
        }
        let process = node.process.as_mut().expect("it sends");
        if let Request::Create(draft) | Request::Replace(draft, _) = &request {
            if process.machine.epoch().is_some() {
                process.tenures.write(draft, &process.machine, process.fence.as_ref(), sent);
            } else {
                process.acquisitions.acquisition(id, draft, node.config.has_floor);
            }
            if !draft.held {
                process.last_release = Some(draft.nonce);
            }
        }
        self.tell(|| format!("{number} sends {request:?}, {link:?}"));
        if let Fate::Failed(error) | Fate::InDoubt(error) = link.fate {
            let reply = Content::Reply(Reply::Failed(error), None);
            self.post(number, id, link.back, reply);
        }
        if !matches!(link.fate, Fate::Failed(_) | Fate::Lost) {
            self.post(number, id, link.out, Content::Request { request, sent, link });
        }
    }

    fn post(&mut self, node: usize, id: RequestId, after: Duration, content: Content) {
        let life = self.nodes[node].life;
        self.messages.push((self.time + after, Message { node, life, id, content }));
    }

    fn deliver(&mut self, message: Message) {
        let Message { node: number, life, id, content } = message;
        let is_meant = self.nodes[number].life == life && self.nodes[number].process.is_some();
        match content {
            Content::Request { request, sent, link } => {
                let epoch = match &request {
                    Request::Create(draft) | Request::Replace(draft, _) => Some(draft.epoch),
                    _ => None,
                };
                let (reply, shown) = self.apply(number, request);
                self.tell(|| format!("{number}'s request arrives: {reply:?}"));
                if !is_meant {
                    return;
                }
                if let (Reply::Written(_), Some(epoch)) = (&reply, epoch)
                    && let Some(process) = &mut self.nodes[number].process
                {
                    process.tenures.landed(epoch, sent);
                }
                if matches!(link.fate, Fate::Answered | Fate::AnsweredTwice) {
                    self.post(number, id, link.back, Content::Reply(reply.clone(), shown));
                }
                if link.fate == Fate::AnsweredTwice {
                    self.post(number, id, link.back * 3, Content::Reply(reply, shown));
                }
            }
            Content::Disk { ok, note } => {
                if let Some(note) = note.filter(|_| self.nodes[number].life == life) {
                    self.nodes[number].disk.write(&note);
                }
                if is_meant {
                    self.act(number, |machine, now| machine.handle_persisted(id, ok, now));
                }
            }
            Content::Floor(told) if is_meant => {
                self.act(number, |machine, now| machine.handle_floor(id, told, now));
            }
            Content::Reply(reply, shown) if is_meant => self.answer(number, id, reply, shown),
            Content::Floor(_) | Content::Reply(..) => {}
        }
    }

    fn answer(&mut self, number: usize, id: RequestId, reply: Reply, shown: Shown) {
        self.tell(|| format!("{number} is told {reply:?}"));
        let lineage = shown.map(|shown| self.lineage(shown));
        let node = &mut self.nodes[number];
        let (now, renew) = (node.clock.monotonic(), node.config.timing.renew());
        let Some(process) = &mut node.process else { return };
        let counts = is_open(&mut process.open, id, now, renew);
        process.remember(id, &reply);
        let is_certain = matches!(
            reply,
            Reply::Failed(
                StoreErrorKind::Precondition
                    | StoreErrorKind::Contended
                    | StoreErrorKind::Unavailable
            )
        );
        if counts && is_certain {
            process.acquisitions.was_not_written(id);
        }
        if let (Some(lineage), Some(shown), true) = (lineage, shown, counts) {
            process.shown = shown;
            if process.machine.epoch().is_none() {
                process.acquisitions.shown(lineage, self.opened, now, renew);
            }
            let believed = match shown.map(|place| self.store.object(place)) {
                Some(Object { verdict: Verdict::Authentic, facts: Some(facts), .. }) => Some(facts),
                Some(Object { verdict: Verdict::Unsigned, facts, .. }) => {
                    facts.as_ref().filter(|_| !self.setup.has_secret)
                }
                _ => None,
            };
            process.acquisitions.told(believed.map(|facts| facts.epoch));
        }
        self.act(number, |machine, now| machine.handle_reply(id, reply, now));
    }

    fn lineage(&self, shown: Option<Place>) -> Lineage {
        let Some(place) = shown else { return Lineage::Missing };
        match self.store.object(place) {
            Object { verdict: Verdict::Authentic | Verdict::Unsigned, facts: Some(it), .. } => {
                Lineage::Epoch(it.epoch)
            }
            _ => Lineage::Unacceptable(place),
        }
    }

    fn apply(&mut self, number: usize, request: Request) -> (Reply, Shown) {
        let written = match request {
            Request::Read { unless } => {
                let tells_age = self.setup.store_tells_age;
                let (sighting, place) = self.store.read(unless.as_ref(), self.time, tells_age);
                return (Reply::Read(sighting), Some(place));
            }
            Request::Create(draft) => self.store.current().is_none().then_some(draft),
            Request::Replace(draft, condition) => {
                (self.store.version() == Some(condition)).then_some(draft)
            }
            other => panic!("what is {other:?}?"),
        };
        let reply = match written {
            None => Reply::Failed(StoreErrorKind::Precondition),
            Some(draft) => Reply::Written(self.store.write(self.object(number, draft), self.time)),
        };
        (reply, None)
    }

    fn object(&self, number: usize, draft: Draft) -> Object {
        let config = &self.nodes[number].config;
        let holder = draft.held.then(|| config.instance.clone());
        let ttl = config.timing.ttl();
        let mut facts = Facts::new(holder, draft.epoch, draft.seq, Some(draft.nonce), ttl);
        facts.last_snapshot = draft.last_snapshot;
        let verdict = match config.has_secret && draft.sign {
            true => Verdict::Authentic,
            false => Verdict::Unsigned,
        };
        Object { verdict, facts: Some(Arc::new(facts)), salt: 0 }
    }

    /// Epochs are tokens: a resource that saw one refuses those below it.
    fn fence_opened(&mut self, number: usize, epoch: Epoch) {
        self.tell(|| format!("{number} opens its fence under {epoch}"));
        let Setup { has_vandal, counter, clocks, .. } = self.setup;
        if !has_vandal {
            assert!(Some(epoch) > self.opened, "{epoch} opens after {:?}", self.opened);
        } else if !counter && clocks == Clocks::Exact {
            // The clock tells seconds: of two that take within one, the later may have the smaller
            // number if it knows nothing of the earlier.
            let second = |epoch: Epoch| epoch.as_u64() >> 21;
            assert!(
                Some(second(epoch)) >= self.opened.map(second),
                "{epoch} opens after {:?}",
                self.opened
            );
        }
        self.opened = self.opened.max(Some(epoch));
    }

    // ---- others who write ----

    fn vandal(&mut self, what: What, how: u8) {
        if !self.setup.has_vandal {
            return;
        }
        self.salt += 1;
        let salt = self.salt;
        let current = self.store.current().map(|place| self.store.object(place).clone());
        let time = self.time;
        match what {
            What::Delete => self.store.delete(),
            What::Garbage => {
                let object = Object { verdict: Verdict::Unreadable, facts: None, salt };
                self.store.write(object, time);
            }
            What::Forge => {
                let Some(facts) = current.and_then(|it| it.facts) else { return };
                let mut facts = Facts::clone(&facts);
                if how & 1 == 0 {
                    facts.epoch = Epoch::MAX;
                }
                if how & 2 == 0 {
                    facts.holder = None;
                }
                facts.ttl = Duration::from_millis(u64::from(how) + 1);
                let facts = Some(Arc::new(facts));
                self.store.write(Object { verdict: Verdict::Forged, facts, salt }, time);
            }
            What::WriteByHand => {
                let facts = self.by_hand(current.and_then(|it| it.facts), how);
                if self.may_put(&facts, None) {
                    let facts = Some(Arc::new(facts));
                    self.store.write(Object { verdict: Verdict::Unsigned, facts, salt }, time);
                }
            }
            _ => {
                let contents = self.store.contents();
                if contents == 0 {
                    return;
                }
                let place = contents - 1 - usize::from(how) % contents;
                let facts = self.store.object(place).facts.clone();
                if facts.is_some_and(|facts| self.may_put(&facts, Some(place))) {
                    self.store.put(place, time);
                }
            }
        }
        self.tell(|| format!("now {:?}", self.store.version()));
    }

    fn by_hand(&mut self, current: Option<Arc<Facts>>, how: u8) -> Facts {
        let number = usize::from(how >> 3 & 3) % self.nodes.len();
        let holder = match how & 3 {
            0 => Some(self.nodes[number].config.instance.clone()),
            1 => Some(InstanceId::new("else").expect("an id")),
            _ => None,
        };
        // Not near what a forger wrote: everybody believes a hand.
        let current = current.filter(|facts| facts.epoch < Epoch::MAX);
        let near = current.map_or(5, |facts| facts.epoch.as_u64());
        let number = near.saturating_add(u64::from(how >> 5)).saturating_sub(3);
        let epoch = Epoch::new(number).unwrap_or(Epoch::MIN);
        let nonce = (how & 4 == 0).then(|| self.entropy.nonce());
        Facts::new(holder, epoch, u64::from(how), nonce, self.setup.largest_ttl())
    }

    /// Whether an old record, or one written by hand, may be put where the lease is without leaving
    /// what the protocol covers. Beyond it, the token alone protects:
    ///
    /// - a version that somebody watches, or has a write under way against, comes back (section 7);
    /// - a *release* of the very epoch that a standby has just seen held, which nobody can tell from
    ///   the holder's own word;
    /// - the last release that an instance wrote, shown to that instance, which takes it for the
    ///   latest word (section 4: "this instance's history says that it wrote this very release");
    /// - the last epoch that an instance opened, shown to that instance while it may reclaim;
    /// - a *held* record with a ttl below that of the real holder, which the record's reader may never
    ///   have seen: it waits for the ttl that is said (section 2).
    fn may_put(&self, facts: &Facts, place: Option<Place>) -> bool {
        let same_epoch = |other: Place| {
            let other = self.store.object(other).facts.as_ref();
            other.is_some_and(|other| other.epoch == facts.epoch)
        };
        let is_watched = |shown: Place| Some(shown) == place || same_epoch(shown);
        let against = |request: &Request| match request {
            Request::Create(_) => false,
            Request::Read { unless } => unless.is_some() && *unless == place.map(version),
            Request::Replace(_, condition) => Some(condition.clone()) == place.map(version),
            _ => true,
        };
        let under_way = self.messages.iter().any(|(_, message)| match &message.content {
            Content::Request { request, .. } => against(request),
            Content::Reply(Reply::Read(Sighting::Missing), _) => false,
            Content::Reply(_, Some(Some(shown))) => is_watched(*shown),
            Content::Reply(Reply::Written(written), _) => {
                Some(written.clone()) == place.map(version)
            }
            _ => false,
        });
        let is_own = self.nodes.iter().any(|node| {
            let process = node.process.as_ref();
            let released =
                [node.disk.past.last_release, process.and_then(|process| process.last_release)];
            let is_own_release = facts.nonce.is_some() && released.contains(&facts.nonce);
            let is_reclaimable = node.reclaims && node.disk.opened == Some(facts.epoch);
            let shown = process.and_then(|process| process.shown);
            is_own_release || is_reclaimable || shown.is_some_and(is_watched)
        });
        let says_too_little = facts.holder.is_some() && facts.ttl < self.setup.largest_ttl();
        !under_way && !is_own && !says_too_little
    }

    // ---- the end ----

    /// Everything heals; then some instance becomes active within reason, and stays so.
    pub(super) fn end(&mut self) {
        self.tell(|| "-- the end".to_owned());
        let millisecond = Duration::from_millis(1);
        let longest = self.setup.largest_ttl();
        for number in 0..self.nodes.len() {
            let node = &mut self.nodes[number];
            let fate = Fate::Answered;
            node.link = Link { out: millisecond, back: millisecond, fate, times: 0 };
            node.disk_fate = DiskFate::Written;
            node.floor_fate = FloorFate::Told(millisecond);
            node.confirms = true;
        }
        let awake = self.nodes.iter().map(|node| node.paused_until).max().unwrap_or_default();
        self.happenings = 0;
        self.pass(awake.saturating_sub(self.time));
        for number in 0..self.nodes.len() {
            let role = self.nodes[number].role();
            if matches!(role, None | Some(Role::Refused | Role::Stopped)) {
                self.restart(number, 0);
            }
            self.act(number, |machine, now| {
                machine.want(true, now);
                machine.confirm(now);
            });
        }
        // Whatever was done to the object last is noticed meanwhile.
        self.happenings = 0;
        self.pass(longest);
        self.happenings = 0;
        let patience = self.time + longest * 12;
        while !self.nodes.iter().any(Node::is_open) {
            assert!(self.time < patience, "nobody is active: {self:#?}");
            assert!(self.happenings < MAX_HAPPENINGS * 10, "no end of happenings: {self:#?}");
            self.happenings = self.happenings.min(MAX_HAPPENINGS / 2);
            self.pass(longest / 10);
        }
        let opened = self.opened;
        self.happenings = 0;
        self.pass(longest + longest / 2);
        assert!(self.nodes.iter().any(Node::is_open), "it did not last: {self:#?}");
        assert_eq!(self.opened, opened, "it changed hands for no reason");
        for node in &self.nodes {
            let machine = node.process.as_ref().map(|process| format!("{:?}", process.machine));
            let length = machine.map_or(0, |text| text.len());
            assert!(length < MAX_DESCRIPTION, "a machine of {length} characters");
        }
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.tells {
            eprintln!("{:>12.6} {}", self.time.as_secs_f64(), what());
        }
    }
}

/// Whether an answer still counts: it is waited for, and its budget is not spent.
fn is_open(
    open: &mut Vec<(RequestId, MonotonicTime)>,
    id: RequestId,
    now: MonotonicTime,
    renew: Duration,
) -> bool {
    let at = open.iter().position(|(open, _)| *open == id);
    at.is_some_and(|at| now < open.remove(at).1 + renew)
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    Message(usize),
    Wake(usize),
    /// A whole machine wakes from a suspend.
    Awake(usize),
}

impl Happening {
    const fn is_awake(self) -> bool {
        matches!(self, Self::Awake(_))
    }
}
