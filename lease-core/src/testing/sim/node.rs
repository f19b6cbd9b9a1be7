//! One host of a world: its clocks, its process, its disk, and its way to the store.

use super::{application::Application, clock::HostClock, dice::Dice, link::Link, trace::Tenure};
use crate::{
    key::InstanceId,
    machine::{Config, Entropy, Machine, Note, Past, Reply, RequestId, Rules},
    record::{Nonce, TenureMark},
    store::StoreErrorKind,
    timing::Timing,
};
use fencing::{Epoch, Fence, FenceControl};
use std::{fmt, time::Duration};

/// What an application asked for.
pub(super) enum Wish {
    Abandon,
    Confirm,
    GateWrite(Duration, Tenure),
    Release,
    Wake(Duration, u64),
    Write(Duration, Box<dyn FnOnce() -> Result<(), String>>),
}

impl fmt::Debug for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wish")
    }
}

/// Something that reaches a process, and waits for it while it stands still.
pub(super) enum Input {
    Floor(RequestId, Result<Option<Epoch>, StoreErrorKind>),
    Persisted(RequestId, bool),
    Reply(RequestId, Reply),
    Timer(u64),
}

/// The directory of an instance: what survives its process.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) instance: InstanceId,
    pub(super) past: Past,
    /// The tenure whose fence was opened by a process that had this very directory locked.
    opened_here: Option<TenureMark>,
}

impl Directory {
    pub(super) fn new(instance: InstanceId) -> Self {
        Self { instance, past: Past::default(), opened_here: None }
    }

    pub(super) fn write(&mut self, note: &Note) {
        self.past.last_epoch = self.past.last_epoch.max(note.opened.map(|tenure| tenure.epoch));
        self.opened_here = note.opened.or(self.opened_here);
        self.past.last_release = note.release.or(self.past.last_release);
        self.past.seen_authenticated |= note.seen_authenticated;
        self.past.largest_ttl = self.past.largest_ttl.max(note.largest_ttl);
    }

    /// A copy of the files. What was locked here is not locked there.
    pub(super) fn copied<R: Rules>(&self) -> Self {
        let opened_here = self.opened_here.filter(|_| !R::RECLAIM_NEEDS_THE_SAME_LOCK);
        Self { opened_here, ..self.clone() }
    }

    /// What a process that starts here is told.
    pub(super) fn told(&self, reclaim: bool) -> Past {
        Past { reclaimable: self.opened_here.filter(|_| reclaim), ..self.past.clone() }
    }
}

pub(super) struct Node<P> {
    pub(super) timing: Timing,
    pub(super) clock: HostClock,
    pub(super) directory: Directory,
    pub(super) disk_works: bool,
    pub(super) link: Link,
    pub(super) floor_works: bool,
    /// How often a process was started here; what was meant for an earlier one is lost.
    pub(super) starts: u32,
    pub(super) process: Option<P>,
}

impl<P> Node<P> {
    /// A host without a process, from which the store is reached well.
    pub(super) fn new(timing: Timing, clock: HostClock, directory: Directory) -> Self {
        let link = Link::calm(timing.renew() / 25);
        Self {
            timing,
            clock,
            directory,
            disk_works: true,
            link,
            floor_works: true,
            starts: 0,
            process: None,
        }
    }
}

impl<P> fmt::Debug for Node<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// A running process.
pub(super) struct Process<R: Rules> {
    pub(super) machine: Machine<R>,
    pub(super) application: Box<dyn Application>,
    pub(super) tenure: Option<Tenure>,
    pub(super) control: Option<FenceControl>,
    pub(super) fence: Option<Fence>,
    pub(super) entropy: Drawn,
    /// It stands still: what reaches it waits here.
    pub(super) is_paused: bool,
    pub(super) inbox: Vec<Input>,
    /// Which of the wake-ups that were ordered is the last.
    pub(super) wake_order: u64,
}

impl<R: Rules> Process<R> {
    pub(super) fn new(
        config: Config,
        past: Past,
        application: Box<dyn Application>,
        now: fencing::Reading,
        dice: &mut Dice,
    ) -> Self {
        Self {
            machine: Machine::new(config, past, now),
            application,
            tenure: None,
            control: None,
            fence: None,
            entropy: Drawn(dice.clone_apart()),
            is_paused: false,
            inbox: Vec::new(),
            wake_order: 0,
        }
    }
}

/// Nonces for one process, apart from every other.
#[derive(Debug)]
pub(super) struct Drawn(pub(super) Dice);

impl Entropy for Drawn {
    fn nonce(&mut self) -> Nonce {
        let halves = [self.0.roll(), self.0.roll()];
        let mut bytes = [0; 16];
        for (half, into) in halves.iter().zip(bytes.chunks_exact_mut(8)) {
            into.copy_from_slice(&half.to_be_bytes());
        }
        Nonce::from_bytes(bytes)
    }
}
