//! The resource admits no write of a tenure older than one whose write it admitted.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};

/// See the [module](super). Older by who took the lease first, not by the number that the gate sees:
/// two tenures with one number would pass the gate.
#[derive(Debug, Default)]
pub struct NoStaleWrite {
    newest: Option<Tenure>,
}

impl Invariant for NoStaleWrite {
    fn name(&self) -> &'static str {
        "no stale write"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        let Step::Admitted { tenure } = step else { return Ok(()) };
        match self.newest {
            Some(newest) if newest.number > tenure.number => {
                Err(format!("a write of {tenure} was admitted after one of {newest}"))
            }
            _ => {
                self.newest = Some(*tenure);
                Ok(())
            }
        }
    }
}
