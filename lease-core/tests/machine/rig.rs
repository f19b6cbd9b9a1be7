//! A scripted rig: one machine, a clock that only the test moves, a real fence.
//!
//! Requests wait in a list until the test takes them by what they are (`"replace v1 e1 s2"`) and
//! answers them. [`Rig::at`] runs the timers up to a time, each at its exact moment. All times are
//! seconds since the machine was made; T = 10 s and R = 2 s, so that M = 2 s and a renewal that was
//! sent at `s` is good until `s + 8`.

use crate::{
    sightings::{found, held, secs},
    world::{Counting, config, id},
};
use fencing::{Clock as _, Fence, FenceControl, MonotonicTime, Reading, testing::ManualClock};
use lease_core::{
    auth::Verdict,
    machine::{
        Action, Config, Draft, EndReason, EpochOrigin, Event, Facts, FenceOrder, FirstStart,
        Machine, Note, Past, Reply, Request, RequestId, Role, Sighting,
    },
    store::{StoreErrorKind, Version},
};
use std::{sync::Arc, time::Duration};

/// Who the rig is.
pub(crate) const ME: &str = "a";

#[derive(Clone)]
pub(crate) struct Sent {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    at: f64,
}

pub(crate) struct Rig {
    pub(crate) machine: Machine,
    pub(crate) clock: ManualClock,
    pub(crate) fence: Option<Fence>,
    /// Every event so far, in order.
    pub(crate) events: Vec<Event>,
    /// Notes for the history that nobody answered yet; empty unless `history_hangs`.
    pub(crate) notes: Vec<(RequestId, Note)>,
    /// Every note so far.
    pub(crate) noted: Vec<Note>,
    /// Questions for the epoch floor that nobody answered yet.
    pub(crate) floors: Vec<RequestId>,
    pub(crate) history_hangs: bool,
    pub(crate) history_works: bool,
    pub(crate) confirms: bool,
    control: Option<FenceControl>,
    sent: Vec<Sent>,
    forgotten: Vec<RequestId>,
    told: usize,
    writes: usize,
    start: MonotonicTime,
    entropy: Counting,
}

/// T = 10 s, R = 2 s, epochs from 1, no history, no spread.
pub(crate) fn plain() -> Config {
    let mut config = config(ME, 10.0, 2.0);
    config.epochs = EpochOrigin::Counter;
    config.has_history = false;
    // Reads come every R; what the phase lock makes of that is its own module's business.
    config.phase_lock = false;
    config
}

/// The same with a change.
pub(crate) fn but(change: impl FnOnce(&mut Config)) -> Config {
    let mut config = plain();
    change(&mut config);
    config
}

impl Rig {
    /// A machine that wants the lease. Its first read is waiting.
    pub(crate) fn new(config: Config, past: Past) -> Self {
        Self::on(ManualClock::new(), config, past)
    }

    pub(crate) fn on(clock: ManualClock, config: Config, past: Past) -> Self {
        let mut rig = Self {
            machine: Machine::new(config, past, clock.reading()),
            start: clock.monotonic(),
            clock,
            fence: None,
            events: Vec::new(),
            notes: Vec::new(),
            noted: Vec::new(),
            floors: Vec::new(),
            history_hangs: false,
            history_works: true,
            confirms: true,
            control: None,
            sent: Vec::new(),
            forgotten: Vec::new(),
            told: 0,
            writes: 0,
            entropy: Counting::from(1),
        };
        rig.with(|machine, now| machine.want(true, now));
        rig
    }

    pub(crate) fn standby() -> Self {
        Self::new(plain(), Past::default())
    }

    /// A standby that sees epoch `epoch` of "b" held since 0, as version "v1".
    pub(crate) fn watching(config: Config, epoch: u64) -> Self {
        let mut rig = Self::new(config, Past::default());
        rig.read("read", held("b", epoch, 1, "v1"));
        rig
    }

    /// Epoch 1 since 0, with version "v1"; no hold-back, since the cluster is known to be new.
    pub(crate) fn active() -> Self {
        Self::active_with(plain())
    }

    pub(crate) fn active_with(mut config: Config) -> Self {
        config.first_start = FirstStart::Immediate;
        let mut rig = Self::new(config, Past::default());
        rig.read("read", Sighting::Missing);
        rig.written("create e1 s1", "v1");
        assert_eq!(rig.machine.role(), Role::Active);
        rig.told = rig.events.len();
        rig
    }

    pub(crate) fn now(&self) -> f64 {
        self.seconds(self.clock.monotonic())
    }

    pub(crate) fn seconds(&self, time: MonotonicTime) -> f64 {
        (time - self.start).as_secs_f64()
    }

    pub(crate) fn time(&self, at: f64) -> MonotonicTime {
        self.start + Duration::from_nanos((at * 1e9).round() as u64)
    }

    /// Runs all timers up to and including `at`, each at its own moment.
    pub(crate) fn at(&mut self, at: f64) -> &mut Self {
        let until = self.time(at);
        assert!(until >= self.clock.monotonic(), "time does not go back");
        while let Some(wake) = self.wake().filter(|wake| *wake <= until) {
            self.clock.advance_to(wake);
            self.with(|machine, now| machine.handle_timeout(now));
        }
        self.clock.advance_to(until);
        self
    }

    /// When the machine wants to be woken.
    pub(crate) fn wake(&self) -> Option<MonotonicTime> {
        self.machine.poll_timeout(self.clock.reading())
    }

    /// Takes the oldest request that is this; fails if there is none.
    #[track_caller]
    pub(crate) fn take(&mut self, what: &str) -> Sent {
        let index = self.sent.iter().position(|sent| sent.says() == what);
        assert!(index.is_some(), "no {what:?} at {:.3} but {:?}", self.now(), self.waiting());
        self.sent.remove(index.unwrap_or_default())
    }

    /// The requests that nobody took, as text.
    pub(crate) fn waiting(&self) -> Vec<String> {
        self.sent.iter().map(Sent::says).collect()
    }

    /// The same with the times of sending.
    pub(crate) fn waiting_since(&self) -> Vec<(String, f64)> {
        self.sent.iter().map(|sent| (sent.says(), sent.at)).collect()
    }

    pub(crate) fn was_forgotten(&self, sent: &Sent) -> bool {
        self.forgotten.contains(&sent.id)
    }

    pub(crate) fn answer(&mut self, sent: &Sent, reply: Reply) {
        let id = sent.id;
        self.with(|machine, now| machine.handle_reply(id, reply, now));
    }

    #[track_caller]
    pub(crate) fn read(&mut self, what: &str, sighting: Sighting) {
        let sent = self.take(what);
        self.answer(&sent, Reply::Read(sighting));
    }

    #[track_caller]
    pub(crate) fn written(&mut self, what: &str, version: &str) -> Sent {
        let sent = self.take(what);
        self.answer(&sent, Reply::Written(Version::new(version)));
        sent
    }

    #[track_caller]
    pub(crate) fn fails(&mut self, what: &str, error: StoreErrorKind) -> Sent {
        let sent = self.take(what);
        self.answer(&sent, Reply::Failed(error));
        sent
    }

    /// Answers every read up to `until` at once with "not modified"; stops early at a write.
    pub(crate) fn unchanged_until(&mut self, until: f64) {
        loop {
            let (reads, writes): (Vec<_>, Vec<_>) =
                self.waiting().into_iter().partition(|it| it.starts_with("read"));
            if !writes.is_empty() {
                return;
            }
            for read in reads {
                self.read(&read, Sighting::NotModified);
            }
            match self.wake().map(|wake| self.seconds(wake)) {
                Some(wake) if wake <= until => self.at(wake),
                _ => break,
            };
        }
        self.at(until);
    }

    /// Answers every request up to `until` at once, as a store does in which nobody else writes:
    /// reads with "not modified", writes with versions "w1", "w2", …
    pub(crate) fn undisturbed_until(&mut self, until: f64) {
        loop {
            while !self.sent.is_empty() {
                let sent = self.sent.remove(0);
                let reply = match &sent.request {
                    Request::Read { .. } => Reply::Read(Sighting::NotModified),
                    _ => {
                        self.writes += 1;
                        Reply::Written(Version::new(format!("w{}", self.writes)))
                    }
                };
                self.answer(&sent, reply);
            }
            match self.wake().map(|wake| self.seconds(wake)) {
                Some(wake) if wake <= until => self.at(wake),
                _ => break,
            };
        }
        self.at(until);
    }

    /// The epochs taken over, opened and ended, and why, since the last look.
    #[track_caller]
    pub(crate) fn expect(&mut self, expected: &[&str]) {
        let news: Vec<_> = self.events[self.told..].iter().filter_map(major).collect();
        assert_eq!(news, expected, "at {:.3}", self.now());
        self.told = self.events.len();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.fence.as_ref().is_some_and(Fence::is_open)
    }

    pub(crate) fn role(&self) -> Role {
        self.machine.role()
    }

    /// Until when the tenure is proved.
    pub(crate) fn deadline(&self) -> Option<f64> {
        self.machine.deadline().map(|deadline| self.seconds(deadline))
    }

    pub(crate) fn with(&mut self, act: impl FnOnce(&mut Machine, Reading)) {
        let now = self.clock.reading();
        act(&mut self.machine, now);
        self.settle();
    }

    pub(crate) fn settle(&mut self) {
        let now = self.clock.reading();
        for turn in 0.. {
            assert!(turn < 1_000, "it never comes to rest: {:#?}", self.machine);
            let action = self.machine.poll_action(now, &mut self.entropy);
            let is_idle = action.is_none();
            if let Some(action) = action {
                self.act(action, now);
            }
            let events_before = self.events.len();
            while let Some(event) = self.machine.poll_event() {
                if let Event::TakingOver { epoch, .. } = event {
                    let control = FenceControl::new(epoch, Arc::new(self.clock.clone()));
                    self.fence = Some(control.fence());
                    self.control = Some(control);
                    if self.confirms {
                        self.machine.confirm(now);
                    }
                }
                self.events.push(event);
            }
            if is_idle && events_before == self.events.len() {
                break;
            }
        }
        let wake = self.machine.poll_timeout(now);
        assert!(
            wake.is_none_or(|wake| wake > now.monotonic),
            "it has done all it can and wants to wake at once: {:#?}",
            self.machine
        );
    }

    fn act(&mut self, action: Action, now: Reading) {
        match action {
            Action::Fence(FenceOrder::Open { sent, window }) => {
                let control = self.control.as_mut().expect("no fence to open");
                control.open(sent, window).expect("it opens");
            }
            Action::Fence(FenceOrder::Extend { sent, window }) => {
                let control = self.control.as_mut().expect("no fence to extend");
                control.extend(sent, window).expect("it is extended");
            }
            Action::Fence(_) => self.control = None,
            Action::FetchFloor(id) => self.floors.push(id),
            Action::Forget(id) => {
                self.sent.retain(|sent| sent.id != id);
                self.forgotten.push(id);
            }
            Action::Persist(id, note) => {
                self.noted.push(note.clone());
                match self.history_hangs {
                    true => self.notes.push((id, note)),
                    false => self.machine.handle_persisted(id, self.history_works, now),
                }
            }
            Action::Send(id, request) => {
                self.sent.push(Sent { id, request, at: self.now() });
            }
            other => unreachable!("what is {other:?}?"),
        }
    }
}

impl Sent {
    /// What it is, in a few words.
    pub(crate) fn says(&self) -> String {
        let draft = |draft: &Draft| format!("e{} s{}", draft.epoch.as_u64(), draft.seq);
        match &self.request {
            Request::Create(it) => format!("create {}", draft(it)),
            Request::Read { unless: None } => "read".to_owned(),
            Request::Read { unless: Some(version) } => format!("read unless {version}"),
            Request::Replace(it, version) if it.held => format!("replace {version} {}", draft(it)),
            Request::Replace(it, version) => format!("release {version} {}", draft(it)),
            other => format!("{other:?}"),
        }
    }

    pub(crate) fn draft(&self) -> &Draft {
        match &self.request {
            Request::Create(draft) | Request::Replace(draft, _) => draft,
            other => unreachable!("{other:?} is no write"),
        }
    }

    /// What a read shows once this very write has landed as `version`.
    pub(crate) fn landed(&self, version: &str) -> Sighting {
        let Draft { epoch, seq, nonce, held, .. } = *self.draft();
        let holder = held.then(|| id(ME));
        let facts = Facts::new(holder, epoch, seq, Some(nonce), secs(10));
        found(facts, Verdict::Unsigned, version)
    }
}

fn major(event: &Event) -> Option<String> {
    match event {
        Event::TakingOver { epoch, held_back_until: None, .. } => {
            Some(format!("taking over e{}", epoch.as_u64()))
        }
        Event::TakingOver { epoch, .. } => {
            Some(format!("taking over e{} held back", epoch.as_u64()))
        }
        Event::Active { epoch } => Some(format!("active e{}", epoch.as_u64())),
        Event::Ended { epoch, reason } => {
            Some(format!("ended e{}: {}", epoch.as_u64(), why(reason)))
        }
        Event::EpochsExhausted => Some("exhausted".to_owned()),
        Event::IdentityShared { epoch } => Some(format!("identity shared e{}", epoch.as_u64())),
        Event::Refused => Some("refused".to_owned()),
        Event::TtlDiffers { seen, .. } => Some(format!("ttl {seen:?}")),
        _ => None,
    }
}

fn why(reason: &EndReason) -> String {
    match reason {
        EndReason::TakenOver { by, epoch } => {
            let by = by.as_ref().map_or("nobody", |by| by.as_str());
            format!("taken over by {by} e{}", epoch.as_u64())
        }
        other => format!("{other:?}"),
    }
}
