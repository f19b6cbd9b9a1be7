//! What one process is held to, by somebody who sees what became of its writes.

use fencing::{Epoch, Fence, MonotonicTime, Reading};
use lease_core::machine::{Draft, Event, Machine, RequestId, Role};
use std::time::Duration;

/// The tenures of one process.
#[derive(Debug, Default)]
pub(super) struct Tenures {
    /// Each write of this process that the store carried out, and when it was sent.
    landed: Vec<(Epoch, Reading)>,
    told: Option<Told>,
}

/// A tenure of which the beginning was told, and the end was not.
#[derive(Clone, Copy, Debug)]
struct Told {
    epoch: Epoch,
    is_active: bool,
}

impl Tenures {
    pub(super) fn landed(&mut self, epoch: Epoch, sent: Reading) {
        self.landed.push((epoch, sent));
    }

    /// Whether a write of this tenure landed that was sent just then.
    pub(super) fn proves(&self, epoch: Epoch, sent: Reading) -> bool {
        self.landed.contains(&(epoch, sent))
    }

    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::TakingOver { epoch, .. } => {
                assert!(self.told.is_none(), "{epoch} begins, {:?} has not ended", self.told);
                self.told = Some(Told { epoch: *epoch, is_active: false });
            }
            Event::Active { epoch } => match &mut self.told {
                Some(told) if told.epoch == *epoch && !told.is_active => told.is_active = true,
                told => panic!("{epoch} is active, told was {told:?}"),
            },
            Event::Renewed { epoch, .. } => {
                assert_eq!(self.told.map(|told| told.epoch), Some(*epoch), "renewed");
            }
            Event::Ended { epoch, .. } => {
                assert_eq!(self.told.take().map(|told| told.epoch), Some(*epoch), "ended");
            }
            _ => {}
        }
    }

    /// A renewal or release is about to be sent.
    pub(super) fn write(
        &self,
        draft: &Draft,
        machine: &Machine,
        fence: Option<&Fence>,
        now: Reading,
    ) {
        assert_eq!(machine.epoch(), Some(draft.epoch), "a write of a tenure that is over");
        let deadline = machine.deadline().expect("it holds the lease");
        assert!(now.monotonic < deadline, "a write at {now:?}, due by {deadline:?}");
        assert_eq!(draft.held, machine.role() != Role::Releasing);
        assert!(draft.held || fence.is_none_or(|fence| !fence.is_open()), "released while open");
    }

    /// The machine is at rest.
    pub(super) fn at_rest(
        &self,
        machine: &Machine,
        fence: Option<&Fence>,
        window: Duration,
        now: Reading,
    ) {
        if matches!(machine.role(), Role::Refused | Role::Stopped) {
            assert!(self.told.is_none(), "it is over, {:?} has not ended", self.told);
        }
        if let (Some(epoch), Some(deadline)) = (machine.epoch(), machine.deadline()) {
            let is_proved = self
                .landed
                .iter()
                .any(|(of, sent)| *of == epoch && sent.monotonic + window == deadline);
            assert!(is_proved, "{epoch} until {deadline:?}: no write that landed proves that");
            assert!(now.monotonic < deadline, "still held at its deadline");
        }
        let Some(fence) = fence.filter(|fence| fence.is_open()) else {
            // A fence that shut itself, by a wall clock that was set back since, is found with the
            // next order: nothing is renewed under it for long, see `World::end`.
            return;
        };
        assert_eq!(machine.role(), Role::Active, "its fence is open");
        assert_eq!(machine.epoch(), Some(fence.epoch()));
        let until = now.monotonic + fence.remaining();
        assert_eq!(machine.deadline(), Some(until), "the fence and the machine disagree");
        let told = self.told.expect("a fence opens within a tenure");
        assert!(told.is_active && told.epoch == fence.epoch());
    }
}

/// What the epoch of the next acquisition has to be above.
#[derive(Debug, Default)]
pub(super) struct Acquisitions {
    above: Option<Epoch>,
    /// The last acquisition, unless it is known that it was not written.
    last: Option<(RequestId, Epoch)>,
    sight: Option<Sight>,
}

/// What a standby was shown without a break.
#[derive(Debug)]
struct Sight {
    lineage: Lineage,
    shown: MonotonicTime,
    /// The highest epoch that snapshots proved when it began.
    proved: Option<Epoch>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lineage {
    Missing,
    Epoch(Epoch),
    Unacceptable(usize),
}

impl Acquisitions {
    /// It is told of an epoch: by its history, a record that it can believe, the floor.
    pub(super) fn told(&mut self, epoch: Option<Epoch>) {
        self.above = self.above.max(epoch);
    }

    /// A read shows this; `proved` is what the floor would have told when it was answered.
    pub(super) fn shown(
        &mut self,
        lineage: Lineage,
        proved: Option<Epoch>,
        now: MonotonicTime,
        renew: Duration,
    ) {
        match &mut self.sight {
            Some(sight) if sight.lineage == lineage && now - sight.shown <= renew * 2 => {
                sight.shown = now;
            }
            _ => self.sight = Some(Sight { lineage, shown: now, proved }),
        }
    }

    /// It holds the lease: what it watched before says nothing any more.
    pub(super) fn took(&mut self) {
        self.sight = None;
    }

    /// A write failed for certain.
    pub(super) fn was_not_written(&mut self, id: RequestId) {
        self.last.take_if(|(last, _)| *last == id);
    }

    pub(super) fn acquisition(&mut self, id: RequestId, draft: &Draft, has_floor: bool) {
        assert!(draft.held && draft.seq == 1, "no acquisition: {draft:?}");
        self.told(self.last.map(|(_, epoch)| epoch));
        let epoch = Some(draft.epoch);
        assert!(epoch > self.above, "{epoch:?} is known already: {self:?}");
        let sight = self.sight.as_ref().expect("something was seen");
        assert!(!has_floor || epoch > sight.proved, "{epoch:?} is proved already: {self:?}");
        self.last = Some((id, draft.epoch));
    }
}
