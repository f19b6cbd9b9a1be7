//! Which lives of a session are over, as its object shows: what frees a lease.

use super::{
    facts::{Life, SessionFacts, SessionState},
    rules::SessionRules,
};
use crate::record::Nonce;
use fencing::Epoch;

/// Every life before this one is over; and this one too, if it is named.
///
/// It is a fact for ever: no life that is over begins again. So it does not matter when it was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Ended {
    before: Epoch,
    and: Option<Nonce>,
}

impl Ended {
    /// A kill or a release of this life: it and every earlier one.
    pub(super) fn with(life: Life) -> Self {
        Self { before: life.epoch, and: Some(life.nonce) }
    }

    /// What an acceptable session object shows (protocol, section 9).
    pub(super) fn shown_by<R: SessionRules>(facts: &SessionFacts) -> Option<Self> {
        let life = Life { epoch: facts.lease.epoch, nonce: facts.life };
        match facts.state {
            SessionState::Killed | SessionState::Released => Some(Self::with(life)),
            SessionState::HeldBack if R::HELD_BACK_LIFE_FREES_NOTHING => None,
            SessionState::HeldBack | SessionState::Live => {
                Some(Self { before: life.epoch, and: None })
            }
            SessionState::Tombstone if R::TOMBSTONE_FREES_NOTHING => None,
            SessionState::Tombstone => Some(Self { before: Epoch::MAX, and: None }),
        }
    }

    pub(super) fn covers<R: SessionRules>(&self, life: Life) -> bool {
        let is_later = life.epoch < self.before;
        let is_itself = life.epoch == self.before && self.and == Some(life.nonce);
        is_later || is_itself || !R::ONLY_A_LATER_LIFE_FREES
    }

    /// Both facts, as far as one value can say it.
    pub(super) fn merge(before: Option<Self>, other: Self) -> Self {
        match before {
            Some(it) if it.before > other.before => it,
            Some(it) if it.before == other.before && it.and.is_some() => it,
            _ => other,
        }
    }
}
