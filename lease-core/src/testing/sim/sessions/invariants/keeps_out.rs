//! Whoever released a lease does not take it again within 2R, unless it was told not to keep out.

use super::{Invariant, Scene};
use crate::{
    session::{Draft, LeaseEndReason, Object, Request},
    testing::sim::sessions::trace::Step,
};
use fencing::MonotonicTime;
use std::{collections::BTreeMap, time::Duration};

/// Whoever released a lease does not take it again within 2R, unless it was told not to keep out. Time is
/// that of the host; what it knows of it dies with its process.
///
/// A write of it that begins no tenure may come before: what was met as one's own and given up while it was
/// held back is replaced before it can be given back.
#[derive(Debug, Default)]
pub struct KeepsOut {
    released: BTreeMap<(usize, usize), MonotonicTime>,
    /// Acquisitions that were sent too early, by how long after the release, unless another came after.
    early: BTreeMap<(usize, usize), Duration>,
}

impl Invariant for KeepsOut {
    fn name(&self) -> &'static str {
        "keeps out"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        if !scene.setting.keep_out {
            return Ok(());
        }
        match step {
            Step::Ended { tenure, reason: LeaseEndReason::Released } => {
                let now = scene.reading(tenure.host).monotonic;
                self.released.insert((tenure.host, tenure.name), now);
            }
            Step::Sent { host, object: Object::Lease(key), request, at, .. } => {
                let (Request::Create(Draft::Lease(named))
                | Request::Replace(Draft::Lease(named), _)) = request
                else {
                    return Ok(());
                };
                let is_it = |name: usize| key.to_string() == format!("n{name}");
                let released =
                    self.released.iter().find(|((by, name), _)| by == host && is_it(*name));
                if let Some((which, released)) = released.filter(|_| named.lease.held) {
                    let passed = at.monotonic - *released;
                    match passed < scene.timing(*host).renew() * 2 {
                        true => self.early.insert(*which, passed),
                        false => self.early.remove(which),
                    };
                }
            }
            Step::HeldBack { tenure, .. } | Step::Acquired { tenure } => {
                if let Some(passed) = self.early.get(&(tenure.host, tenure.name)) {
                    return Err(format!(
                        "host {} took n{} again {passed:?} after it released that",
                        tenure.host, tenure.name
                    ));
                }
            }
            Step::Died { host } => {
                self.released.retain(|(it, _), _| it != host);
                self.early.retain(|(it, _), _| it != host);
            }
            _ => {}
        }
        Ok(())
    }
}
