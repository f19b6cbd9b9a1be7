//! What handles ask for, and what they leave behind.

use super::{
    super::shared::{Command, Left, Refusal, Watched, Wish},
    Driver, Waiter,
};
use crate::ObjectKey;
use fencing::Epoch;
use tokio::sync::watch;

impl Driver {
    pub(super) fn asked(&mut self, command: Command) {
        let now = self.parts.clock.reading();
        match command {
            Command::Acquire { lease, ticket, wait, answer } => {
                let asked = match wait {
                    true => self.machine.acquire(lease.clone(), now),
                    false => self.machine.try_acquire(lease.clone(), now),
                };
                match asked {
                    Ok(()) => {
                        self.waiters.insert(lease, Waiter { ticket, wait, answer });
                    }
                    Err(refused) => drop(answer.send(Err(Refusal::Wish(refused)))),
                }
            }
            // Whoever asked may have gone.
            Command::Watch { lease, answer } => drop(answer.send(self.watch(lease))),
        }
    }

    fn watch(&mut self, lease: ObjectKey) -> Watched {
        if let Some(watcher) = self.watchers.get(&lease) {
            return Ok(watcher.subscribe());
        }
        self.machine.watch(lease.clone(), self.parts.clock.reading())?;
        let (watcher, seen) = watch::channel(None);
        self.watchers.insert(lease, watcher);
        Ok(seen)
    }

    pub(super) fn take_what_was_left(&mut self) {
        for left in self.shared.take_left() {
            let now = self.parts.clock.reading();
            match left {
                Left::Acquisition { lease, ticket } => {
                    let waiter = self.waiters.get(&lease);
                    if waiter.is_some_and(|waiter| waiter.ticket == ticket) {
                        self.waiters.remove(&lease);
                        self.machine.give_up(&lease, now);
                    }
                }
                Left::Tenure(named) => match named.wish() {
                    Wish::Release => self.give_back(&named.lease, named.epoch()),
                    Wish::Hold | Wish::Lapse => {
                        let due = now.monotonic + self.parts.config.timing.ttl();
                        self.lapsing.push_back((due, named.lease.clone(), named.epoch()));
                    }
                },
                Left::Watch(lease) => {
                    let watcher = self.watchers.get(&lease);
                    if watcher.is_some_and(|watcher| watcher.receiver_count() == 0) {
                        self.watchers.remove(&lease);
                        self.machine.unwatch(&lease, now);
                    }
                }
            }
        }
    }

    pub(super) fn give_back_what_lapsed(&mut self) {
        let now = self.parts.clock.reading().monotonic;
        while let Some((due, ..)) = self.lapsing.front() {
            if now < *due {
                return;
            }
            if let Some((_, lease, epoch)) = self.lapsing.pop_front() {
                self.give_back(&lease, epoch);
            }
        }
    }

    fn give_back(&mut self, lease: &ObjectKey, epoch: Epoch) {
        if self.machine.held(lease) == Some(epoch) {
            // It holds it: it cannot refuse.
            let _ = self.machine.release(lease, self.parts.clock.reading());
        }
    }
}
