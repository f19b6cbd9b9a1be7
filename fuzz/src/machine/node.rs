//! One instance: the process that runs, its clock, its disk, its way to the store.

use super::{
    checks::{Acquisitions, Tenures},
    schedule::{Clocks, Setup},
    store::Place,
};
use fencing::{
    Clock as _, Epoch, Fence, FenceControl, MonotonicTime, Reading, testing::ManualClock,
};
use lease_core::{
    key::InstanceId,
    machine::{
        Action, Config, Entropy, EpochOrigin, Event, FenceOrder, FirstStart, Machine, Note, Past,
        Reply, RequestId, Role, TrustRelease,
    },
    record::{Nonce, TenureMark},
    store::StoreErrorKind,
    timing::Timing,
};
use std::{sync::Arc, time::Duration};

/// The most that a machine may want done in one go.
const MAX_ACTIONS: usize = 100;
/// How many answers are kept to be repeated.
const MAX_REPLIES: usize = 8;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) config: Config,
    pub(super) clock: ManualClock,
    pub(super) process: Option<Process>,
    /// Counts processes: what was meant for an earlier one is not delivered.
    pub(super) life: u32,
    pub(super) disk: Disk,
    pub(super) reclaims: bool,
    pub(super) link: Link,
    pub(super) disk_fate: DiskFate,
    pub(super) floor_fate: FloorFate,
    pub(super) confirms: bool,
    /// The process does not run before.
    pub(super) paused_until: Duration,
    /// The whole machine sleeps since then, and its monotonic clock shows so much of it.
    pub(super) asleep: Option<(Duration, Duration)>,
    pub(super) ppm: u64,
}

#[derive(Debug)]
pub(super) struct Process {
    pub(super) machine: Machine,
    pub(super) wake: Option<MonotonicTime>,
    pub(super) fence: Option<Fence>,
    control: Option<FenceControl>,
    pub(super) tenures: Tenures,
    pub(super) acquisitions: Acquisitions,
    /// What the last read that was answered showed, if anything was there.
    pub(super) shown: Option<Place>,
    pub(super) last_release: Option<Nonce>,
    /// Requests that count, and when they were sent.
    pub(super) open: Vec<(RequestId, MonotonicTime)>,
    pub(super) replies: Vec<(RequestId, Reply)>,
}

/// What a restart does not forget.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    pub(super) past: Past,
    pub(super) opened: Option<TenureMark>,
}

impl Disk {
    pub(super) fn write(&mut self, note: &Note) {
        if note.opened.is_some() {
            self.past.last_epoch = self.past.last_epoch.max(note.opened.map(|tenure| tenure.epoch));
            self.opened = note.opened;
        }
        self.past.last_release = note.release.or(self.past.last_release);
        self.past.seen_authenticated |= note.seen_authenticated;
        self.past.largest_ttl = note.largest_ttl.or(self.past.largest_ttl);
    }
}

/// How a node's requests fare, looked at when one is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) out: Duration,
    pub(super) back: Duration,
    pub(super) fate: Fate,
    /// For how many more requests; then all is well again.
    pub(super) times: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Answered,
    AnsweredTwice,
    /// Never arrives, never answered.
    Lost,
    /// Acts, is never answered.
    Unanswered,
    /// Never arrives; the sender is told so.
    Failed(StoreErrorKind),
    /// Acts when it arrives, but the sender is told this, perhaps long before.
    InDoubt(StoreErrorKind),
}

impl Fate {
    pub(super) fn of(number: u8) -> Self {
        match number & 15 {
            0 | 1 => Self::Answered,
            2 => Self::AnsweredTwice,
            3 | 4 => Self::Lost,
            5..=7 => Self::Unanswered,
            8 => Self::Failed(StoreErrorKind::InDoubt),
            9 => Self::Failed(StoreErrorKind::Unavailable),
            10 => Self::Failed(StoreErrorKind::Contended),
            11 => Self::Failed(StoreErrorKind::Corrupt),
            12..=14 => Self::InDoubt(StoreErrorKind::InDoubt),
            _ => Self::Failed(StoreErrorKind::Unsupported),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DiskFate {
    Written,
    WrittenLate(Duration),
    Refused,
    /// Written, but the process is told that it may not be.
    InDoubt(Duration),
    Hangs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FloorFate {
    Told(Duration),
    Fails(Duration),
}

/// Nonces that nobody drew before.
#[derive(Debug, Default)]
pub(super) struct Counting(u128);

impl Entropy for Counting {
    fn nonce(&mut self) -> Nonce {
        self.0 += 1;
        Nonce::from_bytes(self.0.to_be_bytes())
    }
}

/// What a machine wants of the world around its process.
#[derive(Debug)]
pub(super) enum Wanted {
    Send(RequestId, lease_core::machine::Request),
    Persist(RequestId, Note),
    Floor(RequestId),
    /// A fence opened.
    Opened(Epoch),
}

impl Node {
    pub(super) fn new(setup: &Setup, number: usize) -> Self {
        let (ttl, renew) = setup.timings[number];
        let millis = Duration::from_millis;
        let timing = Timing::short(millis(ttl), millis(renew)).expect("a timing");
        let timing = timing.with_max_cluster_ttl(setup.largest_ttl()).expect("the largest");
        let name = if setup.cloned && number == 1 { 0 } else { number };
        let instance = InstanceId::new(["a", "b", "c"][name]).expect("an id");
        let mut config = Config::new(instance, timing);
        if setup.counter {
            config.epochs = EpochOrigin::Counter;
        }
        if setup.first_start_at_once {
            config.first_start = FirstStart::Immediate;
        }
        if setup.trusts_releases {
            config.trust_release = TrustRelease::Always;
        }
        if setup.short_budget {
            config.takeover_budget = timing.ttl() * 2;
        }
        config.phase_lock = setup.phase_lock;
        config.keep_out_after_release = setup.keeps_out;
        config.has_secret = setup.has_secret;
        config.has_floor = setup.has_floor;
        config.has_history = setup.has_history;
        config.jitter_seed = setup.has_jitter.then_some(number as u64);
        let out = Duration::from_millis(1);
        Self {
            config,
            clock: ManualClock::new(),
            process: None,
            life: 0,
            disk: Disk::default(),
            reclaims: setup.reclaims && setup.has_history,
            link: Link { out, back: out, fate: Fate::Answered, times: 0 },
            disk_fate: DiskFate::Written,
            floor_fate: FloorFate::Told(Duration::ZERO),
            confirms: true,
            paused_until: Duration::ZERO,
            asleep: None,
            ppm: 1_000_000,
        }
    }

    pub(super) fn start(&mut self) {
        let mut past = self.disk.past.clone();
        past.reclaimable = self.disk.opened.filter(|_| self.reclaims);
        let mut acquisitions = Acquisitions::default();
        acquisitions.told(past.last_epoch);
        self.life += 1;
        let now = self.clock.reading();
        let mut machine = Machine::new(self.config.clone(), past, now);
        machine.want(true, now);
        self.process = Some(Process {
            machine,
            wake: None,
            fence: None,
            control: None,
            tenures: Tenures::default(),
            acquisitions,
            shown: None,
            last_release: None,
            open: Vec::new(),
            replies: Vec::new(),
        });
    }

    pub(super) fn is_open(&self) -> bool {
        let fence = self.process.as_ref().and_then(|process| process.fence.as_ref());
        self.asleep.is_none() && fence.is_some_and(Fence::is_open)
    }

    pub(super) fn role(&self) -> Option<Role> {
        self.process.as_ref().map(|process| process.machine.role())
    }

    pub(super) fn advance(&self, by: Duration) {
        if self.asleep.is_none() {
            self.clock.advance(by);
        }
    }

    pub(super) fn awake(&mut self, time: Duration) {
        if let Some((since, standing)) = self.asleep.take() {
            self.clock.suspend(time - since, standing);
        }
    }

    pub(super) fn falls_asleep(
        &mut self,
        clocks: Clocks,
        time: Duration,
        slept: Duration,
        quarters: u8,
    ) {
        self.paused_until = time + slept;
        if clocks != Clocks::Jumping {
            self.asleep = Some((time, slept * u32::from(quarters.min(3)) / 4));
        }
    }

    /// In how much true time the process has something to do, if it runs.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let wake = self.process.as_ref()?.wake?;
        let local = (wake - self.clock.monotonic()).as_nanos();
        let nanos = (local * 1_000_000).div_ceil(u128::from(self.ppm));
        // A clock that is off rounds down: without a little more it would not be due yet.
        let rounding = if local == 0 || self.ppm == 1_000_000 { 0 } else { 1_000 };
        Some(Duration::from_nanos(
            u64::try_from(nanos).unwrap_or(u64::MAX).saturating_add(rounding),
        ))
    }

    /// Carries out what the machine wants, until it wants no more; returns what it asks of others.
    pub(super) fn settle(&mut self, entropy: &mut Counting) -> Vec<Wanted> {
        let mut wanted = Vec::new();
        let Some(process) = &mut self.process else { return wanted };
        let mut actions = 0;
        loop {
            let mut is_idle = true;
            let now = self.clock.reading();
            while let Some(action) = process.machine.poll_action(now, entropy) {
                is_idle = false;
                actions += 1;
                assert!(actions < MAX_ACTIONS, "no end of actions: {:#?}", process.machine);
                wanted.extend(process.act(action, now));
            }
            while let Some(event) = process.machine.poll_event() {
                is_idle = false;
                process.happened(&event, &self.clock);
                if self.confirms && matches!(event, Event::TakingOver { .. }) {
                    process.machine.confirm(now);
                }
            }
            if is_idle {
                break;
            }
        }
        let now = self.clock.reading();
        process.wake = process.machine.poll_timeout(now);
        let is_over = matches!(process.machine.role(), Role::Refused | Role::Stopped);
        // One that is over may still have marks to write.
        assert!(process.wake.is_some() || is_over, "when does it wake? {:#?}", process.machine);
        assert!(
            process.wake.is_none_or(|wake| wake > now.monotonic),
            "it has done all it can and wants to wake at once: {:#?}",
            process.machine
        );
        let window = self.config.timing.window();
        process.tenures.at_rest(&process.machine, process.fence.as_ref(), window, now);
        wanted
    }
}

impl Process {
    fn act(&mut self, action: Action, now: Reading) -> Option<Wanted> {
        match action {
            Action::Send(id, request) => {
                self.open.push((id, now.monotonic));
                return Some(Wanted::Send(id, request));
            }
            Action::Persist(id, note) => return Some(Wanted::Persist(id, note)),
            Action::FetchFloor(id) => return Some(Wanted::Floor(id)),
            Action::Forget(id) => self.open.retain(|(open, _)| *open != id),
            Action::Fence(FenceOrder::Shut) => self.control = None,
            Action::Fence(FenceOrder::Extend { sent, window }) => {
                let control = self.control.as_mut().expect("it is open");
                assert!(self.tenures.proves(control.fence().epoch(), sent), "extended by nothing");
                // Its wall clock may have shut it meanwhile.
                if let Err(shut) = control.extend(sent, window) {
                    self.machine.handle_fence_shut(shut.epoch, now);
                }
            }
            Action::Fence(FenceOrder::Open { sent, window }) => {
                let control = self.control.as_mut().expect("a tenure has a fence");
                let epoch = control.fence().epoch();
                assert!(self.tenures.proves(epoch, sent), "opened by nothing");
                assert!(!self.fence.as_ref().is_some_and(Fence::is_open), "opened twice");
                match control.open(sent, window) {
                    Ok(()) => return Some(Wanted::Opened(epoch)),
                    Err(_) => self.machine.handle_fence_shut(epoch, now),
                }
            }
            other => panic!("what is {other:?}?"),
        }
        None
    }

    fn happened(&mut self, event: &Event, clock: &ManualClock) {
        self.tenures.event(event);
        match event {
            Event::TakingOver { epoch, .. } => {
                self.acquisitions.took();
                let control = FenceControl::new(*epoch, Arc::new(clock.clone()));
                self.fence = Some(control.fence());
                self.control = Some(control);
            }
            Event::EpochsExhausted => panic!("an epoch was believed that nobody signed"),
            _ => {}
        }
    }

    pub(super) fn remember(&mut self, id: RequestId, reply: &Reply) {
        if self.replies.len() == MAX_REPLIES {
            self.replies.remove(0);
        }
        self.replies.push((id, reply.clone()));
    }
}
