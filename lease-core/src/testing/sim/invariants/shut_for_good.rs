//! A fence that was seen shut after it had opened never opens again.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};
use std::collections::BTreeMap;

/// See the [module](super).
#[derive(Debug, Default)]
pub struct ShutForGood {
    /// The last tenure of each host whose fence opened, and whether it was seen shut since.
    opened: BTreeMap<usize, (Tenure, bool)>,
}

impl Invariant for ShutForGood {
    fn name(&self) -> &'static str {
        "shut for good"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        let (tenure, is_open) = match step {
            Step::Opened { tenure, accepted: true, .. }
            | Step::Extended { tenure, accepted: true, .. } => (*tenure, true),
            Step::Looked { tenure, is_open } => (*tenure, *is_open),
            Step::Shut { tenure } => (*tenure, false),
            _ => return Ok(()),
        };
        match self.opened.get_mut(&tenure.host).filter(|(opened, _)| *opened == tenure) {
            Some((_, true)) if is_open => Err(format!("{tenure} was seen shut, and opens again")),
            Some((_, seen_shut)) => {
                *seen_shut |= !is_open;
                Ok(())
            }
            None if matches!(step, Step::Opened { .. }) => {
                self.opened.insert(tenure.host, (tenure, false));
                Ok(())
            }
            None => Ok(()),
        }
    }
}
