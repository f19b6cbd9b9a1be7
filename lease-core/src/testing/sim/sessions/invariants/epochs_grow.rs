//! In the order in which the fences of a lease open, its epochs strictly increase.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Move, Step, Tenure};
use std::collections::BTreeMap;

/// See the [module](super).
#[derive(Debug, Default)]
pub struct EpochsGrow {
    last: BTreeMap<usize, Tenure>,
    token_alone: Vec<usize>,
}

impl Invariant for EpochsGrow {
    fn name(&self) -> &'static str {
        "epochs grow"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::TokenAlone { name } => self.token_alone.push(*name),
            Step::LeaseFence { tenure, moved: Move { opens: true, accepted: true, .. } } => {
                let last = self.last.insert(tenure.name, *tenure);
                if let Some(last) = last.filter(|last| last.epoch >= tenure.epoch)
                    && !self.token_alone.contains(&tenure.name)
                {
                    return Err(format!("{tenure} opened after {last}"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
