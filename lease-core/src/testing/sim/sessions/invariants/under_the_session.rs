//! The fence of a lease is never open while that of its session is shut.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Move, Step};
use std::collections::BTreeMap;

/// See the [module](super). It looks at the fences as an application does, and at who opens one.
#[derive(Debug, Default)]
pub struct UnderTheSession {
    /// The lives whose fence was opened and is not shut by its owner.
    open: BTreeMap<usize, fencing::Epoch>,
}

impl Invariant for UnderTheSession {
    fn name(&self) -> &'static str {
        "under the session"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::SessionFence { host, epoch, moved: Move { accepted: true, .. } } => {
                self.open.insert(*host, *epoch);
            }
            Step::SessionShut { host, .. } | Step::Died { host } => drop(self.open.remove(host)),
            Step::LeaseFence { tenure, moved: Move { accepted: true, .. } }
                if !self.open.contains_key(&tenure.host) =>
            {
                return Err(format!("the fence of {tenure} is moved, and its session's is shut"));
            }
            Step::Looked { tenure, is_open: true, session_is_open: false } => {
                return Err(format!("the fence of {tenure} is open, and its session's is shut"));
            }
            _ => {}
        }
        Ok(())
    }
}
