//! At no true instant are two fences open.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};
use fencing::{MonotonicTime, WallTime};

/// See the [module](super). It keeps deadlines of its own, apart from the fences.
///
/// An overlap begins when a fence opens or is extended, so it looks at all others then: at each by
/// the clocks of its own host, also if that host stands still. What is open by neither clock nobody
/// can act under, however long its process slept.
#[derive(Debug, Default)]
pub struct OneOpenFence {
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    tenure: Tenure,
    deadline: MonotonicTime,
    wall_limit: WallTime,
}

impl Open {
    fn is_open(&self, scene: &Scene<'_>) -> bool {
        let now = scene.reading(self.tenure.host);
        now.monotonic < self.deadline && now.wall < self.wall_limit
    }
}

impl Invariant for OneOpenFence {
    fn name(&self) -> &'static str {
        "one open fence"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        let (Step::Opened { tenure, sent, window, accepted }
        | Step::Extended { tenure, sent, window, accepted }) = step
        else {
            if let Step::Shut { tenure } = step {
                self.open.retain(|open| open.tenure != *tenure);
            }
            return Ok(());
        };
        if !accepted {
            return Ok(());
        }
        self.open.retain(|open| open.tenure != *tenure);
        let (deadline, wall_limit) = (sent.monotonic + *window, sent.wall + *window);
        let this = Open { tenure: *tenure, deadline, wall_limit };
        let other = self.open.iter().find(|open| open.is_open(scene));
        let overlap = match other.filter(|_| this.is_open(scene)) {
            Some(other) => Err(format!("{tenure} is open, and so is {}", other.tenure)),
            None => Ok(()),
        };
        self.open.push(this);
        overlap
    }
}
