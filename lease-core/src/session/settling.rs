//! Keeping the table in order: what follows from whatever happened to a lease or a watch.

use super::{SessionMachine, SessionRules, lease::State, table::Slot, watch::Watch};
use crate::{ObjectKey, key::InstanceId};
use fencing::MonotonicTime;

impl<R: SessionRules> SessionMachine<R> {
    pub(super) fn settle_all(&mut self, now: MonotonicTime) {
        let keys: Vec<_> = self.leases.keys().cloned().collect();
        for key in keys {
            self.settle(&key, now);
        }
        let sessions: Vec<_> = self.watches.keys().cloned().collect();
        for instance in sessions {
            self.settle_watch(&instance, now);
        }
    }

    pub(super) fn settle_names(&mut self, instance: &InstanceId, now: MonotonicTime) {
        let names = self.watches.get(instance).map(Watch::names).unwrap_or_default();
        for key in names {
            self.settle(&key, now);
        }
    }

    /// Draws the conclusions of whatever happened to a lease: who is watched for it, from when it may
    /// be taken, when it has something to send; and whether it is in the table at all.
    pub(super) fn settle(&mut self, key: &ObjectKey, now: MonotonicTime) {
        self.follow_holder(key, now);
        let Self { core, leases, watches, queues } = self;
        let Some(lease) = leases.get_mut(key) else { return };
        let asks = lease.assess(key, core, watches, now);
        let (slot, is_idle) = (Slot::Lease(key.clone()), lease.is_idle());
        let due = lease.due(core).filter(|_| !is_idle);
        queues.put(&slot, &mut lease.queued, due);
        let timer = lease.next_timer(core).filter(|_| !is_idle);
        queues.put_timer(key, &mut lease.timer, timer);
        let under = lease.under.clone().filter(|_| asks || is_idle);
        if is_idle && let Some(lease) = leases.remove(key) {
            core.forgotten = core.forgotten.max(lease.highest).max(lease.tried);
            if let Some(id) = lease.flight {
                core.forget(id);
            }
        }
        let Some(instance) = under else { return };
        if let Some(watch) = watches.get_mut(&instance) {
            if is_idle {
                watch.remove::<R>(key);
            } else {
                watch.hurry(now);
                watch.is_tried = true;
            }
        }
        self.settle_watch(&instance, now);
    }

    /// The session of its holder is watched for it, as long as somebody asks for it.
    fn follow_holder(&mut self, key: &ObjectKey, now: MonotonicTime) {
        let Self { core, leases, watches, .. } = self;
        let Some(lease) = leases.get_mut(key) else { return };
        let is_unknown =
            lease.sight.is_none() && lease.state == State::Idle && lease.wish.is_some();
        if is_unknown {
            return;
        }
        let under = lease.stands_under(core);
        let instance = under.as_ref().map(|(instance, ..)| instance.clone());
        let before = std::mem::replace(&mut lease.under, instance.clone());
        let left = before.filter(|before| instance.as_ref() != Some(before));
        if let Some(left) = &left
            && let Some(watch) = watches.get_mut(left)
        {
            watch.remove::<R>(key);
        }
        let is_new = under.is_some_and(|(instance, name, ttl)| {
            let watch = watches.entry(instance).or_insert_with(|| Watch::new(now));
            watch.add::<R>(key, name, ttl)
        });
        if let Some(left) = left {
            self.settle_watch(&left, now);
        }
        if let Some(instance) = instance.filter(|_| is_new) {
            self.settle_watch(&instance, now);
        }
    }

    pub(super) fn settle_watch(&mut self, instance: &InstanceId, now: MonotonicTime) {
        let Self { core, watches, queues, .. } = self;
        let Some(watch) = watches.get_mut(instance) else { return };
        let slot = Slot::Watch(instance.clone());
        let is_idle = watch.is_idle();
        let due = watch.due(core, now).filter(|_| !is_idle);
        queues.put(&slot, &mut watch.queued, due);
        if is_idle && let Some(watch) = watches.remove(instance) {
            watch.request().into_iter().for_each(|id| core.forget(id));
        }
    }
}
