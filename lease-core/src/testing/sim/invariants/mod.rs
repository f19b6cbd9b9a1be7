//! What must hold in every world, one file each.
//!
//! | invariant | what it says | protocol |
//! | --- | --- | --- |
//! | [`OneOpenFence`] | at no true instant are two fences open | 7 |
//! | [`EpochsGrow`] | in the order in which fences open, epochs strictly increase | 5 |
//! | [`NoStaleWrite`] | the resource admits no write of a tenure older than one it admitted | 5 |
//! | [`ProvedFromSending`] | a deadline is never beyond S + T − M of a write that landed, and never moved once it passed | 2, 3 |
//! | [`ShutAtTheDeadline`] | at the deadline the fence is shut, and its owner is awake | 1, 2 |
//! | [`RecordedBeforeOpening`] | the history has the epoch before its fence opens | 4 |
//! | [`WaitedOut`] | what is held is taken no sooner than T after the first answer that showed it | 2 |
//! | [`ShutForGood`] | a fence that was seen shut never opens again | 4 |
//! | [`NoWriteAfterTheEnd`] | nothing is written under an epoch once it ended, nothing but a release once its fence was shut | 3, 4 |
//! | [`OneEnd`] | every tenure that was taken ends exactly once | 4 |
//! | [`LostOnlyWhatWasTaken`] | no tenure is told lost while the store has nothing but its own writes | 3 |
//! | [`SomebodyInPeace`] | once nothing goes wrong, somebody is active within T + 2R, and stays | 2, 4 |

mod epochs_grow;
mod lost_only_what_was_taken;
mod no_stale_write;
mod no_write_after_the_end;
mod one_end;
mod one_open_fence;
mod proved_from_sending;
mod recorded_before_opening;
mod shut_at_the_deadline;
mod shut_for_good;
mod somebody_in_peace;
mod waited_out;

pub use epochs_grow::EpochsGrow;
pub use lost_only_what_was_taken::LostOnlyWhatWasTaken;
pub use no_stale_write::NoStaleWrite;
pub use no_write_after_the_end::NoWriteAfterTheEnd;
pub use one_end::OneEnd;
pub use one_open_fence::OneOpenFence;
pub use proved_from_sending::ProvedFromSending;
pub use recorded_before_opening::RecordedBeforeOpening;
pub use shut_at_the_deadline::ShutAtTheDeadline;
pub use shut_for_good::ShutForGood;
pub use somebody_in_peace::SomebodyInPeace;
pub use waited_out::WaitedOut;

use super::{hazards::Setting, trace::Step};
use fencing::{Epoch, Fence, Reading};
use std::time::Duration;

/// Something that must hold after every step of a world.
pub trait Invariant {
    /// What it is called in a report.
    fn name(&self) -> &'static str;

    /// Looks at one step.
    ///
    /// # Errors
    ///
    /// What is wrong, in a sentence.
    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String>;

    /// Looks at the end of the world.
    ///
    /// # Errors
    ///
    /// What is wrong, in a sentence.
    fn finish(&mut self, _: &Scene<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// The world as it is when a step has been taken.
#[derive(Debug)]
pub struct Scene<'a> {
    /// True time since the world began.
    pub now: Duration,
    /// What it was built of.
    pub setting: &'a Setting,
    pub(super) hosts: &'a dyn Hosts,
}

/// What invariants see of the hosts.
pub(super) trait Hosts: std::fmt::Debug {
    fn reading(&self, host: usize) -> Reading;
    fn fence(&self, host: usize) -> Option<&Fence>;
    fn timing(&self, host: usize) -> crate::timing::Timing;
    fn recorded_epoch(&self, host: usize) -> Option<Epoch>;
}

impl Scene<'_> {
    /// What the clocks of a host show.
    #[must_use]
    pub fn reading(&self, host: usize) -> Reading {
        self.hosts.reading(host)
    }

    /// The fence that the process of a host has, if it has one.
    #[must_use]
    pub fn fence(&self, host: usize) -> Option<&Fence> {
        self.hosts.fence(host)
    }

    /// The last epoch that the history of a host has, on its disk.
    #[must_use]
    pub fn recorded_epoch(&self, host: usize) -> Option<Epoch> {
        self.hosts.recorded_epoch(host)
    }

    /// The timing of a host.
    #[must_use]
    pub fn timing(&self, host: usize) -> crate::timing::Timing {
        self.hosts.timing(host)
    }
}

/// All of them.
pub(super) fn every() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(OneOpenFence::default()),
        Box::new(EpochsGrow::default()),
        Box::new(NoStaleWrite::default()),
        Box::new(ProvedFromSending::default()),
        Box::new(ShutAtTheDeadline::default()),
        Box::new(RecordedBeforeOpening),
        Box::new(ShutForGood::default()),
        Box::new(NoWriteAfterTheEnd::default()),
        Box::new(OneEnd::default()),
        Box::new(LostOnlyWhatWasTaken::default()),
        Box::<WaitedOut>::default(),
        Box::new(SomebodyInPeace::default()),
    ]
}
