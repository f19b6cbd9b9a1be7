//! What becomes of the requests of a world, on the way to its store and there.

use super::{
    super::{
        hazards::Hazard,
        link::{Fate, Passage},
    },
    node::Input,
    store::ends,
    trace::Step,
    world::{Due, World},
};
use crate::{
    machine::RequestId,
    session::{Draft, Object, Reply, Request, SessionRules},
    store::StoreErrorKind,
};
use fencing::Reading;
use std::time::Duration;

impl<R: SessionRules> World<R> {
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
        id: RequestId,
        object: Object,
        request: Request,
        at: Reading,
    ) {
        let (sent, about) = (request.clone(), object.clone());
        self.note(Step::Sent { host, id, object: about, request: sent, at });
        let mut passage = self.nodes[host].link.passage(&mut self.dice);
        if let Some(outage) = self.outage {
            passage.fate = outage.fate(&mut self.dice);
        }
        if self.cut_off.get(&host) == Some(&object) {
            passage.fate = Fate::Lost;
        }
        if let Request::Replace(Draft::Session(session), _) = &request
            && ends(session.state)
        {
            self.releases.insert(host, session.lease.nonce);
        }
        if let Fate::ToldThenLate(_) = passage.fate
            && self.is_not_late(&object, &request)
        {
            passage.fate = Fate::Doubtful;
        }
        if let (Object::Lease(key), false) = (&object, self.is_peaceful) {
            self.may_give_up(host, key, &request);
        }
        let start = self.nodes[host].starts;
        let course = passage.course(matches!(request, Request::Read { .. }));
        if let Some((after, error)) = course.told {
            let input = Input::Reply(id, Reply::Failed(error));
            self.after(after, Due::Input { host, start, input });
        }
        for (after, passage) in course.arrivals.into_iter().flatten() {
            let (object, request) = (object.clone(), request.clone());
            self.after(after, Due::Arrives { host, start, id, object, request, passage });
        }
    }

    /// What does not land late in this world (see the [module](super)).
    fn is_not_late(&self, object: &Object, request: &Request) -> bool {
        let hazards = self.setting.world.hazards;
        match (object, request) {
            // What was deleted by hand is not created by a request from long ago.
            (Object::Lease(_), Request::Create(_)) => hazards.has(Hazard::Delete),
            // A release does not land on what was put back.
            (_, Request::Replace(Draft::Session(session), _)) => {
                ends(session.state) && hazards.has(Hazard::PutBack)
            }
            _ => false,
        }
    }

    pub(super) fn arrives(
        &mut self,
        (host, start, id): (usize, u32, RequestId),
        object: &Object,
        request: &Request,
        passage: Passage,
    ) {
        let node = &self.nodes[host];
        let (writer, ttl) = (node.directory.instance.clone(), node.timing.ttl());
        let reply = self.store.serve(object, request, (&writer, ttl), self.time.now());
        if let Reply::Written(_) = reply {
            self.counts.written += 1;
            let nonce = self.store.nonce(object);
            self.note(Step::Applied { host: Some(host), object: object.clone(), nonce });
        }
        let in_doubt = Reply::Failed(StoreErrorKind::InDoubt);
        if let Some(reply) = passage.answer(reply, in_doubt) {
            let input = Input::Reply(id, reply);
            self.after(passage.back, Due::Input { host, start, input });
        }
    }

    /// Whether a host has a process that does not stand still.
    pub(super) fn is_running(&self, host: usize) -> bool {
        self.nodes[host].process.as_ref().is_some_and(|process| !process.is_paused)
    }
}
