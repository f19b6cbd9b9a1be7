//! What the machine tells, and who is told.

use super::{
    super::shared::{Left, Refusal, Wish},
    Driver,
};
use crate::{
    ObjectKey,
    session::{DenyReason, Event, LeaseEndReason, WishError},
};
use fencing::Epoch;
use std::sync::Arc;

impl Driver {
    pub(super) fn happened(&mut self, event: Event) {
        match &event {
            Event::Acquired { lease, epoch } => self.acquired(lease, *epoch),
            Event::Denied { lease, reason } => {
                if let Some(waiter) = self.waiters.remove(lease) {
                    drop(waiter.answer.send(Err(Refusal::Denied(reason.clone()))));
                }
            }
            Event::Ended { lease, epoch, reason } => self.ended(lease, *epoch, reason),
            Event::Seen { lease, seen } => {
                if let Some(watcher) = self.watchers.get(lease) {
                    watcher.send_replace(Some(seen.clone()));
                }
            }
            _ => {}
        }
        self.report.event(event);
    }

    fn acquired(&mut self, lease: &ObjectKey, epoch: Epoch) {
        let Some(named) = self.held.get(lease).filter(|named| named.epoch() == epoch) else {
            return;
        };
        let waiter = self.waiters.remove(lease);
        let unclaimed = match waiter {
            Some(waiter) => waiter.answer.send(Ok(Arc::clone(named))).is_err(),
            None => true,
        };
        if unclaimed && named.leave(Wish::Release) {
            // Nobody has seen its fence: nothing acts under it.
            self.shared.leave(Left::Tenure(Arc::clone(named)));
        }
    }

    fn ended(&mut self, lease: &ObjectKey, epoch: Epoch, reason: &LeaseEndReason) {
        if self.held.get(lease).is_some_and(|named| named.epoch() == epoch)
            && let Some(named) = self.held.remove(lease)
        {
            named.end(reason.clone());
        }
        // One that ended while it was held back never came to whoever waits for it.
        let Some(waiter) = self.waiters.remove(lease) else { return };
        let now = self.parts.clock.reading();
        let again = match waiter.wait {
            true => self.machine.acquire(lease.clone(), now),
            false => Ok(()),
        };
        match again {
            Ok(()) | Err(WishError::AlreadyWanted { .. }) if waiter.wait => {
                self.waiters.insert(lease.clone(), waiter);
            }
            Err(refused) => drop(waiter.answer.send(Err(Refusal::Wish(refused)))),
            Ok(()) => {
                let denied = Refusal::Denied(DenyReason::SessionEnded);
                drop(waiter.answer.send(Err(denied)));
            }
        }
    }
}
