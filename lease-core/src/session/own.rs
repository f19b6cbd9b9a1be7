//! The session of this process: an ordinary lease on a key of its own, kept by an ordinary machine.
//!
//! Here its records are turned into those of a session and back. What the ordinary machine is shown of
//! an object says from when a new life may begin:
//!
//! | what stands there | is shown as | so a new life begins |
//! | --- | --- | --- |
//! | a life that this process began, and that is over | a release that is the latest word | at once |
//! | a kill | a release that is the latest word | at once |
//! | a tombstone | held, by nobody | after W |
//! | nothing | nothing | at once, held back for W |
//! | anything else | as it is | as for any lease |

use super::{
    config::Config,
    facts::{Life, SessionDraft, SessionFacts, SessionState},
    io::{Draft, Request, Sighting},
    rules::SessionRules,
};
use crate::{
    key::InstanceId,
    machine::{self, Event, Facts, FirstStart, Machine, Past, Role},
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::{collections::VecDeque, sync::Arc, time::Duration};

/// How many lives are remembered: as many as acquisitions in doubt.
const REMEMBERED: usize = 64;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Own<R: SessionRules> {
    pub(super) machine: Machine<R>,
    /// The life of the current tenure, whether or not its fence is open.
    life: Option<Life>,
    /// The last tenure: the one that orders for the fence are about.
    pub(super) fence: Option<Epoch>,
    /// The lives that acquisitions of this process were sent for, each epoch once.
    tried: VecDeque<Life>,
    /// The lives that this process began and that are over.
    ended: VecDeque<Life>,
    /// Stands for the holder that a tombstone does not have.
    nobody: Arc<Option<InstanceId>>,
}

impl<R: SessionRules> Own<R> {
    pub(super) fn new(config: &Config, past: Past, now: Reading) -> Self {
        let mut own = machine::Config::new(config.instance.clone(), config.timing);
        own.epochs = config.epochs;
        own.has_secret = config.has_secret;
        own.has_history = config.has_history;
        own.jitter_seed = config.jitter_seed;
        if config.fresh_instance {
            own.first_start = FirstStart::Immediate;
        }
        let mut machine = Machine::new(own, past, now);
        machine.want(true, now);
        let nobody = Arc::new(InstanceId::new("tombstone").ok());
        Self {
            machine,
            life: None,
            fence: None,
            tried: VecDeque::new(),
            ended: VecDeque::new(),
            nobody,
        }
    }

    /// The life under which leases may be taken and held: its fence was told to open.
    pub(super) fn live(&self) -> Option<Life> {
        self.life.filter(|life| {
            self.machine.role() == Role::Active && self.machine.epoch() == Some(life.epoch)
        })
    }

    /// What the machine of the session wants to send, as a session.
    pub(super) fn request(&mut self, request: machine::Request, now: MonotonicTime) -> Request {
        match request {
            machine::Request::Create(draft) => Request::Create(self.draft(draft, now)),
            machine::Request::Read { unless } => Request::Read { unless },
            machine::Request::Replace(draft, version) => {
                Request::Replace(self.draft(draft, now), version)
            }
        }
    }

    fn draft(&mut self, lease: machine::Draft, now: MonotonicTime) -> Draft {
        let life = match self.life.filter(|life| life.epoch == lease.epoch) {
            Some(life) => life.nonce,
            None => {
                let life = Life { epoch: lease.epoch, nonce: lease.nonce };
                self.tried.retain(|tried| tried.epoch != life.epoch);
                remember(&mut self.tried, life);
                life.nonce
            }
        };
        let state = match lease.held {
            false => SessionState::Released,
            true if self.machine.is_held_back(now) => SessionState::HeldBack,
            true => SessionState::Live,
        };
        Draft::Session(SessionDraft { lease, life, state })
    }

    /// What the machine of the session is shown of what was read.
    pub(super) fn sighting(&mut self, sighting: Sighting<SessionFacts>) -> machine::Sighting {
        match sighting {
            Sighting::NotModified => machine::Sighting::NotModified,
            Sighting::Missing => {
                // Also behind a life of this process: a copy of its directory may have begun another
                // since, which this process never saw, before the object was deleted.
                machine::Sighting::Missing
            }
            Sighting::Found { version, verdict, facts, age } => {
                let (facts, age) = match facts {
                    None => (None, age),
                    Some(facts) => {
                        let (facts, is_latest) = self.shown(&facts);
                        let age = if is_latest { Some(Duration::MAX) } else { age };
                        (Some(Arc::new(facts)), age)
                    }
                };
                machine::Sighting::Found { version, verdict, facts, age }
            }
        }
    }

    /// As a lease; and whether that is the latest word on it.
    fn shown(&self, session: &SessionFacts) -> (Facts, bool) {
        let facts = session.lease.clone();
        let released = || Facts { holder: None, ..facts.clone() };
        match session.state {
            SessionState::Killed => (released(), true),
            SessionState::Tombstone => {
                let holder = self.nobody.as_ref().clone();
                (Facts { holder, ..facts }, false)
            }
            _ if self.is_over(life_of(session)) => (released(), true),
            SessionState::HeldBack | SessionState::Live => (facts, false),
            SessionState::Released => (released(), false),
        }
    }

    /// Whether this process began that life, and has ended it. (It may be known of a moment before the
    /// event that tells why.)
    fn is_over(&self, life: Life) -> bool {
        let is_left = self.life == Some(life) && self.machine.epoch() != Some(life.epoch);
        is_left || self.ended.contains(&life)
    }

    /// Keeps track of the tenures of the session. Confirms each at once: there is nothing to restore.
    pub(super) fn learn(&mut self, event: &Event, now: Reading) {
        match event {
            Event::TakingOver { epoch, .. } => {
                self.life = self.tried.iter().find(|life| life.epoch == *epoch).copied();
                self.fence = Some(*epoch);
                self.machine.confirm(now);
            }
            Event::Ended { epoch, .. } => self.end(*epoch),
            _ => {}
        }
    }

    fn end(&mut self, epoch: Epoch) {
        if let Some(life) = self.life.take_if(|life| life.epoch == epoch) {
            remember(&mut self.ended, life);
        }
    }
}

fn life_of(facts: &SessionFacts) -> Life {
    Life { epoch: facts.lease.epoch, nonce: facts.life }
}

fn remember(lives: &mut VecDeque<Life>, life: Life) {
    if lives.len() == REMEMBERED {
        lives.pop_front();
    }
    lives.push_back(life);
}
