//! What must hold in every world of sessions, one file each.
//!
//! | invariant | what it says | protocol |
//! | --- | --- | --- |
//! | [`OneOpenFence`] | at no true instant are two fences of one lease open | 7, 9 |
//! | [`EpochsGrow`] | in the order in which fences of a lease open, its epochs strictly increase | 5 |
//! | [`NoStaleWrite`] | the resource under a lease admits no write of a tenure older than one it admitted | 5 |
//! | [`UnderTheSession`] | the fence of a lease is never open while that of its session is shut | 9 |
//! | [`OneEnd`] | each tenure of a lease begins once, and ends exactly once | 4, 9 |
//! | [`BegunByAWrite`] | a tenure begins with the answer to a write of its own, the last to that key that was sent | 9 |
//! | [`SilentFirst`] | no session is ended by another before that one's own T has passed since the first answer that showed what stands there | 2, 9 |
//! | [`KeepsOut`] | whoever released a lease keeps out of it for 2R | 9 |
//! | [`FewRequests`] | a session that is watched is read at most once per R, and requests under way are bounded | 9 |
//! | [`OwnedInPeace`] | once nothing goes wrong, every lease that is wanted is held in time, and changes hands in time | 9 |
//!
//! Of a lease that was changed by hand in a way that the token alone covers
//! ([`Step::TokenAlone`]) the first three and the last claim nothing any more.

mod begun_by_a_write;
mod epochs_grow;
mod few_requests;
mod keeps_out;
mod no_stale_write;
mod one_end;
mod one_open_fence;
mod owned_in_peace;
mod silent_first;
mod under_the_session;

pub use begun_by_a_write::BegunByAWrite;
pub use epochs_grow::EpochsGrow;
pub use few_requests::FewRequests;
pub use keeps_out::KeepsOut;
pub use no_stale_write::NoStaleWrite;
pub use one_end::OneEnd;
pub use one_open_fence::OneOpenFence;
pub use owned_in_peace::OwnedInPeace;
pub use silent_first::SilentFirst;
pub use under_the_session::UnderTheSession;

use super::{setting::Setting, trace::Step};
use crate::{key::InstanceId, timing::Timing};
use fencing::Reading;
use std::{fmt, time::Duration};

/// Something that must hold after every step of a world of sessions.
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
pub(super) trait Hosts: fmt::Debug {
    fn reading(&self, host: usize) -> Reading;
    fn timing(&self, host: usize) -> Timing;
    fn instance(&self, host: usize) -> Option<&InstanceId>;
    fn is_wanted(&self, name: usize) -> bool;
}

impl Scene<'_> {
    /// What the clocks of a host show.
    #[must_use]
    pub fn reading(&self, host: usize) -> Reading {
        self.hosts.reading(host)
    }

    /// The timing of a host.
    #[must_use]
    pub fn timing(&self, host: usize) -> Timing {
        self.hosts.timing(host)
    }

    /// Whose directory a host has.
    #[must_use]
    pub fn instance(&self, host: usize) -> Option<&InstanceId> {
        self.hosts.instance(host)
    }

    /// Whether somebody waits for a lease in peace.
    #[must_use]
    pub fn is_wanted(&self, name: usize) -> bool {
        self.hosts.is_wanted(name)
    }
}

/// All of them.
pub(super) fn every() -> Vec<Box<dyn Invariant>> {
    vec![
        Box::new(OneOpenFence::default()),
        Box::new(EpochsGrow::default()),
        Box::new(NoStaleWrite::default()),
        Box::new(UnderTheSession::default()),
        Box::new(OneEnd::default()),
        Box::new(BegunByAWrite::default()),
        Box::new(SilentFirst::default()),
        Box::new(KeepsOut::default()),
        Box::new(FewRequests::default()),
        Box::new(OwnedInPeace::default()),
    ]
}
