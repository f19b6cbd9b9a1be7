//! What goes wrong in a world of sessions, and how it is put right again.

use super::{
    super::{
        hazards::Hazard,
        link::Link,
        object::{Content, Object as Stored, ObjectStore},
        troubles::Outage,
    },
    trace::Step,
    world::{Due, World},
};
use crate::{
    auth::Verdict,
    key::InstanceId,
    machine::Facts,
    record::Nonce,
    session::{Life, NamedFacts, Object, SessionFacts, SessionRules, SessionState},
};
use fencing::Epoch;
use std::{sync::Arc, time::Duration};

/// What is put right.
#[derive(Clone, Debug)]
pub(super) enum Undo {
    Delete(Object),
    Disk(usize),
    Link(usize),
    Outage,
    Pause(usize),
    Reach(usize),
    Start(usize),
    Stopped(usize, u32),
}

impl<R: SessionRules> World<R> {
    pub(super) fn next_trouble(&mut self) -> Duration {
        let most = self.setting.world.hazard_every * 2;
        self.dice.up_to(most)
    }

    /// Something goes wrong, and the next thing is on its way.
    pub(super) fn trouble(&mut self) {
        let next = self.next_trouble();
        self.after(next, Due::Trouble);
        let hazards = self.setting.world.hazards;
        let hazards = if self.is_resolved { hazards.without(Hazard::Disk) } else { hazards };
        let possible: Vec<_> = Hazard::ALL.into_iter().filter(|it| hazards.has(*it)).collect();
        let Some(hazard) = self.dice.pick(&possible).copied() else { return };
        let hosts = u64::try_from(self.nodes.len()).unwrap_or(1);
        let host = usize::try_from(self.dice.below(hosts)).unwrap_or(0);
        self.counts.troubles += 1;
        match hazard {
            Hazard::Application => self.stop(host),
            Hazard::Clone => self.clone_directory(host),
            Hazard::Crash => self.crash(host, false),
            Hazard::LostHistory => self.crash(host, true),
            Hazard::Pause | Hazard::Suspend => self.stand_still(host, hazard == Hazard::Suspend),
            Hazard::Rate | Hazard::Wall => self.meddle_with_clocks(host, hazard),
            Hazard::Disk => {
                self.nodes[host].disk_works = false;
                self.say(Some(host), "its disk fails");
                self.later(2, Undo::Disk(host));
            }
            Hazard::Late | Hazard::Link | Hazard::Partition => self.meddle_with_link(host, hazard),
            Hazard::Outage => {
                let kinds = [Outage::Down, Outage::Storm, Outage::Silent];
                self.outage = self.dice.pick(&kinds).copied();
                self.say(None, "the store fails");
                self.later(2, Undo::Outage);
            }
            Hazard::Delete | Hazard::Forge | Hazard::Garbage | Hazard::PutBack => {
                self.meddle_with_object(hazard);
            }
            Hazard::Floor => {}
        }
    }

    pub(super) fn undo(&mut self, undo: Undo) {
        match undo {
            Undo::Delete(object) => self.delete(&object),
            Undo::Disk(host) => {
                self.nodes[host].disk_works = true;
                self.say(Some(host), "its disk works again");
            }
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
            Undo::Reach(host) => {
                self.cut_off.remove(&host);
                self.say(Some(host), "reaches every object again");
            }
            Undo::Start(host) => {
                if self.nodes[host].process.is_none() {
                    self.say(Some(host), "a process is started");
                    self.start(host);
                }
            }
            Undo::Stopped(host, start) => {
                if self.nodes[host].starts == start {
                    self.kill(host);
                    self.later(1, Undo::Start(host));
                }
            }
        }
    }

    fn say(&mut self, host: Option<usize>, what: &'static str) {
        self.note(Step::Trouble { host, what });
    }

    /// Puts something right after up to `ttls` times T.
    fn later(&mut self, ttls: u32, undo: Undo) {
        let most = self.setting.world.largest_ttl() * ttls;
        let after = self.dice.of_any_size(most);
        self.after(after, Due::Undo(undo));
    }

    /// The application stops its session; its process ends a while later.
    fn stop(&mut self, host: usize) {
        if !self.is_running(host) {
            return;
        }
        self.say(Some(host), "its session is stopped");
        if let Some(process) = &mut self.nodes[host].process {
            process.is_stopping = true;
        }
        self.with(host, |machine, now| machine.stop(now));
        let start = self.nodes[host].starts;
        self.later(1, Undo::Stopped(host, start));
    }

    fn clone_directory(&mut self, host: usize) {
        if self.nodes.len() > self.setting.world.instances.len() {
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
        let Some(process) = &mut self.nodes[host].process else { return };
        if std::mem::replace(&mut process.is_paused, true) {
            return;
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
            let rate = self.setting.world.rate(&mut self.dice);
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
        if self.is_running(host) {
            self.with(host, |machine, now| machine.handle_timeout(now));
        }
    }

    fn meddle_with_link(&mut self, host: usize, hazard: Hazard) {
        if hazard == Hazard::Partition && self.dice.one_in(3) {
            return self.cut_off_from_one(host);
        }
        let (renew, ttl) = (self.nodes[host].timing.renew(), self.setting.world.largest_ttl());
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

    /// A part of the store fails one host, as where keys are spread over machines: as often as not a
    /// lease that it holds, and long enough to be missed.
    fn cut_off_from_one(&mut self, host: usize) {
        let held = self.nodes[host].process.as_ref();
        let held: Vec<_> = held.iter().flat_map(|it| it.leases.keys().copied()).collect();
        let object = match (self.dice.pick(&held).copied(), self.dice.below(4)) {
            (Some(held), 0 | 1) => self.names.get(held).cloned().map(Object::Lease),
            (_, 2) => self.dice.pick(&self.store.instances()).cloned().map(Object::Session),
            _ => self.dice.pick(&self.names).cloned().map(Object::Lease),
        };
        let Some(object) = object else { return };
        self.say(Some(host), "does not reach one object");
        let is_covered = matches!(object, Object::Lease(_)) && self.setting.audit.is_some();
        if is_covered && self.setting.world.hazards.has(Hazard::Delete) && self.dice.one_in(2) {
            // What its holder does not see is the most harmful.
            let renew = self.setting.world.largest_renew();
            let after = self.dice.up_to(renew);
            self.after(after, Due::Undo(Undo::Delete(object.clone())));
        }
        self.cut_off.insert(host, object);
        let ttl = self.setting.world.largest_ttl();
        let after = ttl + self.dice.up_to(ttl * 2);
        self.after(after, Due::Undo(Undo::Reach(host)));
    }

    /// A session more often than a lease. Of leases, what is not covered by an audit is rare: nothing
    /// more is claimed of that one.
    fn meddle_with_object(&mut self, hazard: Hazard) {
        let is_covered = self.setting.audit.is_some() && hazard != Hazard::PutBack;
        let is_session = if is_covered { self.dice.one_in(2) } else { !self.dice.one_in(8) };
        let object = match is_session {
            true => self.dice.pick(&self.store.instances()).cloned().map(Object::Session),
            false => self.dice.pick(&self.names).cloned().map(Object::Lease),
        };
        let Some(object) = object else { return };
        match &object {
            Object::Session(instance) => self.meddle_with_session(instance, hazard),
            Object::Lease(key) => {
                let name = self.number_of(key).filter(|_| !is_covered);
                if let Some(name) = name {
                    self.counts.token_alone += 1;
                    self.note(Step::TokenAlone { name });
                }
                let (key, bytes) = (key.clone(), self.dice.roll());
                let record = match hazard {
                    Hazard::Delete => None,
                    Hazard::PutBack => {
                        former(&mut self.dice, self.store.lease(&key), |_| true, Duration::MAX)
                    }
                    Hazard::Forge if self.store.signs => Some(self.forged_lease()),
                    _ => Some(Stored::garbage(bytes)),
                };
                if let Some(record) = record {
                    let now = self.time.now();
                    self.store.lease(&key).put(record, now);
                    self.changed_by_hand(&object);
                }
            }
        }
        if hazard == Hazard::Delete {
            self.delete(&object);
            if self.dice.one_in(3) {
                self.later(1, Undo::Delete(object));
            }
        }
    }

    fn delete(&mut self, object: &Object) {
        let now = self.time.now();
        match object {
            Object::Lease(key) => self.store.lease(key).delete(now),
            Object::Session(instance) => self.store.session(instance).delete(now),
        }
        self.changed_by_hand(object);
    }

    fn changed_by_hand(&mut self, object: &Object) {
        let nonce = self.store.nonce(object);
        self.note(Step::Applied { host: None, object: object.clone(), nonce });
    }

    fn meddle_with_session(&mut self, instance: &InstanceId, hazard: Hazard) {
        let now = self.time.now();
        let bytes = self.dice.roll();
        let record = match hazard {
            Hazard::Delete => None,
            Hazard::PutBack => {
                let blind = self.setting.world.largest_renew() * 3;
                let Some(since) = now.checked_sub(blind) else { return };
                let own: Vec<Option<Nonce>> = self
                    .nodes
                    .iter()
                    .map(|node| node.directory.past.last_release)
                    .chain(self.releases.values().map(|nonce| Some(*nonce)))
                    .collect();
                if self.nodes.len() > self.setting.world.instances.len() {
                    return;
                }
                let promised = |facts: &SessionFacts| !own.contains(&facts.lease.nonce);
                former(&mut self.dice, self.store.session(instance), promised, since)
            }
            Hazard::Forge if self.store.signs => Some(self.forged_session()),
            _ => Some(Stored::garbage(bytes)),
        };
        if let Some(record) = record {
            self.store.session(instance).put(record, now);
            self.changed_by_hand(&Object::Session(instance.clone()));
        }
    }

    fn forged_facts(&mut self) -> Facts {
        let holder = InstanceId::new("stranger").ok().filter(|_| self.dice.one_in(2));
        let ttl = self.setting.world.largest_ttl();
        Facts::new(holder, Epoch::MAX, 1, Some(self.nonce()), ttl)
    }

    fn nonce(&mut self) -> Nonce {
        Nonce::from_bytes(u128::from(self.dice.roll()).to_be_bytes())
    }

    fn forged_session(&mut self) -> Stored<SessionFacts> {
        let (lease, life) = (self.forged_facts(), self.nonce());
        let states = [SessionState::Live, SessionState::Killed, SessionState::Released];
        let state = *self.dice.pick(&states).unwrap_or(&SessionState::Live);
        Stored::new(Verdict::Forged, Arc::new(SessionFacts { lease, life, state }))
    }

    fn forged_lease(&mut self) -> Stored<NamedFacts> {
        let (lease, nonce) = (self.forged_facts(), self.nonce());
        let life = Life { epoch: Epoch::MAX, nonce };
        let session = InstanceId::new("stranger").unwrap_or_else(|_| unreachable!("a plain name"));
        let facts = NamedFacts { lease, session, life, held_back: false };
        Stored::new(Verdict::Forged, Arc::new(facts))
    }
}

/// A record that was there before and last seen before `since`.
fn former<F: Content>(
    dice: &mut super::super::dice::Dice,
    store: &ObjectStore<F>,
    promised: impl Fn(&F) -> bool,
    since: Duration,
) -> Option<Stored<F>> {
    let records: Vec<_> = store
        .former(since)
        .map(|former| &former.object)
        .filter(|object| object.facts.as_ref().is_some_and(|facts| promised(facts)))
        .collect();
    // The latest are the most like what stands there.
    let latest = records.len().saturating_sub(6);
    let few = if dice.one_in(2) { records.get(latest..).unwrap_or_default() } else { &records };
    dice.pick(few).map(|object| (*object).clone())
}
