//! Every tenure that was taken ends exactly once.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};
use std::collections::BTreeMap;

/// See the [module](super). What ends with its process is not told.
#[derive(Debug, Default)]
pub struct OneEnd {
    running: BTreeMap<usize, Tenure>,
}

impl Invariant for OneEnd {
    fn name(&self) -> &'static str {
        "one end"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::TakingOver { tenure, .. } => match self.running.insert(tenure.host, *tenure) {
                Some(before) => Err(format!("{tenure} was taken, and {before} has not ended")),
                None => Ok(()),
            },
            Step::Ended { tenure, .. } => match self.running.remove(&tenure.host) {
                Some(running) if running == *tenure => Ok(()),
                other => Err(format!("{tenure} ended, but running was {other:?}")),
            },
            Step::Opened { tenure, .. } | Step::Extended { tenure, .. }
                if self.running.get(&tenure.host) != Some(tenure) =>
            {
                Err(format!("the fence of {tenure} is moved, but that is not running"))
            }
            Step::Trouble { host: Some(host), what: super::super::PROCESS_DIES } => {
                self.running.remove(host);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
