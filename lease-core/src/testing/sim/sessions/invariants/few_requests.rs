//! A session that is watched is read at most once per R by each process, and requests under way never
//! exceed the bound.

use super::{Invariant, Scene};
use crate::{
    machine::RequestId,
    session::{Object, Reply, Request, Sighting},
    testing::sim::sessions::trace::Step,
};
use fencing::MonotonicTime;
use std::collections::BTreeMap;

/// A session that is watched is read at most once per R by each process, and requests under way never exceed the bound. A read comes sooner where there is a reason: an answer that failed or was
/// not awaited any more, a write of one's own to that session, a wish of the application, or a lease
/// that was seen to have changed.
#[derive(Debug, Default)]
pub struct FewRequests {
    hosts: BTreeMap<usize, Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    under_way: BTreeMap<RequestId, Object>,
    /// When the session was read last, if there was no reason since to read it sooner.
    read: BTreeMap<Object, MonotonicTime>,
}

impl Requests {
    fn sent(
        &mut self,
        object: &Object,
        request: &Request,
        at: MonotonicTime,
    ) -> Option<MonotonicTime> {
        let (Object::Session(_), Request::Read { .. }) = (object, request) else {
            self.read.remove(object);
            return None;
        };
        self.read.insert(object.clone(), at)
    }

    fn answered(&mut self, object: &Object, reply: Option<&Reply>) {
        match (object, reply) {
            (Object::Session(_), None | Some(Reply::Failed(_))) => drop(self.read.remove(object)),
            (Object::Session(_), _) | (_, Some(Reply::Lease(Sighting::NotModified))) => {}
            // Another session may be watched for it now, or the same one anew.
            (Object::Lease(_), _) => self.read.clear(),
        }
    }
}

impl Invariant for FewRequests {
    fn name(&self) -> &'static str {
        "few requests"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Sent { host, id, object, request, at } => {
                if matches!(object, Object::Session(it) if scene.instance(*host) == Some(it)) {
                    return Ok(());
                }
                let requests = self.hosts.entry(*host).or_default();
                requests.under_way.insert(*id, object.clone());
                let (count, most) = (requests.under_way.len(), scene.setting.max_in_flight);
                if count > most {
                    return Err(format!("host {host} has {count} requests under way"));
                }
                let last = requests.sent(object, request, at.monotonic);
                let renew = scene.timing(*host).renew();
                let passed = last.map(|last| at.monotonic - last);
                if let Some(passed) = passed.filter(|passed| *passed < renew) {
                    return Err(format!("host {host} reads {object:?} again after {passed:?}"));
                }
            }
            Step::Answered { host, id, reply } => {
                let requests = self.hosts.entry(*host).or_default();
                if let Some(object) = requests.under_way.remove(id) {
                    requests.answered(&object, Some(reply));
                }
            }
            Step::Forgot { host, id } => {
                let requests = self.hosts.entry(*host).or_default();
                match requests.under_way.remove(id) {
                    Some(object) => requests.answered(&object, None),
                    // Its answer came when it was not awaited any more.
                    None => requests.read.clear(),
                }
            }
            Step::Wished { host, .. } => {
                self.hosts.entry(*host).or_default().read.clear();
            }
            Step::Died { host } => drop(self.hosts.remove(host)),
            _ => {}
        }
        Ok(())
    }
}
