//! The real fences of one process, and the tenures that its events tell of.

use fencing::{Epoch, Fence, FenceControl, FenceShut, testing::ManualClock};
use lease_core::{
    ObjectKey,
    machine::FenceOrder,
    session::{Event, LeaseFenceOrder},
};
use std::{collections::BTreeMap, sync::Arc};

pub(crate) struct Fences {
    clock: ManualClock,
    /// Fences of leases stand under that of the session.
    are_under: bool,
    session: Option<FenceControl>,
    leases: BTreeMap<ObjectKey, FenceControl>,
    /// The last of each lease that was ever opened.
    last: BTreeMap<ObjectKey, Fence>,
    /// Tenures that were told of and are not over.
    tenures: BTreeMap<ObjectKey, Epoch>,
}

impl Fences {
    pub(crate) fn new(clock: ManualClock, are_under: bool) -> Self {
        Self {
            clock,
            are_under,
            session: None,
            leases: BTreeMap::new(),
            last: BTreeMap::new(),
            tenures: BTreeMap::new(),
        }
    }

    pub(crate) fn order(&mut self, epoch: Epoch, order: FenceOrder) -> Result<(), FenceShut> {
        match (order, &mut self.session) {
            (FenceOrder::Open { sent, window }, session) => {
                let control = FenceControl::new(epoch, Arc::new(self.clock.clone()));
                session.insert(control).open(sent, window)
            }
            (FenceOrder::Extend { sent, window }, Some(session)) => session.extend(sent, window),
            _ => {
                self.session = None;
                Ok(())
            }
        }
    }

    pub(crate) fn order_lease(
        &mut self,
        lease: &ObjectKey,
        epoch: Epoch,
        order: LeaseFenceOrder,
    ) -> Result<(), FenceShut> {
        match (order, self.leases.get_mut(lease)) {
            (LeaseFenceOrder::Open { sent, window }, _) => {
                let Some(session) = &self.session else { panic!("no fence of a session") };
                let mut control = match self.are_under {
                    true => FenceControl::under(&session.fence(), epoch),
                    false => FenceControl::new(epoch, Arc::new(self.clock.clone())),
                };
                let opened = control.open(sent, window);
                self.last.insert(lease.clone(), control.fence());
                self.leases.insert(lease.clone(), control);
                opened
            }
            (LeaseFenceOrder::Extend { sent, window }, Some(control)) => {
                control.extend(sent, window)
            }
            _ => {
                self.leases.remove(lease);
                Ok(())
            }
        }
    }

    /// Each tenure begins once and ends once.
    pub(crate) fn learn(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::HeldBack { lease, epoch, .. } | Event::Acquired { lease, epoch } => {
                match self.tenures.insert(lease.clone(), *epoch) {
                    Some(other) if other != *epoch => {
                        Err(format!("{lease}: {epoch} begins before {other} ends"))
                    }
                    _ => Ok(()),
                }
            }
            Event::Ended { lease, epoch, .. } => match self.tenures.remove(lease) {
                Some(other) if other == *epoch => Ok(()),
                other => Err(format!("{lease}: {epoch} ends, but {other:?} was there")),
            },
            _ => Ok(()),
        }
    }

    pub(crate) fn open(&self) -> impl Iterator<Item = &ObjectKey> {
        self.last.iter().filter(|(_, fence)| fence.is_open()).map(|(lease, _)| lease)
    }

    pub(crate) fn is_open(&self, lease: &ObjectKey) -> bool {
        self.last.get(lease).is_some_and(Fence::is_open)
    }
}
