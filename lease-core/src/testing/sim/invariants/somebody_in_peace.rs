//! Once nothing goes wrong, somebody is active within T + 2R, and stays.

use super::{Invariant, Scene};
use crate::testing::sim::trace::{Step, Tenure};
use std::time::Duration;

/// See the [module](super). T and R are the largest of the world, on the slowest clock it may have.
#[derive(Debug, Default)]
pub struct SomebodyInPeace {
    peace: Option<Duration>,
    open: Vec<Tenure>,
    /// How long it took from the beginning of peace.
    found: Option<Duration>,
}

impl SomebodyInPeace {
    fn bound(scene: &Scene<'_>) -> Duration {
        let setting = scene.setting;
        let bound = setting.largest_ttl() + setting.largest_renew() * 2;
        bound * 1_000_000 / u32::try_from(1_000_000 - setting.rate_ppm).unwrap_or(u32::MAX)
    }
}

impl Invariant for SomebodyInPeace {
    fn name(&self) -> &'static str {
        "somebody in peace"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Opened { tenure, accepted: true, .. } => self.open.push(*tenure),
            Step::Shut { tenure } | Step::Ended { tenure, .. } => {
                self.open.retain(|open| open != tenure);
            }
            Step::Peace => self.peace = Some(scene.now),
            _ => {}
        }
        let Some(peace) = self.peace else { return Ok(()) };
        let (passed, bound) = (scene.now - peace, Self::bound(scene));
        match (self.open.is_empty(), self.found) {
            (false, None) => self.found = Some(passed),
            (true, None) if passed > bound => {
                return Err(format!(
                    "nobody is active after {passed:?} of peace, at most {bound:?}"
                ));
            }
            (true, Some(_)) if passed > bound => {
                return Err(format!("nobody is active any more after {passed:?} of peace"));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self, scene: &Scene<'_>) -> Result<(), String> {
        match (self.peace, self.open.is_empty()) {
            (Some(peace), true) => {
                Err(format!("nobody is active after {:?} of peace", scene.now - peace))
            }
            _ => Ok(()),
        }
    }
}
