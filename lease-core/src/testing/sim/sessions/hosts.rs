//! What happens on the hosts of a world: processes start, stop and settle, and move their fences.

use super::{
    super::{
        clock::HostClock,
        node::{Directory, Node},
        report::Violation,
    },
    node::{Held, Input, Moved, Process},
    trace::{Move, Step, Tenure},
    world::{Due, World},
};
use crate::{
    ObjectKey,
    key::InstanceId,
    machine::{FenceOrder, Note, RequestId},
    session::{Action, Config, Event, LeaseFenceOrder, SessionMachine, SessionRules},
    timing::Timing,
};
use fencing::{Clock as _, Epoch, FenceControl, Reading};
use std::sync::Arc;

impl<R: SessionRules> World<R> {
    pub(super) fn new_directory(&mut self) -> Directory {
        self.instances += 1;
        let name = format!("instance-{}", self.instances);
        let instance = InstanceId::new(&name).unwrap_or_else(|_| unreachable!("a plain name"));
        Directory::new(instance)
    }

    /// A host with its own clocks, and a process on it.
    pub(super) fn add_host(&mut self, timing: Timing, directory: Directory) {
        let clock = HostClock::drawn(&self.time, &self.setting.world, &mut self.dice);
        self.nodes.push(Node::new(timing, clock, directory));
        self.start(self.nodes.len() - 1);
    }

    /// A process is started on a host that has none.
    pub(super) fn start(&mut self, host: usize) {
        let setting = &self.setting;
        let seed = self.dice.roll();
        let node = &mut self.nodes[host];
        let mut config = Config::new(node.directory.instance.clone(), node.timing);
        if let Some(audit) = setting.audit {
            // It is R of the world's slowest host, or more.
            config = config.with_audit(audit).unwrap_or_else(|_| unreachable!("at least R"));
        }
        config.epochs = setting.world.epochs;
        config.has_secret = setting.world.secret;
        config.has_history = true;
        config.max_in_flight = setting.max_in_flight;
        config.looks_per_renew = setting.looks_per_renew;
        config.keep_out_after_release = setting.keep_out;
        config.fresh_instance = self.used.insert(node.directory.instance.clone()) && setting.fresh;
        config.jitter_seed = Some(seed);
        let past = node.directory.told(setting.world.reclaim);
        let now = node.clock.reading();
        node.starts += 1;
        let start = node.starts;
        node.process = Some(Process::new(config, past, now, &mut self.dice));
        self.settle(host);
        let first = self.dice.of_any_size(self.nodes[host].timing.renew());
        self.after(first, Due::Input { host, start, input: Input::Work });
    }

    /// The process of a host is gone, with everything in its memory.
    pub(super) fn kill(&mut self, host: usize) {
        if self.nodes[host].process.take().is_some() {
            self.note(Step::Died { host });
        }
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
        let process = node.process.as_mut().filter(|_| node.starts == start);
        let Some(process) = process else { return };
        if process.is_paused {
            process.inbox.push(input);
            return;
        }
        match input {
            Input::GiveUp(name) => self.wish(host, name, super::trace::Wish::GiveUp),
            Input::Persisted(id, ok) => {
                self.with(host, |machine, now| machine.handle_persisted(id, ok, now));
            }
            Input::Reply(id, reply) => {
                self.note(Step::Answered { host, id, reply: reply.clone() });
                self.with(host, |machine, now| machine.handle_reply(id, reply, now));
            }
            Input::Work => self.work(host),
        }
    }

    /// Something happens to the machine of a host, and what follows from it.
    pub(super) fn with(&mut self, host: usize, act: impl FnOnce(&mut SessionMachine<R>, Reading)) {
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

    fn rest(&mut self, host: usize, now: Reading) {
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

    fn act(&mut self, host: usize, action: Action, now: Reading) {
        let start = self.nodes[host].starts;
        match action {
            Action::Fence { epoch, order } => self.session_fence(host, epoch, order, now),
            Action::Forget(id) => self.note(Step::Forgot { host, id }),
            Action::LeaseFence { lease, epoch, order } => {
                if let Some(name) = self.number_of(&lease) {
                    self.lease_fence(host, name, &lease, epoch, order, now);
                }
            }
            Action::Persist(id, note) => match self.nodes[host].disk_works {
                true => {
                    let out = self.hop(host);
                    self.after(out, Due::Disk { host, start, id, note });
                }
                false => {
                    let takes = self.nodes[host].timing.ttl();
                    let takes = self.dice.of_any_size(takes);
                    let input = Input::Persisted(id, false);
                    self.after(takes, Due::Input { host, start, input });
                }
            },
            Action::Send { id, object, request } => self.send(host, id, object, request, now),
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

    fn session_fence(&mut self, host: usize, epoch: Epoch, order: FenceOrder, now: Reading) {
        let node = &mut self.nodes[host];
        let Some(process) = &mut node.process else { return };
        let (opens, sent, window) = match order {
            FenceOrder::Open { sent, window } => {
                let control = FenceControl::new(epoch, Arc::new(node.clock.clone()));
                process.session = Some(Moved::new(epoch, control));
                (true, sent, window)
            }
            FenceOrder::Extend { sent, window } => (false, sent, window),
            FenceOrder::Shut => {
                if let Some(session) = process.session.as_mut().filter(|it| it.epoch == epoch) {
                    session.control = None;
                    self.note(Step::SessionShut { host, epoch });
                }
                return;
            }
        };
        let session = process.session.as_mut().filter(|it| it.epoch == epoch);
        let accepted = session
            .and_then(|session| session.control.as_mut())
            .is_some_and(|control| moves(control, opens, sent, window));
        if !accepted {
            process.machine.handle_fence_shut(epoch, now);
        }
        self.counts.lives += u64::from(accepted && opens);
        let moved = Move { opens, sent, window, accepted };
        self.note(Step::SessionFence { host, epoch, moved });
    }

    fn lease_fence(
        &mut self,
        host: usize,
        name: usize,
        lease: &ObjectKey,
        epoch: Epoch,
        order: LeaseFenceOrder,
        now: Reading,
    ) {
        let (opens, sent, window) = match order {
            LeaseFenceOrder::Open { sent, window } => (true, sent, window),
            LeaseFenceOrder::Extend { sent, window } => (false, sent, window),
            LeaseFenceOrder::Shut => return self.shut(host, name, epoch),
        };
        let Some(tenure) = self.tenure(host, name, epoch) else { return };
        let node = &mut self.nodes[host];
        let Some(process) = &mut node.process else { return };
        let (Some(held), Some(session)) = (process.leases.get_mut(&name), &process.session) else {
            let what = format!("{tenure} is to open without a session");
            self.violation.get_or_insert(Violation::new("one end", self.time.now(), what));
            return;
        };
        if opens {
            let control = match R::LEASES_END_WITH_THE_SESSION {
                true => FenceControl::under(&session.fence, epoch),
                false => FenceControl::new(epoch, Arc::new(node.clock.clone())),
            };
            held.moved = Some(Moved::new(epoch, control));
        }
        let accepted = held
            .moved
            .as_mut()
            .and_then(|moved| moved.control.as_mut())
            .is_some_and(|control| moves(control, opens, sent, window));
        if !accepted {
            process.machine.handle_lease_fence_shut(lease, epoch, now);
        }
        self.counts.opened += u64::from(accepted && opens);
        let moved = Move { opens, sent, window, accepted };
        self.note(Step::LeaseFence { tenure, moved });
    }

    fn shut(&mut self, host: usize, name: usize, epoch: Epoch) {
        let Some(process) = &mut self.nodes[host].process else { return };
        let held = process.leases.get_mut(&name).filter(|held| held.tenure.epoch == epoch);
        if let Some(held) = held {
            let tenure = held.tenure;
            if let Some(moved) = &mut held.moved {
                moved.control = None;
            }
            self.note(Step::LeaseShut { tenure });
        }
    }

    /// The tenure of a lease that a process tells of; numbered when it is told of first.
    fn tenure(&mut self, host: usize, name: usize, epoch: Epoch) -> Option<Tenure> {
        let (now, number) = (self.time.now(), self.tenures + 1);
        let process = self.nodes[host].process.as_mut()?;
        match process.leases.get(&name) {
            Some(held) if held.tenure.epoch == epoch => return Some(held.tenure),
            Some(held) => {
                let what = format!("{} has not ended, and epoch {epoch} begins", held.tenure);
                self.violation.get_or_insert(Violation::new("one end", now, what));
                return None;
            }
            None => {}
        }
        let tenure = Tenure { number, host, name, epoch };
        process.leases.insert(name, Held { tenure, moved: None });
        self.tenures = number;
        Some(tenure)
    }

    pub(super) fn number_of(&self, lease: &ObjectKey) -> Option<usize> {
        self.names.iter().position(|name| name == lease)
    }

    fn hear(&mut self, host: usize, event: Event) {
        match event {
            Event::Acquired { lease, epoch } => {
                let tenure = self.number_of(&lease).and_then(|it| self.tenure(host, it, epoch));
                tenure.into_iter().for_each(|tenure| self.note(Step::Acquired { tenure }));
            }
            Event::HeldBack { lease, epoch, until } => {
                let tenure = self.number_of(&lease).and_then(|it| self.tenure(host, it, epoch));
                tenure.into_iter().for_each(|tenure| self.note(Step::HeldBack { tenure, until }));
            }
            Event::Ended { lease, epoch, reason } => {
                let Some(name) = self.number_of(&lease) else { return };
                let Some(process) = &mut self.nodes[host].process else { return };
                match process.leases.remove(&name) {
                    Some(Held { tenure, .. }) if tenure.epoch == epoch => {
                        self.note(Step::Ended { tenure, reason });
                    }
                    other => {
                        let other = other.map(|held| held.tenure.epoch);
                        let what = format!("host {host} ends epoch {epoch} of {lease}: {other:?}");
                        let now = self.time.now();
                        self.violation.get_or_insert(Violation::new("one end", now, what));
                    }
                }
            }
            Event::Denied { lease, reason } => {
                if let Some(name) = self.number_of(&lease) {
                    self.note(Step::Denied { host, name, reason });
                }
            }
            Event::Killed { life, .. } => {
                self.counts.killed += 1;
                self.note(Step::Killed { host, life });
            }
            _ => {}
        }
    }
}

fn moves(
    control: &mut FenceControl,
    opens: bool,
    sent: Reading,
    window: std::time::Duration,
) -> bool {
    match opens {
        true => control.open(sent, window).is_ok(),
        false => control.extend(sent, window).is_ok(),
    }
}
