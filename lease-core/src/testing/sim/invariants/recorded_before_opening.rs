//! The history has the epoch on disk before its fence opens.

use super::{Invariant, Scene};
use crate::testing::sim::trace::Step;

/// See the [module](super).
#[derive(Debug, Default)]
pub struct RecordedBeforeOpening;

impl Invariant for RecordedBeforeOpening {
    fn name(&self) -> &'static str {
        "recorded before opening"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        let Step::Opened { tenure, .. } = step else { return Ok(()) };
        match scene.recorded_epoch(tenure.host) {
            Some(recorded) if recorded >= tenure.epoch => Ok(()),
            recorded => Err(format!("{tenure} opens, and its history has {recorded:?}")),
        }
    }
}
