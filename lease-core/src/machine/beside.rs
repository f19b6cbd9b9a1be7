//! What the machine of a session asks of the machine that keeps the session itself.

use super::{Machine, RequestId, Rules, State};
use crate::auth::Verdict;
use fencing::MonotonicTime;
use std::time::Duration;

impl<R: Rules> Machine<R> {
    /// A number for a request of its own, told from all of this machine.
    pub(crate) fn next_id(&mut self) -> RequestId {
        self.core.next_id()
    }

    /// Takes in the verdict and the ttl of another record of the cluster. Whether it can be believed.
    pub(crate) fn learn_beside(
        &mut self,
        verdict: Verdict,
        ttl: Option<Duration>,
        now: MonotonicTime,
    ) -> bool {
        self.core.learn_beside(verdict, ttl, now)
    }

    /// Whether something of this verdict can be believed.
    pub(crate) fn accepts(&self, verdict: Verdict) -> bool {
        self.core.known.accepts(&self.core.config, verdict)
    }

    /// A record of one's own was signed, and is in the store.
    pub(crate) fn learn_authenticated(&mut self) {
        self.core.learn_authenticated();
    }

    /// W for something that says `ttl`, or for something that says none.
    pub(crate) fn wait(&self, ttl: Option<Duration>, now: MonotonicTime) -> Duration {
        let timing = &self.core.config.timing;
        match ttl {
            Some(ttl) => self.core.known.wait(timing, ttl, now),
            None => self.core.known.wait_unknown(timing, now),
        }
    }

    /// Whether the lease is held back, or being taken so.
    pub(crate) fn is_held_back(&self, now: MonotonicTime) -> bool {
        match &self.state {
            State::Holding(holding) => holding.is_held_back(now),
            State::Standby(standby) => standby.is_taking_held_back(),
            State::Refused | State::Stopped => false,
        }
    }
}
