//! Once nothing goes wrong, every lease that somebody waits for is held in time; and when it is given
//! back, it is held by the next in time. No lease is left to nobody for ever.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Move, Step, Tenure};
use std::time::Duration;

/// Once nothing goes wrong, every lease that somebody waits for is held in time; and when it is given back, it is held by the next in time. The bounds are [`Setting::owned_within`] and
/// [`Setting::handed_over_within`], where they are derived.
///
/// [`Setting::owned_within`]: crate::testing::sim::sessions::Setting::owned_within
/// [`Setting::handed_over_within`]: crate::testing::sim::sessions::Setting::handed_over_within
#[derive(Debug, Default)]
pub struct OwnedInPeace {
    peace: Option<Duration>,
    open: Vec<Tenure>,
    /// Since when each lease is held by nobody; the world begins so.
    free_since: Vec<Option<Duration>>,
    token_alone: Vec<usize>,
}

impl OwnedInPeace {
    /// Leases that became free or held at this step.
    fn follow(&mut self, now: Duration, names: usize) {
        self.free_since.resize(names, Some(Duration::ZERO));
        for (name, free_since) in self.free_since.iter_mut().enumerate() {
            let is_held = self.open.iter().any(|open| open.name == name);
            match is_held {
                true => *free_since = None,
                false => *free_since = free_since.or(Some(now)),
            }
        }
    }

    fn check(&self, scene: &Scene<'_>) -> Result<(), String> {
        let Some(peace) = self.peace else { return Ok(()) };
        let owned_by = peace + scene.setting.owned_within();
        for (name, since) in self.free_since.iter().enumerate() {
            let Some(since) = since.filter(|_| scene.is_wanted(name)) else { continue };
            let by = owned_by.max(since + scene.setting.handed_over_within());
            if scene.now > by && !self.token_alone.contains(&name) {
                return Err(format!(
                    "lease {name} is wanted, and held by nobody {:?} after peace began; free for {:?}",
                    scene.now - peace,
                    scene.now - since
                ));
            }
        }
        Ok(())
    }
}

impl Invariant for OwnedInPeace {
    fn name(&self) -> &'static str {
        "owned in peace"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::LeaseFence { tenure, moved: Move { opens: true, accepted: true, .. } } => {
                self.open.push(*tenure);
            }
            Step::LeaseShut { tenure } | Step::Ended { tenure, .. } => {
                self.open.retain(|open| open != tenure);
            }
            Step::SessionShut { host, .. } | Step::Died { host } => {
                self.open.retain(|open| open.host != *host);
            }
            Step::Peace => self.peace = Some(scene.now),
            Step::TokenAlone { name } => self.token_alone.push(*name),
            // Nothing that matters here; and a host rests after whatever it does.
            Step::Rested { .. } => return self.check(scene),
            _ => return Ok(()),
        }
        self.follow(scene.now, scene.setting.names);
        Ok(())
    }

    fn finish(&mut self, scene: &Scene<'_>) -> Result<(), String> {
        self.follow(scene.now, scene.setting.names);
        self.check(scene)
    }
}
