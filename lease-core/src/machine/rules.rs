//! The rules of the protocol, each as a switch that a test can turn off.
//!
//! A check that catches no fault proves nothing. So the machine asks this trait at each place where
//! a rule acts, [`Protocol`] keeps them all, and the tests also run a machine that lacks exactly one
//! of them and demand that the check fails then. The switches are constants of a type parameter:
//! they cost nothing, and no feature flag can turn one off in somebody's build.

use std::{fmt, hash::Hash};

/// Which rules a machine keeps. Everything but [`Protocol`] is broken on purpose.
///
/// Each constant names the section of the protocol that its rule stands in.
pub trait Rules:
    Clone + Copy + PartialEq + Eq + Hash + fmt::Debug + Default + Send + Sync + 'static
{
    /// 2: the margin is at least T/5, also with a small R.
    const MARGIN_AT_LEAST_A_FIFTH: bool = true;
    /// 2: what is seen counts from anew after two reads that are more than 2R apart.
    const BLIND_GAP_RESTARTS: bool = true;
    /// 2: a standby waits at least for the ttl that the record says, or one that it read lately.
    const WAIT_COVERS_THE_RECORDS_TTL: bool = true;
    /// 2: a standby waits at least for the largest ttl that the cluster may have.
    const WAIT_COVERS_THE_CLUSTERS_TTL: bool = true;
    /// 2: every answer is preceded by the deadline check.
    const DEADLINE_COMES_FIRST: bool = true;
    /// 2: at the deadline itself the tenure is over.
    const DEADLINE_IS_HALF_OPEN: bool = true;
    /// 2: a renewal is valid from when it was sent, not from when it was answered.
    const VALID_FROM_SENDING: bool = true;
    /// 2: a version is seen from when the answer was held, not from when it was asked for.
    const SEEN_FROM_THE_ANSWER: bool = true;
    /// 3: one's own write is known by its nonce.
    const NONCE_DECIDES: bool = true;
    /// 3: a write in doubt that is found is adopted with its own time of sending.
    const ADOPTED_WITH_ITS_OWN_SENDING: bool = true;
    /// 3: a refused write is no loss while another of one's own may have landed.
    const DOUBT_IS_RESOLVED: bool = true;
    /// 3: after a conflict with a write in flight, a read tells.
    const CONFLICT_IS_LOOKED_INTO: bool = true;
    /// 4: the creator of a missing lease is held back for W.
    const CREATION_IS_HELD_BACK: bool = true;
    /// 4: a released lease is taken at once only if the release is shown to be the latest word.
    const RELEASE_NEEDS_EVIDENCE: bool = true;
    /// 4: a release of an epoch below a known one is waited out.
    const OLDER_RELEASE_IS_WAITED_OUT: bool = true;
    /// 4: the fence shuts before the release is written.
    const SHUT_BEFORE_THE_RELEASE: bool = true;
    /// 4: a lease that is still held back is never released.
    const HELD_BACK_IS_NEVER_RELEASED: bool = true;
    /// 4: the history is on disk before the fence opens.
    const HISTORY_BEFORE_OPENING: bool = true;
    /// 4: only an epoch that the history shows as opened is reclaimed.
    const RECLAIM_ONLY_WHAT_WAS_OPENED: bool = true;
    /// 4: a record of the same epoch by a clone is not reclaimed.
    const RECLAIM_ONLY_ONES_OWN_TENURE: bool = true;
    /// 5: a new epoch is above every acceptable one that was seen.
    const EPOCH_IS_ABOVE_WHAT_WAS_SEEN: bool = true;
    /// 5: a new epoch is not below the one that the clock gives.
    const CLOCK_IS_A_FLOOR: bool = true;
    /// 5: the epoch floor is asked once more before the fence opens.
    const FLOOR_BEFORE_OPENING: bool = true;
    /// 5: the epoch in an unacceptable record does not count.
    const UNACCEPTABLE_EPOCHS_ARE_IGNORED: bool = true;
    /// 6: what cannot be believed is waited out.
    const UNACCEPTABLE_IS_WAITED_OUT: bool = true;

    // ---- kept by who carries out what the machine wants; the simulator asks them ----

    /// 4: a takeover replaces only the version that was watched.
    const TAKEOVER_IS_CONDITIONAL: bool = true;
    /// 4: a release is a record with an empty holder; the object stays.
    const RELEASE_KEEPS_THE_OBJECT: bool = true;
    /// 4: what was opened under another directory's lock is not reclaimed.
    const RECLAIM_NEEDS_THE_SAME_LOCK: bool = true;
    /// 4: a fence that was shut never opens again.
    const FENCE_NEVER_OPENS_AGAIN: bool = true;
    /// 1: the fence looks at its own wall clock too.
    const WALL_CLOCK_IS_LOOKED_AT: bool = true;
}

/// All rules are kept. The only choice outside of tests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Protocol;

impl Rules for Protocol {}
