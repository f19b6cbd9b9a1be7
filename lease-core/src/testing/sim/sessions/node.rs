//! A process of a world of sessions: the machine, real fences, and what waits for it.

use super::{
    super::{dice::Dice, node::Drawn},
    trace::Tenure,
};
use crate::{
    machine::{Past, RequestId},
    session::{Config, Reply, SessionMachine, SessionRules},
};
use fencing::{Epoch, Fence, FenceControl, Reading};
use std::collections::BTreeMap;

/// Something that reaches a process, and waits for it while it stands still.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// Its application gives a lease up that it waits for.
    GiveUp(usize),
    Persisted(RequestId, bool),
    Reply(RequestId, Reply),
    /// Its application has something to do.
    Work,
}

/// A fence, and what moves it until it was shut.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) epoch: Epoch,
    pub(super) control: Option<FenceControl>,
    pub(super) fence: Fence,
}

impl Moved {
    pub(super) fn new(epoch: Epoch, control: FenceControl) -> Self {
        Self { epoch, fence: control.fence(), control: Some(control) }
    }
}

/// A tenure that is not over, and its fence once that was opened.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) tenure: Tenure,
    pub(super) moved: Option<Moved>,
}

/// A running process.
#[derive(Debug)]
pub(super) struct Process<R: SessionRules> {
    pub(super) machine: SessionMachine<R>,
    pub(super) session: Option<Moved>,
    pub(super) leases: BTreeMap<usize, Held>,
    pub(super) entropy: Drawn,
    /// It stands still: what reaches it waits here.
    pub(super) is_paused: bool,
    pub(super) inbox: Vec<Input>,
    /// Which of the wake-ups that were ordered is the last.
    pub(super) wake_order: u64,
    /// It was told to stop.
    pub(super) is_stopping: bool,
}

impl<R: SessionRules> Process<R> {
    pub(super) fn new(config: Config, past: Past, now: Reading, dice: &mut Dice) -> Self {
        Self {
            machine: SessionMachine::new(config, past, now),
            session: None,
            leases: BTreeMap::new(),
            entropy: Drawn(dice.clone_apart()),
            is_paused: false,
            inbox: Vec::new(),
            wake_order: 0,
            is_stopping: false,
        }
    }
}
