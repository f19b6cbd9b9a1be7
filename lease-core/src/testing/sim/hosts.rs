//! What happens on the hosts of a world: processes start, stop and settle; fences and applications.

use super::{
    Application,
    application::Host,
    clock::HostClock,
    node::{Directory, Input, Node, Process, Wish},
    report::Violation,
    trace::{Step, Tenure},
    world::{Due, World},
};
use crate::{
    key::InstanceId,
    machine::{
        AbandonReason, Action, Config, Event, FenceOrder, Machine, Note, Reply, RequestId, Rules,
        Sighting,
    },
    timing::Timing,
};
use fencing::{Clock as _, FenceControl, Reading};
use std::sync::Arc;

impl<R: Rules> World<R> {
    pub(super) fn new_directory(&mut self) -> Directory {
        self.instances += 1;
        let name = format!("instance-{}", self.instances);
        let instance = InstanceId::new(&name).unwrap_or_else(|_| unreachable!("a plain name"));
        Directory::new(instance)
    }

    /// A host with its own clocks, and a process on it.
    pub(super) fn add_host(&mut self, timing: Timing, directory: Directory) {
        let clock = HostClock::drawn(&self.time, &self.setting, &mut self.dice);
        self.nodes.push(Node::new(timing, clock, directory));
        self.start(self.nodes.len() - 1);
    }

    /// A process is started on a host that has none.
    pub(super) fn start(&mut self, host: usize) {
        let application = (self.processes)(host);
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

    pub(super) fn input(&mut self, host: usize, start: u32, input: Input) {
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
    pub(super) fn settle(&mut self, host: usize) {
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

    pub(super) fn rest(&mut self, host: usize, now: Reading) {
        let order = self.agenda.number();
        let node = &mut self.nodes[host];
        let Some(process) = &mut node.process else { return };
        let wake = process.machine.poll_timeout(now);
        process.wake_order = order;
        self.note(Step::Rested { host, wake });
        let node = &self.nodes[host];
        let Some(due) = wake.and_then(|wake| node.clock.when(wake)) else { return };
        let late = self.dice.late_timer(node.timing.renew(), self.is_peaceful);
        let start = self.nodes[host].starts;
        let at = due.max(self.time.now()) + late;
        self.agenda.put_as(order, at, Due::Wake { host, start, order });
    }

    pub(super) fn act(&mut self, host: usize, action: Action, now: Reading) {
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

    pub(super) fn disk(&mut self, host: usize, start: u32, id: RequestId, note: &Note) {
        if self.nodes[host].starts != start || self.nodes[host].process.is_none() {
            return;
        }
        self.nodes[host].directory.write(note);
        let back = self.hop(host);
        self.after(back, Due::Input { host, start, input: Input::Persisted(id, true) });
    }

    pub(super) fn fence(&mut self, host: usize, order: FenceOrder, now: Reading) {
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

    pub(super) fn hear(&mut self, host: usize, event: Event) {
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
    pub(super) fn ask(
        &mut self,
        host: usize,
        call: impl FnOnce(&mut dyn Application, &mut Host<'_>),
    ) {
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
                    machine.abandon(AbandonReason::Application, now);
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
}
