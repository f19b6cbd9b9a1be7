//! What becomes of the requests of a world, on the way to its store and there.

use super::{
    hazards::Hazard,
    link::{Fate, Passage},
    node::Input,
    object::Object,
    trace::Step,
    world::{Due, World},
};
use crate::{
    machine::{Draft, Reply, Request, RequestId, Rules},
    store::StoreErrorKind,
};
use fencing::Reading;
use std::time::Duration;

impl<R: Rules> World<R> {
    pub(super) fn calm_latency(&self, host: usize) -> Duration {
        self.nodes[host].timing.renew() / 25
    }

    /// One way between a host and something near.
    pub(super) fn hop(&mut self, host: usize) -> Duration {
        let most = self.calm_latency(host);
        self.dice.of_any_size(most)
    }

    pub(super) fn send(
        &mut self,
        host: usize,
        start: u32,
        id: RequestId,
        request: Request,
        at: Reading,
    ) {
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
        let course = passage.course(matches!(request, Request::Read { .. }));
        if let Some((after, error)) = course.told {
            let input = Input::Reply(id, Reply::Failed(error));
            self.after(after, Due::Input { host, start, input });
        }
        for (after, passage) in course.arrivals.into_iter().flatten() {
            let request = request.clone();
            self.after(after, Due::Arrives { host, start, id, request, passage });
        }
    }

    pub(super) fn arrives(
        &mut self,
        host: usize,
        start: u32,
        id: RequestId,
        request: Request,
        passage: Passage,
    ) {
        let reply = self.apply(host, request);
        let in_doubt = Reply::Failed(StoreErrorKind::InDoubt);
        if let Some(reply) = passage.answer(reply, in_doubt) {
            let input = Input::Reply(id, reply);
            self.after(passage.back, Due::Input { host, start, input });
        }
    }

    pub(super) fn apply(&mut self, host: usize, request: Request) -> Reply {
        let now = self.time.now();
        let node = &self.nodes[host];
        let record =
            |draft: &Draft| self.store.record(draft, &node.directory.instance, node.timing.ttl());
        let written = match &request {
            Request::Read { unless } => {
                return Reply::Read(self.store.read(unless.as_ref(), now).into());
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
                let nonce = self.store.object().and_then(Object::nonce);
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
