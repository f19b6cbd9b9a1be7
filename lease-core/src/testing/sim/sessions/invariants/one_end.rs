//! Each tenure of a lease begins once, and ends exactly once.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Step, Tenure};
use std::collections::BTreeMap;

/// See the [module](super). What ends with its process is not told.
#[derive(Debug, Default)]
pub struct OneEnd {
    running: BTreeMap<(usize, usize), Running>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    tenure: Tenure,
    is_acquired: bool,
    is_shut: bool,
}

impl OneEnd {
    /// The tenure as it is known, which begins with whatever is told of it first.
    fn running(&mut self, tenure: Tenure) -> Result<&mut Running, String> {
        let new = Running { tenure, is_acquired: false, is_shut: false };
        let running = self.running.entry((tenure.host, tenure.name)).or_insert(new);
        match running.tenure == tenure {
            true => Ok(running),
            false => Err(format!("{tenure} begins, and {} has not ended", running.tenure)),
        }
    }
}

impl Invariant for OneEnd {
    fn name(&self) -> &'static str {
        "one end"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::HeldBack { tenure, .. } if self.running(*tenure)?.is_acquired => {
                return Err(format!("{tenure} is held back, and was acquired before"));
            }
            Step::Acquired { tenure } => {
                let running = self.running(*tenure)?;
                if std::mem::replace(&mut running.is_acquired, true) {
                    return Err(format!("{tenure} is acquired twice"));
                }
            }
            Step::LeaseFence { tenure, moved } => {
                let running = self.running(*tenure)?;
                if running.is_shut && moved.accepted {
                    return Err(format!("the fence of {tenure} is moved after it was shut"));
                }
            }
            Step::LeaseShut { tenure } => self.running(*tenure)?.is_shut = true,
            Step::Ended { tenure, .. } => {
                let running = self.running.remove(&(tenure.host, tenure.name));
                if running.is_none_or(|running| running.tenure != *tenure) {
                    return Err(format!("{tenure} ended, but {running:?} was running"));
                }
            }
            Step::Died { host } => self.running.retain(|(it, _), _| it != host),
            _ => {}
        }
        Ok(())
    }
}
