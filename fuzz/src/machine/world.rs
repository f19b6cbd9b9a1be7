//! The world of one schedule: instances, one store, one true time.

use super::{
    messages::{Content, Message},
    node::{Counting, Disk, DiskFate, Fate, FloorFate, Link, Node},
    schedule::{Clocks, Setup, Step, What, span},
    store::Store,
};
use fencing::{Clock as _, Epoch, Reading};
use lease_core::machine::{AbandonReason, Machine, Role};
use std::time::Duration;

/// So many things happen in one schedule, then it ends.
const MAX_HAPPENINGS: usize = 1_500;
/// So many characters describe any machine. What it holds is bounded by what fits into T.
const MAX_DESCRIPTION: usize = 200_000;

#[derive(Debug)]
pub(super) struct World {
    pub(super) setup: Setup,
    pub(super) time: Duration,
    pub(super) nodes: Vec<Node>,
    pub(super) store: Store,
    pub(super) messages: Vec<(Duration, Message)>,
    /// The highest epoch whose fence opened, which is what a floor tells.
    pub(super) opened: Option<Epoch>,
    happenings: usize,
    pub(super) entropy: Counting,
    pub(super) salt: u32,
    tells: bool,
}

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
                self.act(number, Machine::handle_timeout);
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

    pub(super) fn start(&mut self, number: usize) {
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
    pub(super) fn act(&mut self, number: usize, act: impl FnOnce(&mut Machine, Reading)) {
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
                    self.act(number, Machine::handle_timeout);
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

    pub(super) fn look(&self) {
        let mut open = self.nodes.iter().enumerate().filter(|(_, node)| node.is_open());
        if let (Some((a, _)), Some((b, _))) = (open.next(), open.next()) {
            panic!("two fences open at {:?}: {a} and {b}", self.time);
        }
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
        // Meanwhile it is noticed what was done to the object last, and what was to stop has stopped.
        self.happenings = 0;
        self.pass(longest);
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

    pub(super) fn tell(&self, what: impl FnOnce() -> String) {
        if self.tells {
            eprintln!("{:>12.6} {}", self.time.as_secs_f64(), what());
        }
    }
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
