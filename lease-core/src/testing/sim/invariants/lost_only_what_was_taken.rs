//! No tenure is told lost while the store has nothing but its own writes.

use super::{Invariant, Scene};
use crate::{
    machine::{EndReason, Request},
    record::Nonce,
    testing::sim::trace::{Step, Tenure},
};
use fencing::Epoch;
use std::collections::BTreeMap;

/// See the [module](super). A write of one's own whose answer was lost is no reason to step down.
#[derive(Debug, Default)]
pub struct LostOnlyWhatWasTaken {
    /// How many writes the store has carried out.
    applied: u64,
    hosts: BTreeMap<usize, Seen>,
}

/// What one host wrote, and what others did.
#[derive(Debug, Default)]
struct Seen {
    /// The writes under the last epoch that it tried, and the first of them that was carried out.
    epoch: Option<Epoch>,
    sent: Vec<Nonce>,
    first: Option<u64>,
    /// The last write that was not one of these.
    foreign: Option<u64>,
}

impl Seen {
    fn is_disturbed(&self, tenure: Tenure) -> bool {
        self.epoch != Some(tenure.epoch) || self.first.is_none() || self.foreign > self.first
    }
}

impl Invariant for LostOnlyWhatWasTaken {
    fn name(&self) -> &'static str {
        "lost only what was taken"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Sent {
                host,
                request: Request::Create(draft) | Request::Replace(draft, _),
                ..
            } => {
                let seen = self.hosts.entry(*host).or_default();
                if seen.epoch != Some(draft.epoch) {
                    let foreign = seen.foreign;
                    *seen = Seen { epoch: Some(draft.epoch), foreign, ..Seen::default() };
                }
                seen.sent.push(draft.nonce);
                Ok(())
            }
            Step::Applied { host: by, nonce } => {
                self.applied += 1;
                for (host, seen) in &mut self.hosts {
                    // What people put back is not one's own write, whoever wrote it once.
                    let own = nonce.filter(|nonce| *by == Some(*host) && seen.sent.contains(nonce));
                    match own {
                        Some(_) => seen.first = seen.first.or(Some(self.applied)),
                        None => seen.foreign = Some(self.applied),
                    }
                }
                Ok(())
            }
            Step::Ended {
                tenure,
                reason:
                    reason @ (EndReason::Deleted
                    | EndReason::Lost
                    | EndReason::Replaced { .. }
                    | EndReason::TakenOver { .. }),
            } => match self.hosts.get(&tenure.host) {
                Some(seen) if !seen.is_disturbed(*tenure) => Err(format!(
                    "{tenure} ended ({reason}), but nobody else wrote since it was taken"
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
