//! The resource admits no write of a tenure older than one whose write it admitted.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};

/// See the [module](super). Older by whose fence opened first, not by the number that the gate sees:
/// two tenures with one number would pass the gate.
#[derive(Debug, Default)]
pub struct NoStaleWrite {
    opened: Vec<Tenure>,
    newest: usize,
}

impl Invariant for NoStaleWrite {
    fn name(&self) -> &'static str {
        "no stale write"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Opened { tenure, accepted: true, .. } => self.opened.push(*tenure),
            Step::Admitted { tenure } => {
                let opened = self.opened.iter().position(|opened| opened == tenure);
                match opened {
                    None => return Err(format!("{tenure} never opened, and wrote")),
                    Some(opened) if opened < self.newest => {
                        let newest = self.opened[self.newest];
                        return Err(format!(
                            "a write of {tenure} was admitted after one of {newest}"
                        ));
                    }
                    Some(opened) => self.newest = opened,
                }
            }
            _ => {}
        }
        Ok(())
    }
}
