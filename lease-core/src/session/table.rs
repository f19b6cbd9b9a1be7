//! When each lease and each watch has something to do: two queues of requests, and timers.

use super::io::Object;
use crate::{ObjectKey, key::InstanceId};
use fencing::MonotonicTime;
use std::collections::BTreeSet;

/// What has something to do.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Slot {
    Lease(ObjectKey),
    Watch(InstanceId),
}

impl Slot {
    pub(super) fn object(&self) -> Object {
        match self {
            Self::Lease(lease) => Object::Lease(lease.clone()),
            Self::Watch(instance) => Object::Session(instance.clone()),
        }
    }
}

/// Which requests go first when not all may be sent at once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Urgency {
    /// Something is lost if it comes late: audits, releases, what was given up, watches and kills.
    Urgent,
    /// Acquisitions of what is free: before looks, so that the first of many is not held only once
    /// the last has been looked at.
    Taking,
    /// Looks.
    Usual,
}

pub(super) type Queued = (Urgency, MonotonicTime);

/// Each slot stands at most once in the queues and at most once among the timers; it knows where.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queues {
    urgent: BTreeSet<(MonotonicTime, Slot)>,
    taking: BTreeSet<(MonotonicTime, Slot)>,
    usual: BTreeSet<(MonotonicTime, Slot)>,
    timers: BTreeSet<(MonotonicTime, ObjectKey)>,
}

impl Queues {
    pub(super) fn put(&mut self, slot: &Slot, at: &mut Option<Queued>, to: Option<Queued>) {
        if *at == to {
            return;
        }
        if let Some((urgency, due)) = *at {
            self.queue(urgency).remove(&(due, slot.clone()));
        }
        if let Some((urgency, due)) = to {
            self.queue(urgency).insert((due, slot.clone()));
        }
        *at = to;
    }

    pub(super) fn put_timer(
        &mut self,
        lease: &ObjectKey,
        at: &mut Option<MonotonicTime>,
        to: Option<MonotonicTime>,
    ) {
        if *at == to {
            return;
        }
        if let Some(due) = *at {
            self.timers.remove(&(due, lease.clone()));
        }
        if let Some(due) = to {
            self.timers.insert((due, lease.clone()));
        }
        *at = to;
    }

    /// The next one that is due.
    pub(super) fn due(&self, now: MonotonicTime) -> Option<Slot> {
        [&self.urgent, &self.taking, &self.usual]
            .into_iter()
            .filter_map(BTreeSet::first)
            .find(|(due, _)| *due <= now)
            .map(|(_, slot)| slot.clone())
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<MonotonicTime> {
        let queues = [&self.urgent, &self.taking, &self.usual].into_iter();
        queues.filter_map(BTreeSet::first).map(|(due, _)| *due).min()
    }

    pub(super) fn fired(&self, now: MonotonicTime) -> Option<ObjectKey> {
        self.timers.first().filter(|(due, _)| *due <= now).map(|(_, lease)| lease.clone())
    }

    pub(super) fn next_timer(&self) -> Option<MonotonicTime> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// How many leases wait for a look.
    pub(super) fn waiting(&self) -> usize {
        self.usual.len()
    }

    fn queue(&mut self, urgency: Urgency) -> &mut BTreeSet<(MonotonicTime, Slot)> {
        match urgency {
            Urgency::Urgent => &mut self.urgent,
            Urgency::Taking => &mut self.taking,
            Urgency::Usual => &mut self.usual,
        }
    }
}
