//! In the order in which fences open, epochs strictly increase.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};

/// See the [module](super).
#[derive(Debug, Default)]
pub struct EpochsGrow {
    last: Option<Tenure>,
}

impl Invariant for EpochsGrow {
    fn name(&self) -> &'static str {
        "epochs grow"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        let Step::Opened { tenure, accepted: true, .. } = step else { return Ok(()) };
        match self.last.replace(*tenure) {
            Some(last) if last.epoch >= tenure.epoch => {
                Err(format!("{tenure} opened after {last}"))
            }
            _ => Ok(()),
        }
    }
}
