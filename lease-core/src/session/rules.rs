//! The rules of section 9, each as a switch that a test can turn off.

use crate::machine::{Protocol, Rules};

/// Which rules of sessions a machine keeps. Everything but [`Protocol`] is broken on purpose.
///
/// All of them stand in section 9 of the protocol. See [`Rules`] for why they are constants.
pub trait SessionRules: Rules {
    /// A session object that shows an earlier life than the lease names frees nothing.
    const ONLY_A_LATER_LIFE_FREES: bool = true;
    /// A life that is itself held back frees nothing of an earlier one.
    const HELD_BACK_LIFE_FREES_NOTHING: bool = true;
    /// A tombstone frees nothing, whatever life it names.
    const TOMBSTONE_FREES_NOTHING: bool = true;
    /// A session object that cannot be believed frees nothing.
    const UNACCEPTABLE_SESSION_FREES_NOTHING: bool = true;
    /// A session object that is missing is replaced by a tombstone, and waited for, before anything
    /// under it is taken.
    const MISSING_SESSION_GETS_A_TOMBSTONE: bool = true;
    /// A session object is watched for W, not only for R.
    const SESSION_IS_WATCHED_FOR_W: bool = true;
    /// A session that was silent for W is killed before anything under it is taken.
    const KILL_BEFORE_TAKE: bool = true;
    /// A tenure begins with a write of one's own, never with reading one's own record.
    const TENURE_NEEDS_A_WRITE: bool = true;
    /// A release in doubt is repeated, on the same condition, until it is certain.
    const RELEASE_IS_REPEATED: bool = true;
    /// An acquisition that was given up while in doubt is followed until it can land no more.
    const GIVEN_UP_IS_FOLLOWED: bool = true;
    /// Whoever released a lease keeps out of it for 2R.
    const KEEPS_OUT_AFTER_RELEASE: bool = true;
    /// With audit: the fence of a lease shuts A + R after the last read that showed it was sent.
    const AUDIT_SHUTS_THE_FENCE: bool = true;
    /// With audit: who takes a lease that is missing or cannot be believed is held back A + R + W,
    /// where W is at least a fifth of A + R.
    const AUDIT_HOLDS_BACK: bool = true;
    /// With audit: a lease that was taken held back says so, and whoever takes it from there is held
    /// back as well.
    const HOLD_BACK_IS_HANDED_ON: bool = true;

    // ---- kept by who carries out what the machine wants; a test asks it ----

    /// The fence of a lease is shut as soon as that of its session is.
    const LEASES_END_WITH_THE_SESSION: bool = true;
}

impl SessionRules for Protocol {}
