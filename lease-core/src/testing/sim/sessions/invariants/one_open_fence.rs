//! At no true instant are two fences of one lease open.

use super::{Invariant, Scene};
use crate::testing::sim::sessions::trace::{Move, Step, Tenure};
use fencing::{MonotonicTime, Reading, WallTime};
use std::{collections::BTreeMap, time::Duration};

/// See the [module](super). It keeps deadlines of its own, apart from the fences.
///
/// A lease is open while its own deadline and that of its session are ahead, by both clocks of its
/// host, also if that host stands still. An overlap begins when one of them is opened or extended, so it
/// looks at all others then.
#[derive(Debug, Default)]
pub struct OneOpenFence {
    sessions: BTreeMap<usize, Limits>,
    open: Vec<(Tenure, Limits)>,
    token_alone: Vec<usize>,
}

/// Until when something is open, by both clocks of its host.
#[derive(Clone, Copy, Debug)]
struct Limits {
    deadline: MonotonicTime,
    wall: WallTime,
}

impl Limits {
    fn of(sent: Reading, window: Duration) -> Self {
        Self { deadline: sent.monotonic + window, wall: sent.wall + window }
    }

    fn are_ahead(self, now: Reading) -> bool {
        now.monotonic < self.deadline && now.wall < self.wall
    }
}

impl OneOpenFence {
    fn is_open(&self, (tenure, own): &(Tenure, Limits), scene: &Scene<'_>) -> bool {
        let now = scene.reading(tenure.host);
        let session = self.sessions.get(&tenure.host);
        own.are_ahead(now) && session.is_some_and(|session| session.are_ahead(now))
    }

    /// Whether another is open for the same lease as something of this host.
    fn overlap(&self, host: usize, scene: &Scene<'_>) -> Result<(), String> {
        for this in self.open.iter().filter(|(tenure, _)| tenure.host == host) {
            let name = this.0.name;
            let mut others =
                self.open.iter().filter(|(it, _)| it.name == name && it.number != this.0.number);
            let other = others.find(|other| self.is_open(other, scene));
            if let Some((other, _)) = other
                && self.is_open(this, scene)
                && !self.token_alone.contains(&name)
            {
                return Err(format!("{} is open, and so is {other}", this.0));
            }
        }
        Ok(())
    }
}

impl Invariant for OneOpenFence {
    fn name(&self) -> &'static str {
        "one open fence"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::SessionFence {
                host, moved: Move { sent, window, accepted: true, .. }, ..
            } => {
                self.sessions.insert(*host, Limits::of(*sent, *window));
                return self.overlap(*host, scene);
            }
            Step::LeaseFence { tenure, moved: Move { sent, window, accepted: true, .. } } => {
                self.open.retain(|(open, _)| open != tenure);
                self.open.push((*tenure, Limits::of(*sent, *window)));
                return self.overlap(tenure.host, scene);
            }
            Step::SessionShut { host, .. } => drop(self.sessions.remove(host)),
            Step::LeaseShut { tenure } | Step::Ended { tenure, .. } => {
                self.open.retain(|(open, _)| open != tenure);
            }
            Step::Died { host } => {
                self.sessions.remove(host);
                self.open.retain(|(open, _)| open.host != *host);
            }
            Step::TokenAlone { name } => self.token_alone.push(*name),
            _ => {}
        }
        Ok(())
    }
}
