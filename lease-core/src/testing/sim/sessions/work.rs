//! What the applications of a world do: they want leases, write under them, and give them back.

use super::{
    node::Input,
    trace::{Step, Tenure, Wish},
    world::{Due, World},
};
use crate::{
    ObjectKey,
    session::{Draft, Request, SessionRules},
};
use fencing::Clock as _;

impl<R: SessionRules> World<R> {
    /// The application of a host looks at its fences, writes, and wants something; then again later.
    pub(super) fn work(&mut self, host: usize) {
        self.look(host);
        match self.is_peaceful {
            true => self.wish_in_peace(host, false),
            false if self.dice.one_in(self.setting.patience) => self.wish_something(host),
            false => {}
        }
        let ttl = self.nodes[host].timing.ttl();
        let pause = match self.is_peaceful {
            true => self.nodes[host].timing.renew() / 2,
            false => self.dice.of_any_size(ttl / 2),
        };
        let start = self.nodes[host].starts;
        self.after(pause, Due::Input { host, start, input: Input::Work });
    }

    /// It looks at the fence of every lease, and writes under those that are open.
    pub(super) fn look(&mut self, host: usize) {
        let Some(process) = &self.nodes[host].process else { return };
        let mut looks = Vec::new();
        for held in process.leases.values() {
            let (Some(moved), Some(session)) = (&held.moved, &process.session) else { continue };
            let session_is_open = session.fence.is_open();
            looks.push((held.tenure, moved.fence.is_open(), session_is_open));
        }
        for (tenure, is_open, session_is_open) in looks {
            self.note(Step::Looked { tenure, is_open, session_is_open });
            if is_open && self.dice.one_in(2) {
                let ttl = self.nodes[host].timing.ttl();
                let travel = self.dice.of_any_size(ttl);
                self.after(travel, Due::GateWrite(tenure));
            }
        }
    }

    fn wish_something(&mut self, host: usize) {
        let Some(process) = &self.nodes[host].process else { return };
        let names = u64::try_from(self.names.len()).unwrap_or(1);
        let name = usize::try_from(self.dice.below(names)).unwrap_or(0);
        let wish = match (process.leases.contains_key(&name), self.dice.below(12)) {
            (true, 0..4) => Wish::Release,
            (true, _) => return,
            (false, 0..6) => Wish::Acquire,
            (false, 6..9) => Wish::TryAcquire,
            (false, 9) => Wish::GiveUp,
            (false, 10) => Wish::Watch,
            (false, _) => Wish::Unwatch,
        };
        self.wish(host, name, wish);
    }

    pub(super) fn wish(&mut self, host: usize, name: usize, wish: Wish) {
        let lease = self.names[name].clone();
        self.note(Step::Wished { host, name, wish });
        // What is refused is refused, and changes nothing.
        self.with(host, |machine, now| match wish {
            Wish::Acquire => drop(machine.acquire(lease, now)),
            Wish::GiveUp => machine.give_up(&lease, now),
            Wish::Release => drop(machine.release(&lease, now)),
            Wish::TryAcquire => drop(machine.try_acquire(lease, now)),
            Wish::Unwatch => machine.unwatch(&lease, now),
            Wish::Watch => drop(machine.watch(lease, now)),
        });
    }

    /// Whoever waits for a lease in peace asks for it; at first the others ask for nothing any more, and
    /// half of them give back what they hold.
    pub(super) fn wish_in_peace(&mut self, host: usize, is_first: bool) {
        for name in 0..self.names.len() {
            let Some(process) = &self.nodes[host].process else { return };
            let is_held = process.leases.contains_key(&name);
            let is_wanted = self.wanted_by[name].contains(&self.nodes[host].directory.instance);
            if is_wanted && !is_held {
                let (lease, now) = (self.names[name].clone(), self.nodes[host].clock.reading());
                let process = self.nodes[host].process.as_mut();
                if process.is_some_and(|it| it.machine.acquire(lease, now).is_ok()) {
                    self.note(Step::Wished { host, name, wish: Wish::Acquire });
                }
                self.settle(host);
            } else if is_first && !is_wanted {
                self.wish(host, name, Wish::GiveUp);
                if is_held && self.dice.one_in(2) {
                    self.wish(host, name, Wish::Release);
                }
            }
        }
    }

    pub(super) fn release(&mut self, tenure: Tenure) {
        let process = self.nodes[tenure.host].process.as_ref();
        let held = process.and_then(|process| process.leases.get(&tenure.name));
        if held.is_some_and(|held| held.tenure == tenure) {
            self.wish(tenure.host, tenure.name, Wish::Release);
        }
    }

    /// Now and then an acquisition is given up while it is under way.
    pub(super) fn may_give_up(&mut self, host: usize, key: &ObjectKey, request: &Request) {
        let (Request::Create(Draft::Lease(named)) | Request::Replace(Draft::Lease(named), _)) =
            request
        else {
            return;
        };
        if let Some(name) = self.number_of(key)
            && named.lease.held
            && self.dice.one_in(6)
        {
            let renew = self.nodes[host].timing.renew();
            let after = self.dice.of_any_size(renew);
            let start = self.nodes[host].starts;
            self.after(after, Due::Input { host, start, input: Input::GiveUp(name) });
        }
    }
}
