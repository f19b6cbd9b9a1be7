//! What a machine wants done, and what it tells.

use super::{
    check::{Broken, Reached},
    step::Stage,
    world::{Counted, Fence, Host, Object, Sent, Tenure, holds},
};
use lease_core::{
    fencing::{Epoch, Reading},
    machine::{Action, EndReason, Event, FenceOrder, Predecessor, Request, RequestId},
    testing::sim::Step,
};
use std::time::Duration;

/// More than any machine wants at one moment.
const BUSY: u32 = 200;

impl Stage<'_> {
    /// Carries out what a machine wants until it wants nothing more.
    pub(crate) fn settle(&mut self, number: usize) {
        let now = self.world.reading(self.setting, number);
        for _ in 0..BUSY {
            let Host { machine: Some(machine), drawn, .. } = &mut self.world.hosts[number] else {
                return;
            };
            if let Some(action) = machine.poll_action(now, &mut Counted { host: number, drawn }) {
                self.carry_out(number, action, now);
            } else if let Some(event) = machine.poll_event() {
                self.told(number, event, now);
            } else {
                return self.rest(number, now);
            }
        }
        self.broken(Broken::Rest);
    }

    fn rest(&mut self, number: usize, now: Reading) {
        let Some(machine) = &self.world.hosts[number].machine else { return };
        if machine.poll_timeout(now).is_some_and(|due| due <= now.monotonic) {
            self.broken(Broken::Rest);
        } else if machine.deadline().is_some_and(|deadline| deadline <= now.monotonic) {
            self.broken(Broken::Deadline);
        }
    }

    fn carry_out(&mut self, number: usize, action: Action, now: Reading) {
        match action {
            Action::Fence(order) => self.order(number, order, now),
            Action::Forget(id) => {
                let is_it = |sent: &&mut Sent| sent.host == number && sent.id == Some(id);
                for sent in self.world.requests.iter_mut().filter(is_it) {
                    sent.id = None;
                    sent.is_quick = false;
                }
            }
            Action::Persist(id, note) => self.world.hosts[number].notes.push_back((id, note)),
            Action::Send(id, request) => self.send(number, id, request, now),
            _ => {}
        }
    }

    fn send(&mut self, number: usize, id: RequestId, request: Request, now: Reading) {
        self.note(|_| Some(Step::Sent { host: number, request: request.clone(), at: now }));
        let host = &mut self.world.hosts[number];
        let is_quick = !host.is_cut;
        let mut sent = Sent {
            host: number,
            id: Some(id),
            request,
            object: None,
            is_left_behind: false,
            at: now.monotonic,
            answer: None,
            is_quick,
            is_held_up: false,
        };
        if let Some(draft) = sent.draft().cloned() {
            let ttl = self.setting.timings[number].ttl();
            sent.object = Some(Object::new(&draft, &host.instance, ttl));
            if !draft.held {
                host.last_release = Some(draft.nonce);
            }
            let tenure = host.tenure.filter(|tenure| tenure.epoch == draft.epoch);
            let is_wrong = tenure.is_some_and(|tenure| {
                let is_shut = tenure.fence == Fence::Shut;
                tenure.is_over || is_shut == draft.held
            });
            if is_wrong {
                self.broken(Broken::Write);
            }
        }
        self.world.requests.push(sent);
    }

    fn order(&mut self, number: usize, order: FenceOrder, now: Reading) {
        let Some(tenure) = self.world.hosts[number].tenure else { return };
        let (was, epoch) = (tenure.fence, tenure.epoch);
        let fence = match order {
            FenceOrder::Open { sent, window } => match was {
                Fence::NotOpen => self.moved(number, was, sent, window, now),
                Fence::Until { .. } | Fence::Shut => Fence::Shut,
            },
            FenceOrder::Extend { sent, window } => {
                if was.is_open(now, &self.setting.kept)
                    || !self.setting.kept.fence_never_opens_again
                {
                    self.moved(number, was, sent, window, now)
                } else {
                    Fence::Shut
                }
            }
            FenceOrder::Shut => {
                self.note(|it| Some(Step::Shut { tenure: it.tenure(number)? }));
                Fence::Shut
            }
            _ => was,
        };
        if let Some(tenure) = &mut self.world.hosts[number].tenure {
            tenure.fence = fence;
        }
        let accepted = fence != Fence::Shut;
        match order {
            FenceOrder::Open { sent, window } => {
                self.note(|it| {
                    let tenure = it.tenure(number)?;
                    Some(Step::Opened { tenure, sent, window, accepted })
                });
                if accepted {
                    self.opened(number, tenure);
                }
            }
            FenceOrder::Extend { sent, window } => self.note(|it| {
                let tenure = it.tenure(number)?;
                Some(Step::Extended { tenure, sent, window, accepted })
            }),
            _ => return,
        }
        if !accepted && let Some(machine) = &mut self.world.hosts[number].machine {
            machine.handle_fence_shut(epoch, now);
        }
    }

    /// A fence with its deadline at `window` after `sent`. What that may be is computed anew here.
    fn moved(
        &mut self,
        number: usize,
        was: Fence,
        sent: Reading,
        window: Duration,
        now: Reading,
    ) -> Fence {
        let timing = self.setting.timings[number];
        let (ttl, renew) = (timing.ttl(), timing.renew());
        let host = &self.world.hosts[number];
        let epoch = host.tenure.map(|tenure| tenure.epoch);
        let is_proved =
            host.landed.is_some_and(|(landed, at)| Some(landed) == epoch && sent.monotonic <= at);
        let next =
            Fence::Until { deadline: sent.monotonic + window, wall_limit: sent.wall + window };
        let is_revived = matches!(was, Fence::Until { .. } | Fence::Shut)
            && !was.is_open(now, &self.setting.kept);
        if window > ttl - renew.max(ttl / 5) || !is_proved || is_revived {
            self.broken(Broken::Deadline);
        }
        if next.is_open(now, &self.setting.kept) { next } else { Fence::Shut }
    }

    fn opened(&mut self, number: usize, tenure: Tenure) {
        let epoch = tenure.epoch;
        if self.world.highest >= Some(epoch) {
            self.broken(Broken::Epoch);
        }
        let past = &self.world.hosts[number].directory.past;
        if self.setting.has_history && past.last_epoch < Some(epoch) {
            self.broken(Broken::History);
        }
        if tenure.was_missing && self.world.highest.is_some() {
            self.world.marks.set(Reached::Deletion);
        }
        self.world.highest = self.world.highest.max(Some(epoch));
    }

    fn told(&mut self, number: usize, event: Event, now: Reading) {
        match event {
            Event::TakingOver { epoch, predecessor, held_back_until } => {
                let has_one = self.world.hosts[number].tenure.is_some_and(|it| !it.is_over);
                if has_one {
                    self.broken(Broken::End);
                }
                match &predecessor {
                    Predecessor::Expired { .. } => self.world.marks.set(Reached::Takeover),
                    Predecessor::Released { .. } if held_back_until.is_none() => {
                        self.world.marks.set(Reached::Release);
                    }
                    _ => {}
                }
                if self.heard_a_read == Some(false) {
                    self.world.marks.set(Reached::Own);
                }
                let was_missing = predecessor == Predecessor::Missing;
                self.note(|it| {
                    let tenure = it.begin(number, epoch);
                    Some(Step::TakingOver { tenure, predecessor, held_back_until })
                });
                let host = &mut self.world.hosts[number];
                host.tenure =
                    Some(Tenure { epoch, fence: Fence::NotOpen, is_over: false, was_missing });
                if let Some(machine) = &mut host.machine {
                    machine.confirm(now);
                }
            }
            Event::Renewed { .. } if self.heard_a_read == Some(true) => {
                self.world.marks.set(Reached::Own);
            }
            Event::Ended { epoch, reason } => self.ended(number, epoch, reason),
            _ => {}
        }
    }

    fn ended(&mut self, number: usize, epoch: Epoch, reason: EndReason) {
        let Host { tenure, machine, .. } = &mut self.world.hosts[number];
        let ending = tenure.as_mut().filter(|it| it.epoch == epoch && !it.is_over);
        let is_right = ending.is_some() && !machine.as_ref().is_some_and(|it| holds(it.role()));
        if let Some(tenure) = ending {
            tenure.is_over = true;
        }
        if !is_right {
            self.broken(Broken::End);
        }
        let is_lost = matches!(
            reason,
            EndReason::Deleted
                | EndReason::Lost
                | EndReason::Replaced { .. }
                | EndReason::TakenOver { .. }
        );
        if is_lost && self.heard_a_read == Some(true) {
            self.world.marks.set(Reached::Lost);
        }
        self.note(|it| Some(Step::Ended { tenure: it.tenure(number)?, reason }));
    }
}
