//! What goes wrong in a world, and how it is put right again.

use super::{
    dice::Dice,
    hazards::Hazard,
    link::{Fate, Link},
    object::Object,
    trace::Step,
    world::{Due, World},
};
use crate::{
    auth::Verdict,
    key::InstanceId,
    machine::{AbandonReason, Facts, Role, Rules},
    record::Nonce,
    store::StoreErrorKind,
};
use fencing::Epoch;
use std::{sync::Arc, time::Duration};

/// What the store does to everybody.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outage {
    /// It is not there, and says so.
    Down,
    /// It answers 5xx, whether or not it carried the request out.
    Storm,
    /// It answers nothing.
    Silent,
}

impl Outage {
    pub(super) fn fate(self, dice: &mut Dice) -> Fate {
        match self {
            Self::Down => Fate::Told(StoreErrorKind::Unavailable),
            Self::Silent => Fate::Lost,
            Self::Storm if dice.one_in(3) => Fate::Doubtful,
            Self::Storm => Fate::Told(StoreErrorKind::InDoubt),
        }
    }
}

/// What is put right.
#[derive(Clone, Copy, Debug)]
pub(super) enum Undo {
    Delete,
    Disk(usize),
    Floor(usize),
    Link(usize),
    Outage,
    Pause(usize),
    Start(usize),
    Want(usize),
}

impl<R: Rules> World<R> {
    pub(super) fn next_trouble(&mut self) -> Duration {
        let most = self.setting.hazard_every * 2;
        self.dice.up_to(most)
    }

    /// Something goes wrong, and the next thing is on its way.
    pub(super) fn trouble(&mut self) {
        let next = self.next_trouble();
        self.after(next, Due::Trouble);
        let hazards = self.setting.hazards;
        let hazards = if self.is_resolved { hazards.without(Hazard::Disk) } else { hazards };
        let possible: Vec<_> = Hazard::ALL.into_iter().filter(|it| hazards.has(*it)).collect();
        let Some(hazard) = self.dice.pick(&possible).copied() else { return };
        let hosts = u64::try_from(self.nodes.len()).unwrap_or(1);
        let host = usize::try_from(self.dice.below(hosts)).unwrap_or(0);
        self.counts.troubles += 1;
        match hazard {
            Hazard::Application => self.meddle_by_application(host),
            Hazard::Clone => self.clone_directory(host),
            Hazard::Crash => self.crash(host, false),
            Hazard::LostHistory => self.crash(host, true),
            Hazard::Pause | Hazard::Suspend => self.stand_still(host, hazard == Hazard::Suspend),
            Hazard::Rate | Hazard::Wall => self.meddle_with_clocks(host, hazard),
            Hazard::Disk | Hazard::Floor => self.meddle_with_disk(host, hazard),
            Hazard::Late | Hazard::Link | Hazard::Partition => self.meddle_with_link(host, hazard),
            Hazard::Outage => {
                let kinds = [Outage::Down, Outage::Storm, Outage::Silent];
                self.outage = self.dice.pick(&kinds).copied();
                self.say(None, "the store fails");
                self.later(2, Undo::Outage);
            }
            Hazard::Delete => {
                self.delete();
                if self.dice.one_in(3) {
                    self.later(1, Undo::Delete);
                }
            }
            Hazard::Forge | Hazard::Garbage | Hazard::PutBack => self.meddle_with_object(hazard),
        }
    }

    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Delete => self.delete(),
            Undo::Disk(host) => {
                self.nodes[host].disk_works = true;
                self.say(Some(host), "its disk works again");
            }
            Undo::Floor(host) => self.nodes[host].floor_works = true,
            Undo::Link(host) => {
                self.nodes[host].link = Link::calm(self.calm_latency(host));
                self.say(Some(host), "its way to the store is good again");
            }
            Undo::Outage => {
                self.outage = None;
                self.say(None, "the store works again");
            }
            Undo::Pause(host) => {
                self.nodes[host].clock.set_standing(false);
                self.resume(host);
            }
            Undo::Start(host) => {
                if self.nodes[host].process.is_none() {
                    self.say(Some(host), "a process is started");
                    self.start(host);
                }
            }
            Undo::Want(host) => {
                if self.is_running(host) {
                    self.with(host, |machine, now| machine.want(true, now));
                }
            }
        }
    }

    fn say(&mut self, host: Option<usize>, what: &'static str) {
        self.note(Step::Trouble { host, what });
    }

    /// Puts something right after up to `ttls` times T.
    fn later(&mut self, ttls: u32, undo: Undo) {
        let most = self.setting.largest_ttl() * ttls;
        let after = self.dice.of_any_size(most);
        self.after(after, Due::Undo(undo));
    }

    fn meddle_by_application(&mut self, host: usize) {
        if !self.is_running(host) || self.is_resolved {
            return;
        }
        let role = self.nodes[host].process.as_ref().map(|process| process.machine.role());
        let deed = match role {
            Some(Role::TakingOver) if self.dice.one_in(2) => 2,
            _ => self.dice.below(6),
        };
        match deed {
            0 | 1 => self.with(host, |machine, now| machine.release(now)),
            2 => self.with(host, |it, now| it.abandon(AbandonReason::Application, now)),
            3 => self.with(host, |machine, now| machine.drop_tenure(false, now)),
            4 => self.with(host, |machine, now| machine.confirm(now)),
            _ => {
                self.with(host, |machine, now| machine.want(false, now));
                self.later(1, Undo::Want(host));
            }
        }
    }

    fn clone_directory(&mut self, host: usize) {
        if self.nodes.len() > self.setting.instances.len() {
            return;
        }
        let (timing, directory) =
            (self.nodes[host].timing, self.nodes[host].directory.copied::<R>());
        self.say(Some(host), "its directory is copied, and another host starts from the copy");
        self.add_host(timing, directory);
    }

    fn crash(&mut self, host: usize, loses_history: bool) {
        if self.nodes[host].process.is_none() {
            return;
        }
        self.kill(host);
        self.nodes[host].clock.set_standing(false);
        if loses_history {
            self.say(Some(host), "its directory is lost");
            self.nodes[host].directory = self.new_directory();
        }
        self.later(2, Undo::Start(host));
    }

    fn stand_still(&mut self, host: usize, clock_too: bool) {
        if !self.is_running(host) {
            return;
        }
        if let Some(process) = &mut self.nodes[host].process {
            process.is_paused = true;
        }
        if clock_too {
            self.nodes[host].clock.set_standing(true);
            self.say(Some(host), "is suspended, and its monotonic clock stands still");
        } else {
            self.say(Some(host), "its process stands still");
        }
        self.later(3, Undo::Pause(host));
    }

    fn meddle_with_clocks(&mut self, host: usize, hazard: Hazard) {
        if hazard == Hazard::Rate {
            let rate = self.setting.rate(&mut self.dice);
            self.nodes[host].clock.set_rate(rate);
            return self.say(Some(host), "its monotonic clock changes its rate");
        }
        let most = *self.dice.pick(&[2_000, 20_000, 10_800_000]).unwrap_or(&2_000);
        let by = i64::try_from(self.dice.below(2 * most)).unwrap_or(0);
        self.nodes[host].clock.jump_wall(by - i64::try_from(most).unwrap_or(0));
        self.say(Some(host), "its wall clock is set");
        if self.dice.one_in(2) {
            // Set right again before its machine looks; the application may have looked.
            self.look(host);
            return self.nodes[host].clock.jump_wall(i64::try_from(most).unwrap_or(0) - by);
        }
        self.with(host, |_, _| {});
    }

    fn meddle_with_disk(&mut self, host: usize, hazard: Hazard) {
        if hazard == Hazard::Floor {
            self.nodes[host].floor_works = false;
            return self.later(2, Undo::Floor(host));
        }
        self.nodes[host].disk_works = false;
        self.say(Some(host), "its disk fails");
        self.later(2, Undo::Disk(host));
    }

    fn meddle_with_link(&mut self, host: usize, hazard: Hazard) {
        let (renew, ttl) = (self.nodes[host].timing.renew(), self.setting.largest_ttl());
        let latency = *self.dice.pick(&[renew / 10, renew / 2, renew * 2]).unwrap_or(&renew);
        self.nodes[host].link = match hazard {
            Hazard::Partition => Link::cut(),
            Hazard::Late => Link::troubled(latency, &mut self.dice).with_late(ttl * 3),
            _ => Link::troubled(latency, &mut self.dice),
        };
        let what = match hazard {
            Hazard::Partition => "does not reach the store",
            _ => "its way to the store is troubled",
        };
        self.say(Some(host), what);
        self.later(3, Undo::Link(host));
    }

    fn delete(&mut self) {
        let now = self.time.now();
        self.store.delete(now);
        self.note(Step::Applied { host: None, nonce: None });
    }

    fn meddle_with_object(&mut self, hazard: Hazard) {
        let object = match hazard {
            Hazard::PutBack => self.former_record(),
            // Without a secret nothing that can be read is forged.
            Hazard::Forge if self.setting.secret => Some(self.forged_record()),
            _ => Some(Object::garbage(self.dice.roll())),
        };
        let Some(object) = object else { return };
        let (now, nonce) = (self.time.now(), object.nonce());
        self.store.put(object, now);
        self.note(Step::Applied { host: None, nonce });
    }

    fn forged_record(&mut self) -> Object {
        let holder = InstanceId::new("stranger").ok().filter(|_| self.dice.one_in(2));
        let ttl = self.setting.largest_ttl();
        let nonce = Nonce::from_bytes(u128::from(self.dice.roll()).to_be_bytes());
        let facts = Facts::new(holder, Epoch::MAX, 1, Some(nonce), ttl);
        Object::new(Verdict::Forged, Arc::new(facts))
    }

    /// A record that was there before: not a release that its own writer would take for the latest
    /// word, nor anything that a standby saw within 2R (see the module).
    fn former_record(&mut self) -> Option<Object> {
        let blind = self.setting.largest_renew() * 3;
        let since = self.time.now().checked_sub(blind)?;
        let is_last_release = |nonce: Nonce| {
            self.releases.values().any(|last| *last == nonce)
                || self.nodes.iter().any(|it| it.directory.past.last_release == Some(nonce))
        };
        let records: Vec<_> = self
            .store
            .former(since)
            .filter(|former| !former.object.nonce().is_some_and(is_last_release))
            .map(|former| &former.object)
            .collect();
        // What some host saw last, and does not know to be old, is the most harmful.
        let seen: Vec<_> = self.seen.values().collect();
        let seen = self.dice.pick(&seen).copied().filter(|_| !self.dice.one_in(3));
        let harmful = |object: &&&Object| match seen {
            Some((version, _)) if object.version == *version => true,
            Some((_, epoch)) => object.facts.as_ref().is_some_and(|it| it.epoch == *epoch),
            None => true,
        };
        let exact = records.iter().find(|object| seen.is_some_and(|it| object.version == it.0));
        let harmful: Vec<_> = records.iter().filter(harmful).collect();
        match exact {
            Some(exact) if self.dice.one_in(2) => Some((*exact).clone()),
            _ => self.dice.pick(&harmful).map(|object| (**object).clone()),
        }
    }
}
