//! Which fault meets which operation.

use super::{
    log::{Call, Outcome, Pending},
    release::{Hold, Late},
};
use crate::{key::ObjectKey, store::StoreErrorKind, testing::watched::Watched};
use std::{fmt, sync::Arc};

/// An operation of a [`LeaseStore`](crate::LeaseStore).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `create_if_absent`.
    Create,
    /// `read_versioned`.
    Read,
    /// `replace_if_match`.
    Replace,
}

impl Op {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Create, Self::Read, Self::Replace];
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create",
            Self::Read => "read",
            Self::Replace => "replace",
        })
    }
}

/// What happens to one operation.
///
/// "Applied" means that the wrapped store got it, and did what it does with it: a condition that
/// does not hold is refused there as ever.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// Applied, and an error of this kind is reported. With `InDoubt`: the reply got lost.
    ApplyThenFail(StoreErrorKind),
    /// Applied, and nothing is ever reported.
    ApplyThenHang,
    /// Applied, and reported when the hold is released.
    ApplyThenHold(Hold),
    /// Not applied, and an error of this kind is reported. (`Corrupt` on a read carries the version
    /// that the object really has.)
    Fail(StoreErrorKind),
    /// Not applied, and nothing is ever reported.
    Hang,
    /// Nothing is reported; applied when the test says so, also if the caller gave up long ago.
    HangAndLandLater(Late),
    /// Applied and reported when the hold is released; not at all if the caller gave up before.
    Hold(Hold),
    /// `InDoubt` is reported at once; applied when the test says so.
    LandLater(Late),
    /// Not applied; the operation panics.
    Panic,
    /// No fault: applied and reported as it is. For scripts in which a later operation fails, and
    /// for an exception to what [always](Faults::always) happens.
    Pass,
}

/// The faults of a [`FaultStore`](super::FaultStore), and the log of what it was asked. Clones share
/// both.
///
/// An operation meets the first fault that is scripted for it by [`next`](Self::next), which is
/// used up by that; if there is none, the last that [`always`](Self::always) happens to it; if there
/// is none either, it passes.
///
/// ```
/// use lease_core::{StoreErrorKind, testing::{Fault, FaultStore, MemoryStore, Op}};
///
/// let faults = FaultStore::new(MemoryStore::new()).faults();
/// faults.always(Op::Replace, Fault::Fail(StoreErrorKind::Unavailable));   // an outage of writes,
/// faults.next(Op::Replace, Fault::Pass);                                  // but not of the very next
/// assert_eq!((faults.left(), faults.count(Op::Replace)), (1, 0));
/// faults.clear();                                                         // it is over
/// ```
#[derive(Clone, Debug, Default)]
pub struct Faults {
    state: Arc<Watched<State>>,
}

#[derive(Debug, Default)]
struct State {
    next: Vec<Rule>,
    always: Vec<Rule>,
    calls: Vec<Call>,
}

#[derive(Debug)]
struct Rule {
    op: Op,
    /// `None`: whatever the key.
    key: Option<ObjectKey>,
    fault: Fault,
}

impl Rule {
    fn fits(&self, call: &Call) -> bool {
        self.op == call.op && self.key.as_ref().is_none_or(|key| *key == call.key)
    }
}

impl Faults {
    /// The next `op` that has no fault scripted yet meets `fault`, once.
    pub fn next(&self, op: Op, fault: Fault) {
        self.state.change(|state| state.next.push(Rule { op, key: None, fault }));
    }

    /// The same, for the next `op` on `key`.
    pub fn next_on(&self, key: &ObjectKey, op: Op, fault: Fault) {
        let key = Some(key.clone());
        self.state.change(|state| state.next.push(Rule { op, key, fault }));
    }

    /// From now on every `op` meets `fault`, unless [`next`](Self::next) says otherwise.
    pub fn always(&self, op: Op, fault: Fault) {
        self.state.change(|state| state.always.push(Rule { op, key: None, fault }));
    }

    /// The same, for every `op` on `key`.
    pub fn always_on(&self, key: &ObjectKey, op: Op, fault: Fault) {
        let key = Some(key.clone());
        self.state.change(|state| state.always.push(Rule { op, key, fault }));
    }

    /// From now on every operation meets `fault`, unless [`next`](Self::next) says otherwise.
    pub fn always_any(&self, fault: &Fault) {
        Op::ALL.into_iter().for_each(|op| self.always(op, fault.clone()));
    }

    /// Forgets all faults, scripted and permanent. The log stays; what is held or late stays so.
    pub fn clear(&self) {
        self.state.change(|state| {
            state.next.clear();
            state.always.clear();
        });
    }

    /// How many scripted faults no operation has met yet: a test ends with 0, or it tested less than
    /// it says.
    #[must_use]
    pub fn left(&self) -> usize {
        self.state.look(|state| state.next.len())
    }

    /// What was asked so far, in order, with what came of it.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.state.look(|state| state.calls.clone())
    }

    /// How many operations of this kind were asked for so far.
    #[must_use]
    pub fn count(&self, op: Op) -> usize {
        self.state.look(|state| state.count(op))
    }

    /// Waits until at least `n` operations have been asked for, since the beginning.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_for_calls(&self, n: usize) {
        self.state.until(|state| state.calls.len() >= n).await;
    }

    /// Waits until at least `n` operations of this kind have been asked for, since the beginning.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_for_calls_of(&self, op: Op, n: usize) {
        self.state.until(|state| state.count(op) >= n).await;
    }

    /// Waits until at least `n` operations have been answered or given up, since the beginning.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn wait_for_answers(&self, n: usize) {
        self.state.until(|state| state.answered() >= n).await;
    }

    /// Logs a call and picks the fault that it meets.
    pub(super) fn begin(&self, call: Call) -> (Pending, Fault) {
        let (index, fault) = self.state.change(|state| {
            let fault = state.take_fault(&call);
            state.calls.push(call);
            (state.calls.len() - 1, fault)
        });
        (Pending::new(self.clone(), index), fault)
    }

    /// Completes the log of a call.
    pub(super) fn note(&self, index: usize, note: impl FnOnce(&mut Call)) {
        self.state.change(|state| {
            if let Some(call) = state.calls.get_mut(index) {
                note(call);
            }
        });
    }
}

impl State {
    fn take_fault(&mut self, call: &Call) -> Fault {
        if let Some(index) = self.next.iter().position(|rule| rule.fits(call)) {
            return self.next.remove(index).fault;
        }
        let always = self.always.iter().rev().find(|rule| rule.fits(call));
        always.map_or(Fault::Pass, |rule| rule.fault.clone())
    }

    fn count(&self, op: Op) -> usize {
        self.calls.iter().filter(|call| call.op == op).count()
    }

    fn answered(&self) -> usize {
        self.calls.iter().filter(|call| call.outcome != Outcome::Pending).count()
    }
}
