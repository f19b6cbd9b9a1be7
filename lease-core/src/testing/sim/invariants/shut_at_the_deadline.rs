//! At the deadline the fence is shut, and its owner is awake.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};
use fencing::{Fence, MonotonicTime};
use std::collections::BTreeMap;

/// See the [module](super).
///
/// Whenever something happens on a host whose deadline has come, its real fence is shut; whenever its
/// machine was asked at or after the deadline, the tenure is over; and a host whose fence is open
/// rests no longer than to the deadline.
#[derive(Debug, Default)]
pub struct ShutAtTheDeadline {
    deadlines: BTreeMap<usize, (Tenure, MonotonicTime)>,
}

impl Invariant for ShutAtTheDeadline {
    fn name(&self) -> &'static str {
        "shut at the deadline"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Opened { tenure, sent, window, accepted: true }
            | Step::Extended { tenure, sent, window, accepted: true } => {
                self.deadlines.insert(tenure.host, (*tenure, sent.monotonic + *window));
            }
            Step::Shut { tenure } => {
                self.deadlines.remove(&tenure.host);
            }
            _ => {}
        }
        let Some(host) = step.host() else { return Ok(()) };
        let Some((tenure, deadline)) = self.deadlines.get(&host) else { return Ok(()) };
        let now = scene.reading(host).monotonic;
        if now >= *deadline && scene.fence(host).is_some_and(Fence::is_open) {
            return Err(format!("{tenure} is open at {now:?}, its deadline is {deadline:?}"));
        }
        match step {
            Step::Rested { .. } if now >= *deadline => {
                Err(format!("{tenure} goes on at {now:?}, its deadline is {deadline:?}"))
            }
            Step::Rested { wake, .. } if wake.is_none_or(|wake| wake > *deadline) => {
                Err(format!("{tenure} rests until {wake:?}, beyond its deadline {deadline:?}"))
            }
            _ => Ok(()),
        }
    }
}
