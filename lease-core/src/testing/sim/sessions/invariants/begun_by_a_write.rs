//! A tenure of a lease begins with the answer to a write of its own, and that is the last write to this
//! key that its process has sent.
//!
//! So it landed after every earlier one was sent. What only a read shows may be given back already by
//! a release that is still on its way.

use super::{Invariant, Scene};
use crate::{
    machine::RequestId,
    session::{Draft, Object, Reply, Request},
    testing::sim::sessions::trace::{Step, Tenure},
};
use fencing::Epoch;
use std::collections::BTreeMap;

/// A tenure of a lease begins with the answer to a write of its own, and that is the last write to this key that its process has sent.
#[derive(Debug, Default)]
pub struct BegunByAWrite {
    hosts: BTreeMap<usize, Writes>,
    begun: BTreeMap<(usize, usize), Tenure>,
}

#[derive(Debug, Default)]
struct Writes {
    /// The last write to each key, and the epoch that it says is held.
    last: BTreeMap<Object, (RequestId, Option<Epoch>)>,
    /// The one that was answered just now: it is written.
    written: Option<RequestId>,
}

impl Invariant for BegunByAWrite {
    fn name(&self) -> &'static str {
        "begun by a write"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Sent {
                host,
                id,
                object,
                request:
                    Request::Create(Draft::Lease(named)) | Request::Replace(Draft::Lease(named), _),
                ..
            } => {
                let held = named.lease.held.then_some(named.lease.epoch);
                let writes = self.hosts.entry(*host).or_default();
                writes.last.insert(object.clone(), (*id, held));
            }
            Step::Answered { host, id, reply } => {
                let written = matches!(reply, Reply::Written(_)).then_some(*id);
                self.hosts.entry(*host).or_default().written = written;
            }
            Step::Rested { host, .. } => {
                self.hosts.entry(*host).or_default().written = None;
            }
            Step::HeldBack { tenure, .. } | Step::LeaseFence { tenure, .. } => {
                let key = (tenure.host, tenure.name);
                if self.begun.insert(key, *tenure) == Some(*tenure) {
                    return Ok(());
                }
                let writes = self.hosts.entry(tenure.host).or_default();
                let is_proved = writes
                    .last
                    .values()
                    .any(|(id, held)| writes.written == Some(*id) && *held == Some(tenure.epoch));
                if !is_proved {
                    return Err(format!("{tenure} begins without a write of its own"));
                }
            }
            Step::Died { host } => {
                self.hosts.remove(host);
                self.begun.retain(|(it, _), _| it != host);
            }
            _ => {}
        }
        Ok(())
    }
}
