//! Whoever released a lease does not take it again within 2R, unless it was told not to keep out.

use super::{Invariant, Scene};
use crate::{
    session::{Draft, LeaseEndReason, Object, Request},
    testing::sim::sessions::trace::Step,
};
use fencing::MonotonicTime;
use std::collections::BTreeMap;

/// Whoever released a lease does not take it again within 2R, unless it was told not to keep out. Time is that of the host; what it knows of it dies with its process.
#[derive(Debug, Default)]
pub struct KeepsOut {
    released: BTreeMap<(usize, usize), MonotonicTime>,
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
                let released = self
                    .released
                    .iter()
                    .find(|((by, name), _)| by == host && is_it(*name))
                    .map(|(_, released)| *released);
                let out = scene.timing(*host).renew() * 2;
                if let Some(released) = released
                    && named.lease.held
                    && at.monotonic - released < out
                {
                    let passed = at.monotonic - released;
                    return Err(format!(
                        "host {host} takes {key} again {passed:?} after it released that"
                    ));
                }
            }
            Step::Died { host } => self.released.retain(|(it, _), _| it != host),
            _ => {}
        }
        Ok(())
    }
}
