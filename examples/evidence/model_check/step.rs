//! What follows from a step: time, people, the store.

use super::{
    act::Act,
    check::{Broken, Marks},
    machine::Driven,
    setting::{Fault, Setting},
    time_line::Recorder,
    world::{Former, Host, Object, Sent, Stands, World, holds, name},
};
use lease_core::{
    fencing::Reading,
    machine::{AbandonReason, Reply, Request, RequestId, Sighting},
    store::{StoreErrorKind, Version},
    testing::sim::Step,
};

/// A world in the middle of a step.
pub(crate) struct Stage<'a> {
    pub(crate) setting: &'a Setting,
    pub(crate) world: &'a mut World,
    /// Who writes down what happens, if somebody wants to know.
    pub(crate) log: Option<&'a mut Recorder>,
    /// The machine that is at work heard the answer to a read in this step, and held the lease then.
    pub(crate) heard_a_read: Option<bool>,
}

impl Stage<'_> {
    pub(crate) fn act(&mut self, act: Act) {
        self.world.marks = Marks::default();
        match act {
            Act::Arrive(at) => self.arrive(at),
            Act::Disk(host) => self.disk(host),
            Act::Go(fault, number) => {
                self.world.faults -= 1;
                self.go(fault, number);
            }
            Act::Hear(at) => {
                let sent = self.world.requests.remove(at);
                if let (Some(id), Some(answer)) = (sent.id, sent.answer) {
                    self.hear(sent.host, id, answer);
                }
            }
            Act::Mend(host) => {
                self.world.hosts[host].is_cut = false;
                self.trouble(Some(host), "reaches the store again");
            }
            Act::Resume(host) => {
                self.world.hosts[host].stands = Stands::Not;
                self.trouble(Some(host), "goes on");
            }
            Act::Start(host) => {
                self.world.start(self.setting, host, false);
                self.trouble(Some(host), "is started again");
                self.settle(host);
            }
            Act::Tick => {
                self.world.now += 1;
                for host in &mut self.world.hosts {
                    host.asleep += u16::from(host.stands == Stands::Suspended);
                }
                for sent in &mut self.world.requests {
                    sent.is_held_up = false;
                }
                self.wake_who_is_due();
            }
            Act::Wake(host) => self.with(host, |machine, now| machine.handle_timeout(now)),
        }
        self.forget_the_dead();
        self.world.requests.sort_by_key(|sent| (sent.host, sent.at, sent.id));
    }

    /// Timers that are due at this tick come first of all that happens at it: whatever else does is
    /// independent of them, since all that a timer does is to send. But an answer that a host may
    /// hear at this tick may come before its timer; then that is a step of its own.
    fn wake_who_is_due(&mut self) {
        for number in 0..self.world.hosts.len() {
            let mut own = self.world.requests.iter().filter(|sent| sent.host == number);
            if self.world.is_due(self.setting, number) && !own.any(|sent| sent.id.is_some()) {
                self.with(number, |machine, now| machine.handle_timeout(now));
            }
        }
    }

    fn go(&mut self, fault: Fault, number: usize) {
        match fault {
            Fault::Delay | Fault::DelayAnswer | Fault::Doubt | Fault::Conflict => {
                self.go_on_the_way(fault, number);
            }
            Fault::Delete | Fault::Garbage | Fault::PutBack => self.meddle(fault, number),
            Fault::Crash | Fault::Lose => self.kill(number, fault == Fault::Lose),
            Fault::Pause => self.stand(number, Stands::Paused, "stands still"),
            Fault::Suspend => self.stand(number, Stands::Suspended, "is suspended"),
            Fault::Cut => {
                self.world.hosts[number].is_cut = true;
                for sent in self.world.requests.iter_mut().filter(|sent| sent.host == number) {
                    sent.is_quick = false;
                }
                self.trouble(Some(number), "does not reach the store");
            }
            Fault::Abandon => {
                self.trouble(Some(number), "gives its takeover up");
                let why = AbandonReason::Application;
                self.with(number, |machine, now| machine.abandon(why, now));
            }
            Fault::Release => {
                self.trouble(Some(number), "gives the lease back");
                self.with(number, |machine, now| machine.release(now));
            }
        }
    }

    fn stand(&mut self, number: usize, stands: Stands, what: &'static str) {
        self.world.hosts[number].stands = stands;
        self.trouble(Some(number), what);
    }

    fn go_on_the_way(&mut self, fault: Fault, at: usize) {
        let sent = &mut self.world.requests[at];
        let (host, id) = (sent.host, sent.id);
        sent.is_quick = false;
        match fault {
            Fault::DelayAnswer => {
                sent.is_held_up = true;
                let sent = sent.clone();
                self.trouble(Some(host), "will wait for an answer");
                let answer = self.apply(&sent);
                self.world.requests[at].answer = Some(answer);
            }
            Fault::Doubt => {
                sent.id = None;
                self.trouble(Some(host), "is told that a write is in doubt");
                self.hear_of(host, id, StoreErrorKind::InDoubt);
            }
            Fault::Conflict => {
                self.world.requests.remove(at);
                self.trouble(Some(host), "is told that another write was in flight");
                self.hear_of(host, id, StoreErrorKind::Contended);
            }
            _ => {
                sent.is_held_up = true;
                self.trouble(Some(host), "has a request that stays on its way");
            }
        }
    }

    fn meddle(&mut self, fault: Fault, number: usize) {
        let object = match fault {
            Fault::Garbage => {
                // Unlike all other bytes: that such come back is no claim of the protocol.
                let tag = format!("garbage {} {}", self.world.now, self.world.faults);
                Some(Object { version: Version::new(tag), facts: None })
            }
            Fault::PutBack => Some(self.world.former[number].object.clone()),
            _ => None,
        };
        self.trouble(
            None,
            match fault {
                Fault::Garbage => "the lease is replaced by garbage",
                Fault::PutBack => "an older record of the lease is put back",
                _ => "the lease is deleted",
            },
        );
        self.put(object);
    }

    /// A process is gone, with everything in its memory. Its writes may still land.
    fn kill(&mut self, number: usize, is_lost: bool) {
        let host = &mut self.world.hosts[number];
        host.machine = None;
        host.stands = Stands::Not;
        host.notes.clear();
        let tenure = host.tenure.take();
        host.landed = None;
        if is_lost {
            host.directory = super::world::Directory::default();
            host.last_release = None;
            // Nobody has had this name: there are not so many ticks.
            host.instance = name(number, 1 + u32::from(self.world.now));
        }
        for sent in self.world.requests.iter_mut().filter(|sent| sent.host == number) {
            sent.id = None;
            sent.is_quick = false;
            sent.is_left_behind = true;
        }
        if tenure.is_some() {
            self.note(|it| it.tenure(number).map(|tenure| Step::Shut { tenure }));
        }
        let what = if is_lost { "dies, and its directory is lost" } else { "dies" };
        self.trouble(Some(number), what);
    }

    fn arrive(&mut self, at: usize) {
        let sent = self.world.requests.remove(at);
        let answer = self.apply(&sent);
        let Some(id) = sent.id else { return };
        if self.world.hosts[sent.host].is_running() {
            self.hear(sent.host, id, answer);
        } else {
            let is_quick = true;
            self.world.requests.push(Sent { answer: Some(answer), is_quick, ..sent });
        }
    }

    fn hear_of(&mut self, host: usize, id: Option<RequestId>, error: StoreErrorKind) {
        let Some(id) = id else { return };
        if self.world.hosts[host].is_running() {
            self.hear(host, id, Reply::Failed(error));
            return;
        }
        self.world.requests.push(Sent {
            host,
            id: Some(id),
            request: Request::Read { unless: None },
            object: None,
            is_left_behind: false,
            at: self.world.reading(self.setting, host).monotonic,
            answer: Some(Reply::Failed(error)),
            is_quick: true,
            is_held_up: false,
        });
    }

    fn hear(&mut self, host: usize, id: RequestId, answer: Reply) {
        self.note(|_| Some(Step::Answered { host, reply: answer.clone() }));
        let machine = self.world.hosts[host].machine.as_ref();
        let held = machine.is_some_and(|machine| holds(machine.role()));
        self.heard_a_read = matches!(answer, Reply::Read(_)).then_some(held);
        self.with(host, |machine, now| machine.handle_reply(id, answer, now));
        // A standby that has read knows why its last tenure ended.
        let Host { machine, tenure, .. } = &self.world.hosts[host];
        let holds_now = machine.as_ref().is_some_and(|machine| holds(machine.role()));
        if self.heard_a_read == Some(false)
            && !holds_now
            && tenure.is_some_and(|tenure| !tenure.is_over)
        {
            self.broken(Broken::End);
        }
        self.heard_a_read = None;
    }

    fn disk(&mut self, number: usize) {
        let host = &mut self.world.hosts[number];
        if let Some((id, note)) = host.notes.pop_front() {
            host.directory.write(&note);
            self.with(number, |machine, now| machine.handle_persisted(id, true, now));
        }
    }

    /// Carries a request out.
    fn apply(&mut self, sent: &Sent) -> Reply {
        let (draft, holds_still) = match (&sent.request, &self.world.object) {
            (Request::Create(draft), object) => (draft, object.is_none()),
            (Request::Replace(draft, expected), object) => {
                let is_there = object.as_ref().is_some_and(|it| it.version == *expected);
                let is_takeover = draft.held && draft.seq == 1;
                (draft, is_there || is_takeover && !self.setting.kept.takeover_is_conditional)
            }
            (Request::Read { unless }, Some(object)) if *unless == Some(object.version.clone()) => {
                return Reply::Read(Sighting::NotModified);
            }
            (_, Some(object)) => return Reply::Read(object.sighting()),
            (_, None) => return Reply::Read(Sighting::Missing),
        };
        if !holds_still {
            return Reply::Failed(StoreErrorKind::Precondition);
        }
        let Some(object) = sent.object.clone() else {
            return Reply::Failed(StoreErrorKind::Corrupt);
        };
        let version = object.version.clone();
        let is_kept = draft.held || self.setting.kept.release_keeps_the_object;
        self.put(is_kept.then_some(object));
        let (host, nonce) = (sent.host, Some(draft.nonce));
        self.note(|_| Some(Step::Applied { host: Some(host), nonce }));
        if !sent.is_left_behind {
            let landed = &mut self.world.hosts[host].landed;
            match landed {
                Some((epoch, at)) if *epoch == draft.epoch => *at = sent.at.max(*at),
                Some((epoch, _)) if *epoch > draft.epoch => {}
                _ => *landed = Some((draft.epoch, sent.at)),
            }
        }
        Reply::Written(version)
    }

    /// Something else stands there from now on, or nothing.
    fn put(&mut self, object: Option<Object>) {
        let now = self.world.now;
        let before = std::mem::replace(&mut self.world.object, object);
        let before = before.filter(|it| it.facts.is_some());
        if !self.world.may_be_put_back(self.setting) {
            self.world.former.clear();
        } else if let Some(object) = before {
            self.world.former.retain(|former| former.object.version != object.version);
            self.world.former.push(Former { object, last_there: now });
        }
    }

    /// Takes off its way what nobody waits for and what can land no more: its version is not there,
    /// nothing on its way makes it, and nobody can put it back.
    fn forget_the_dead(&mut self) {
        let world = &mut *self.world;
        let may_vanish = world.faults > 0 && self.setting.kinds.contains(&Fault::Delete)
            || !self.setting.kept.release_keeps_the_object;
        let comes: Vec<_> = world
            .requests
            .iter()
            .filter(|sent| sent.answer.is_none())
            .filter_map(|sent| Some(sent.object.as_ref()?.version.clone()))
            .chain(world.object.iter().map(|it| it.version.clone()))
            .chain(world.former.iter().map(|it| it.object.version.clone()))
            .collect();
        let is_missing = world.object.is_none();
        world.requests.retain(|sent| {
            if sent.id.is_some() {
                return true;
            }
            if sent.answer.is_some() {
                return false;
            }
            match &sent.request {
                Request::Create(_) => is_missing || may_vanish,
                Request::Replace(draft, version) => {
                    let is_takeover = draft.held && draft.seq == 1;
                    comes.contains(version)
                        || is_takeover && !self.setting.kept.takeover_is_conditional
                }
                _ => false,
            }
        });
    }

    /// Something happens to a machine, and what follows from it.
    pub(crate) fn with(&mut self, host: usize, act: impl FnOnce(&mut Driven, Reading)) {
        let now = self.world.reading(self.setting, host);
        if let Some(machine) = &mut self.world.hosts[host].machine {
            act(machine, now);
            self.settle(host);
        }
    }

    pub(crate) fn broken(&mut self, broken: Broken) {
        self.world.broken.get_or_insert(broken);
    }

    pub(crate) fn trouble(&mut self, host: Option<usize>, what: &'static str) {
        self.note(|_| Some(Step::Trouble { host, what }));
    }

    pub(crate) fn note(&mut self, step: impl FnOnce(&mut Recorder) -> Option<Step>) {
        if let Some(log) = self.log.as_deref_mut() {
            let at = self.setting.tick * u32::from(self.world.now);
            log.note(at, step);
        }
    }
}
