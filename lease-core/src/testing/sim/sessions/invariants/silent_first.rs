//! No session is ended by another process before that one's own T has passed since the first answer
//! that showed what stands there.

use super::{Invariant, Scene};
use crate::{
    key::InstanceId,
    session::{Draft, Object, Reply, Request, SessionState, Sighting},
    store::Version,
    testing::sim::sessions::trace::Step,
};
use fencing::MonotonicTime;
use std::collections::{BTreeMap, HashMap};

/// No session is ended by another process before that one's own T has passed since the first answer that showed what stands there. T is the least that anybody waits, whatever the object says; what one wrote
/// oneself, a tombstone, is waited for from its own writing.
#[derive(Debug, Default)]
pub struct SilentFirst {
    hosts: BTreeMap<usize, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    asked: HashMap<crate::machine::RequestId, InstanceId>,
    since: HashMap<(InstanceId, Version), MonotonicTime>,
}

impl Invariant for SilentFirst {
    fn name(&self) -> &'static str {
        "silent first"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Sent { host, id, object: Object::Session(instance), request, at } => {
                if scene.instance(*host) == Some(instance) {
                    return Ok(());
                }
                let seen = self.hosts.entry(*host).or_default();
                seen.asked.insert(*id, instance.clone());
                let Request::Replace(Draft::Session(session), version) = request else {
                    return Ok(());
                };
                let since = seen.since.get(&(instance.clone(), version.clone()));
                let waited = since.map(|since| at.monotonic - *since);
                let ttl = scene.timing(*host).ttl();
                if session.state == SessionState::Killed && waited.is_none_or(|it| it < ttl) {
                    return Err(format!(
                        "host {host} ends {instance} after {waited:?}, T is {ttl:?}"
                    ));
                }
            }
            Step::Answered { host, id, reply } => {
                let seen = self.hosts.entry(*host).or_default();
                let Some(instance) = seen.asked.remove(id) else { return Ok(()) };
                let (Reply::Session(Sighting::Found { version, .. }) | Reply::Written(version)) =
                    reply
                else {
                    return Ok(());
                };
                let now = scene.reading(*host).monotonic;
                seen.since.entry((instance, version.clone())).or_insert(now);
            }
            Step::Died { host } => drop(self.hosts.remove(host)),
            _ => {}
        }
        Ok(())
    }
}
