//! The resource under a lease admits no write of a tenure older than one whose write it admitted.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Move, Step, Tenure};
use std::collections::BTreeMap;

/// See the [module](super). Older by whose fence opened first, not by the number that the gate sees:
/// two tenures with one number would pass the gate.
#[derive(Debug, Default)]
pub struct NoStaleWrite {
    opened: BTreeMap<usize, Vec<Tenure>>,
    newest: BTreeMap<usize, usize>,
    token_alone: Vec<usize>,
}

impl Invariant for NoStaleWrite {
    fn name(&self) -> &'static str {
        "no stale write"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::TokenAlone { name } => self.token_alone.push(*name),
            Step::LeaseFence { tenure, moved: Move { opens: true, accepted: true, .. } } => {
                self.opened.entry(tenure.name).or_default().push(*tenure);
            }
            Step::Admitted { tenure } => {
                let opened = self.opened.entry(tenure.name).or_default();
                let Some(number) = opened.iter().position(|opened| opened == tenure) else {
                    return Err(format!("{tenure} never opened, and wrote"));
                };
                let newest = self.newest.entry(tenure.name).or_default();
                if number < *newest && !self.token_alone.contains(&tenure.name) {
                    let newest = opened[*newest];
                    return Err(format!("a write of {tenure} was admitted after one of {newest}"));
                }
                *newest = number;
            }
            _ => {}
        }
        Ok(())
    }
}
