//! What travels between the instances, their disks, and the store.

use super::{
    checks::Lineage,
    node::{DiskFate, Fate, FloorFate, Link, Wanted},
    schedule::{Clocks, Setup},
    store::{Object, Place},
    world::World,
};
use fencing::{Clock as _, Epoch, MonotonicTime, Reading};
use lease_core::{
    auth::Verdict,
    machine::{Draft, Facts, Note, Reply, Request, RequestId},
    store::StoreErrorKind,
};
use std::{sync::Arc, time::Duration};

#[derive(Debug)]
pub(super) struct Message {
    pub(super) node: usize,
    life: u32,
    id: RequestId,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
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

/// What a read finds, and what a floor would have told at that moment; `None` for other requests.
type Shown = Option<(Option<Place>, Option<Epoch>)>;

impl World {
    pub(super) fn settle(&mut self, number: usize) {
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

    pub(super) fn deliver(&mut self, message: Message) {
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
                if let (Ok(floor), Some(process)) = (told, &mut self.nodes[number].process) {
                    process.acquisitions.told(floor);
                }
                self.act(number, |machine, now| machine.handle_floor(id, told, now));
            }
            Content::Reply(reply, shown) if is_meant => self.answer(number, id, reply, shown),
            Content::Floor(_) | Content::Reply(..) => {}
        }
    }

    fn answer(&mut self, number: usize, id: RequestId, reply: Reply, shown: Shown) {
        self.tell(|| format!("{number} is told {reply:?}"));
        let lineage = shown.map(|(place, _)| self.lineage(place));
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
        if let (Some(lineage), Some((shown, proved)), true) = (lineage, shown, counts) {
            process.shown = shown;
            if process.machine.epoch().is_none() {
                process.acquisitions.shown(lineage, proved, now, renew);
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
                return (Reply::Read(sighting), Some((place, self.opened)));
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
        let node = &self.nodes[number];
        assert!(
            !node.config.has_history || node.disk.past.last_epoch >= Some(epoch),
            "{epoch} opens before the history has it"
        );
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
