//! What a standby sees, and since when: the observation that a takeover rests on.
//!
//! ```text
//!  read: V          read: V          read: V   ...   O + W: replace if it is still V
//!  O ───────────────────────────────────────────────►
//!  restarts when the version or epoch changes, or when two reads were more than 2R apart
//! ```

use super::{
    config::TrustRelease,
    core::{Core, LastSnapshot, Retaking},
    event::{LeaseSeen, Predecessor, WaitReason},
    io::{Facts, Sighting},
    rules::Rules,
};
use crate::{auth::Verdict, store::Version};
use fencing::{Epoch, MonotonicTime};
use std::{sync::Arc, time::Duration};

/// One state of the lease, and since when this standby has seen it without a break.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Seen {
    what: What,
    /// O: when an answer that showed it was first held.
    since: MonotonicTime,
    /// When the last such answer was held.
    last_shown: MonotonicTime,
    /// 0 to R/10, drawn when O started.
    jitter: Duration,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum What {
    Missing,
    Lease(Lease),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Lease {
    version: Version,
    verdict: Verdict,
    facts: Option<Arc<Facts>>,
    /// How old the version is on the store's clock, as last told.
    age: Option<Duration>,
    /// It is a release, and shown to be the latest word.
    trusted_release: bool,
}

/// See [`Seen::lineage`].
#[derive(PartialEq, Eq)]
pub(super) enum Lineage {
    Epoch(Epoch),
    Missing,
    Untrusted(Version),
}

/// What an answer to a read shows.
pub(super) enum Shown {
    Missing,
    Lease { version: Version, verdict: Verdict, facts: Option<Arc<Facts>>, age: Option<Duration> },
}

impl Shown {
    /// `None`: "not modified", which says nothing without the version that was asked about.
    pub(super) fn of(sighting: Sighting) -> Option<Self> {
        match sighting {
            Sighting::Found { version, verdict, facts, age } => {
                Some(Self::Lease { version, verdict, facts, age })
            }
            Sighting::Missing => Some(Self::Missing),
            Sighting::NotModified => None,
        }
    }
}

/// From when the lease may be taken, and how.
pub(super) struct Opening {
    pub(super) due: MonotonicTime,
    /// What is being waited for until then.
    pub(super) waiting_for: WaitReason,
    /// For how long the fence has to stay shut after the acquisition is known.
    pub(super) hold_back: Option<Duration>,
    pub(super) predecessor: Predecessor,
}

impl Seen {
    /// Takes in what a read shows at `now`. `restart`: O starts anew in any case. `lag`: how long ago
    /// what is new may have been written.
    pub(super) fn update<R: Rules>(
        before: Option<Self>,
        core: &mut Core<R>,
        shown: Shown,
        restart: bool,
        lag: Duration,
        now: MonotonicTime,
    ) -> Self {
        let is_gap = before.as_ref().is_some_and(|seen| !seen.is_fresh(core, now));
        let what = match shown {
            Shown::Missing => What::Missing,
            Shown::Lease { version, verdict, facts, age } => {
                let lease = Lease { version, verdict, facts, age, trusted_release: false };
                let unbroken = before.as_ref().filter(|_| !restart);
                let trusted_release = lease.is_trusted_release(core, unbroken, now);
                What::Lease(Lease { trusted_release, ..lease })
            }
        };
        let is_same = before.as_ref().is_some_and(|seen| seen.what.is_same(&what));
        match before {
            Some(seen) if is_same && !restart && !(is_gap && R::BLIND_GAP_RESTARTS) => {
                Self { what, last_shown: now, ..seen }
            }
            _ => Self { what, since: now, last_shown: now, jitter: core.draw_jitter(lag) },
        }
    }

    /// The same again, as an answer "not modified" shows it.
    pub(super) fn again(&self) -> Shown {
        match &self.what {
            What::Missing => Shown::Missing,
            What::Lease(Lease { version, verdict, facts, .. }) => Shown::Lease {
                version: version.clone(),
                verdict: *verdict,
                facts: facts.clone(),
                age: None,
            },
        }
    }

    /// Whether it was shown at most 2R ago: after a longer gap, something else may have been there.
    pub(super) fn is_fresh<R: Rules>(&self, core: &Core<R>, now: MonotonicTime) -> bool {
        now - self.last_shown <= core.config.timing.renew() * 2
    }

    /// O moved to `since`, for a machine that lacks the rule that it is the time of the answer.
    pub(super) fn since(self, since: MonotonicTime) -> Self {
        Self { since, ..self }
    }

    pub(super) fn version(&self) -> Option<&Version> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => Some(&lease.version),
        }
    }

    /// Somebody holds it, so it is renewed.
    pub(super) fn is_renewed<R: Rules>(&self, core: &Core<R>) -> bool {
        self.acceptable(core).is_some_and(|facts| facts.holder.is_some())
    }

    /// How old the version was when it was last shown, where the store tells.
    pub(super) fn age(&self) -> Option<Duration> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => lease.age,
        }
    }

    pub(super) fn started_at(&self) -> MonotonicTime {
        self.since
    }

    pub(super) fn facts(&self) -> Option<&Arc<Facts>> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => lease.facts.as_ref(),
        }
    }

    pub(super) fn verdict(&self) -> Option<Verdict> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => Some(lease.verdict),
        }
    }

    /// What a told epoch floor stays good for: snapshots of an epoch prove no larger one, so while
    /// the lease shows the same epoch it need not be asked again.
    pub(super) fn lineage<R: Rules>(&self, core: &Core<R>) -> Lineage {
        match (&self.what, self.acceptable(core)) {
            (What::Missing, _) => Lineage::Missing,
            (What::Lease(_), Some(facts)) => Lineage::Epoch(facts.epoch),
            (What::Lease(lease), None) => Lineage::Untrusted(lease.version.clone()),
        }
    }

    /// The snapshot it names, if it can be believed.
    pub(super) fn last_snapshot<R: Rules>(&self, core: &Core<R>) -> LastSnapshot {
        self.acceptable(core).and_then(|facts| facts.last_snapshot.clone())
    }

    /// What is there, for people.
    pub(super) fn summary<R: Rules>(&self, core: &Core<R>) -> LeaseSeen {
        match (&self.what, self.acceptable(core)) {
            (What::Missing, _) => LeaseSeen::Missing,
            (What::Lease(lease), None) => LeaseSeen::Untrusted { verdict: lease.verdict },
            (What::Lease(_), Some(facts)) => match &facts.holder {
                Some(holder) => LeaseSeen::Held { holder: holder.clone(), epoch: facts.epoch },
                None => LeaseSeen::Released { epoch: facts.epoch },
            },
        }
    }

    /// What is taken again, with what stood there before one's own.
    pub(super) fn retaking<'a, R: Rules>(&self, core: &'a Core<R>) -> Option<&'a Retaking> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => lease.retaking(core),
        }
    }

    /// From when this instance may take it, and how (protocol, section 4).
    pub(super) fn opening<R: Rules>(&self, core: &Core<R>, now: MonotonicTime) -> Opening {
        let timing = &core.config.timing;
        let unknown = core.known.wait_unknown(timing, now);
        let waited_out = |wait: Duration, waiting_for, predecessor| Opening {
            due: self.since + wait + self.jitter,
            waiting_for,
            hold_back: None,
            predecessor,
        };
        let at_once = |hold_back: Option<Duration>, predecessor| Opening {
            due: self.since,
            waiting_for: WaitReason::Store,
            hold_back,
            predecessor,
        };
        let lease = match &self.what {
            What::Missing => return at_once(creation_hold_back(core, now), Predecessor::Missing),
            What::Lease(lease) => lease,
        };
        if let Some(retaking) = lease.retaking(core) {
            return at_once(None, retaking.predecessor.clone());
        }
        let Some(facts) = lease.acceptable(core) else {
            let predecessor = Predecessor::Untrusted { verdict: lease.verdict };
            let unknown = if R::UNACCEPTABLE_IS_WAITED_OUT { unknown } else { Duration::ZERO };
            return waited_out(unknown, WaitReason::UntrustedLease, predecessor);
        };
        let (epoch, wait) = (facts.epoch, core.known.wait(timing, facts.ttl, now));
        match &facts.holder {
            Some(holder) if lease.is_reclaimable(core) => {
                debug_assert_eq!(*holder, core.config.instance);
                at_once(None, Predecessor::Reclaimed { epoch })
            }
            Some(holder) => {
                let predecessor = Predecessor::Expired { holder: holder.clone(), epoch };
                waited_out(wait, WaitReason::Holder, predecessor)
            }
            None => {
                let predecessor = Predecessor::Released { epoch };
                let is_older = core.known.highest_epoch() > Some(epoch);
                if is_older && R::OLDER_RELEASE_IS_WAITED_OUT {
                    waited_out(unknown, WaitReason::UntrustedLease, predecessor)
                } else if lease.trusted_release {
                    at_once(None, predecessor)
                } else {
                    let left = unknown.saturating_sub(lease.age.unwrap_or_default());
                    at_once(Some(left).filter(|left| !left.is_zero()), predecessor)
                }
            }
        }
    }

    fn acceptable<R: Rules>(&self, core: &Core<R>) -> Option<&Arc<Facts>> {
        match &self.what {
            What::Missing => None,
            What::Lease(lease) => lease.acceptable(core),
        }
    }

    /// Whether this showed `epoch` held, at most 2R before `now`.
    fn just_showed_held<R: Rules>(&self, core: &Core<R>, epoch: Epoch, now: MonotonicTime) -> bool {
        let held = self.acceptable(core).filter(|facts| facts.holder.is_some());
        self.is_fresh(core, now) && held.is_some_and(|facts| facts.epoch == epoch)
    }
}

impl What {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Missing, Self::Missing) => true,
            (Self::Lease(a), Self::Lease(b)) => a.is_same(b),
            _ => false,
        }
    }
}

impl Lease {
    fn is_same(&self, other: &Self) -> bool {
        let epoch = |lease: &Self| lease.facts.as_ref().map(|facts| facts.epoch);
        self.version == other.version && epoch(self) == epoch(other)
    }

    fn acceptable<R: Rules>(&self, core: &Core<R>) -> Option<&Arc<Facts>> {
        self.facts.as_ref().filter(|_| core.known.accepts(&core.config, self.verdict))
    }

    /// It is one's own, given up only since its epoch was too low (signed or not: the nonce tells).
    fn retaking<'a, R: Rules>(&self, core: &'a Core<R>) -> Option<&'a Retaking> {
        let facts = self.facts.as_ref().filter(|facts| core.known.is_own_write(facts))?;
        core.retaking.as_ref().filter(|retaking| retaking.epoch == facts.epoch)
    }

    /// Held by this very instance before it was restarted, and proved so by its history.
    fn is_reclaimable<R: Rules>(&self, core: &Core<R>) -> bool {
        self.acceptable(core).is_some_and(|facts| {
            facts.holder.as_ref() == Some(&core.config.instance)
                && !core.known.is_own_write(facts)
                && core.known.reclaimable(facts)
        })
    }

    /// Whether something shows that this release is the latest word on the lease: otherwise it may
    /// be an old record that was put back while somebody else holds the lease. `before`: what was
    /// seen before, unless it is known that something else was there in between.
    fn is_trusted_release<R: Rules>(
        &self,
        core: &Core<R>,
        before: Option<&Seen>,
        now: MonotonicTime,
    ) -> bool {
        let Some(facts) = self.acceptable(core).filter(|facts| facts.holder.is_none()) else {
            return false;
        };
        let wait = core.known.wait_unknown(&core.config.timing, now);
        let was_trusted = before.is_some_and(|seen| {
            let same =
                matches!(&seen.what, What::Lease(it) if it.trusted_release && it.is_same(self));
            same && seen.is_fresh(core, now)
        });
        was_trusted
            || before.is_some_and(|seen| seen.just_showed_held(core, facts.epoch, now))
            || core.known.is_own_release(facts)
            || self.age.is_some_and(|age| age >= wait)
            || core.config.trust_release == TrustRelease::Always
            || !R::RELEASE_NEEDS_EVIDENCE
    }
}

/// Absence has no version: a lease that was deleted by hand leaves its holder's fence open for up to
/// T − M more, and waiting *before* the create does not help (deleted, created by another, deleted
/// again). So the creator waits after it.
fn creation_hold_back<R: Rules>(core: &Core<R>, now: MonotonicTime) -> Option<Duration> {
    use super::config::FirstStart;
    let told_new = core.config.first_start == FirstStart::Immediate && core.known.is_untouched();
    if told_new || !R::CREATION_IS_HELD_BACK {
        return None;
    }
    Some(core.known.wait_unknown(&core.config.timing, now))
}
