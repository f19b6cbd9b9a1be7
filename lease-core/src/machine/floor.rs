//! The epoch floor, asked once more before the fence opens.
//!
//! The floor that an acquisition waited for was told before it. Until its fence shuts, a holder that
//! nobody here ever saw (its lease was deleted, garbled, or an older one put back over it) can still
//! open and write snapshots under a number that the floor did not show yet. Once the lease is taken
//! and no hold-back is left, no such holder is open any more: what is told from then on is the last
//! word.

use super::{
    Transition,
    core::{Core, Retaking},
    event::{AbandonReason, Attempted, EndReason},
    holding::{Holding, Stage},
    io::{Action, RequestId},
    rules::Rules,
};
use crate::store::StoreErrorKind;
use fencing::{Epoch, MonotonicTime};

/// How far the question has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum FloorCheck {
    /// To be asked from `due` on; given up at `until`, if it was asked before.
    Ask {
        due: MonotonicTime,
        until: Option<MonotonicTime>,
    },
    Asked {
        id: RequestId,
        until: MonotonicTime,
    },
    /// No epoch as large as one's own is proved by anything.
    Proved,
}

impl FloorCheck {
    pub(super) fn new<R: Rules>(core: &Core<R>, now: MonotonicTime) -> Self {
        match core.config.has_floor && R::FLOOR_BEFORE_OPENING {
            true => Self::Ask { due: now, until: None },
            false => Self::Proved,
        }
    }

    pub(super) fn is_proved(self) -> bool {
        self == Self::Proved
    }

    pub(super) fn is_asked(self) -> bool {
        matches!(self, Self::Asked { .. })
    }

    /// It could not be told within the takeover's budget.
    pub(super) fn is_overdue(self, now: MonotonicTime) -> bool {
        self.until().is_some_and(|until| until <= now)
    }

    fn until(self) -> Option<MonotonicTime> {
        match self {
            Self::Ask { until, .. } => until,
            Self::Asked { until, .. } => Some(until),
            Self::Proved => None,
        }
    }
}

impl Holding {
    pub(super) fn floor_action<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        now: MonotonicTime,
    ) -> Option<Action> {
        let FloorCheck::Ask { due, until } = self.floor else { return None };
        if !self.is_before_opening() || self.is_held_back(now) || now < due {
            return None;
        }
        let id = core.next_id();
        let until = until.unwrap_or(now + core.config.takeover_budget);
        self.floor = FloorCheck::Asked { id, until };
        Some(Action::FetchFloor(id))
    }

    pub(super) fn floor_told<R: Rules>(
        &mut self,
        core: &mut Core<R>,
        id: RequestId,
        told: Result<Option<Epoch>, StoreErrorKind>,
        now: MonotonicTime,
    ) -> Option<Transition> {
        let FloorCheck::Asked { id: asked, until } = self.floor else { return None };
        if asked != id {
            return None;
        }
        match told {
            Ok(floor) => {
                core.learn_floor(floor);
                if floor >= Some(self.epoch) {
                    // Its fence never opened, so it may take its own lease again at once, under a
                    // larger number. Released, that lease would look like an old one put back.
                    core.retaking = Some(Retaking {
                        epoch: self.epoch,
                        predecessor: self.predecessor.clone(),
                        inherited: self.inherited.clone(),
                    });
                    let reason = EndReason::Abandoned(AbandonReason::EpochFloor);
                    return Some(self.end(core, reason, now));
                }
                self.floor = FloorCheck::Proved;
            }
            Err(error) => {
                core.failed(Attempted::EpochFloor, error);
                let due = now + core.config.timing.renew();
                self.floor = FloorCheck::Ask { due, until: Some(until) };
            }
        }
        None
    }

    pub(super) fn floor_timeout(&self) -> Option<MonotonicTime> {
        if !self.is_before_opening() {
            return None;
        }
        let ask = match self.floor {
            FloorCheck::Ask { due, .. } => {
                Some(self.held_back_until.map_or(due, |held_back| held_back.max(due)))
            }
            FloorCheck::Asked { .. } | FloorCheck::Proved => None,
        };
        [ask, self.floor.until()].into_iter().flatten().min()
    }

    fn is_before_opening(&self) -> bool {
        matches!(self.stage, Stage::TakingOver { .. })
    }
}
