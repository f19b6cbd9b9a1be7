//! One state: the machines, their fences, the requests on their way, and the object in the store.
//!
//! States are compared as they are. What would keep equal futures apart is kept out of them instead:
//!
//! - Time is counted in ticks from the start, and a run has so many. States of unequal time have
//!   unequal futures then, so shifting it would merge nothing.
//! - Nonces are the number of the host and a counter, versions are made of them: two orders of steps
//!   that lead to the same do so under the same names.
//! - A write that nobody waits for and that cannot land any more is taken off its way at once (see
//!   `Stage::forget_the_dead`), and requests are kept in one order.
//! - What happened in the last step (`marks`) is wiped by the next.

use super::{
    check::{Broken, Marks},
    machine::{Driven, Kept},
    setting::{Fault, Setting},
};
use lease_core::{
    auth::Verdict,
    fencing::{Epoch, MonotonicTime, Reading, WallTime},
    key::InstanceId,
    machine::{
        Config, Draft, Entropy, Facts, FirstStart, Note, Past, Reply, Request, RequestId, Role,
        Sighting,
    },
    record::{Nonce, TenureMark},
    store::Version,
};
use std::{collections::VecDeque, sync::Arc, time::Duration};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    /// Ticks since the beginning.
    pub(crate) now: u16,
    pub(crate) object: Option<Object>,
    /// What stood there before, if it may be put back.
    pub(crate) former: Vec<Former>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) requests: Vec<Sent>,
    /// How many more things may go wrong.
    pub(crate) faults: u8,
    /// The highest epoch whose fence was open.
    pub(crate) highest: Option<Epoch>,
    pub(crate) broken: Option<Broken>,
    pub(crate) marks: Marks,
}

/// What the store holds. Versions come from content: what is put back has its old one.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Object {
    pub(crate) version: Version,
    pub(crate) facts: Option<Arc<Facts>>,
}

impl Object {
    /// The record that `draft` becomes in the hands of `writer`. Its version is made of its nonce,
    /// which differs between any two of them.
    pub(crate) fn new(draft: &Draft, writer: &InstanceId, ttl: Duration) -> Self {
        let holder = draft.held.then(|| writer.clone());
        let facts = Facts::new(holder, draft.epoch, draft.seq, Some(draft.nonce), ttl);
        let bytes = draft.nonce.as_bytes();
        let count = u16::from_be_bytes([bytes[14], bytes[15]]);
        let version = Version::new(format!("v{}.{count}", bytes[3]));
        Self { version, facts: Some(Arc::new(facts)) }
    }

    pub(crate) fn sighting(&self) -> Sighting {
        let verdict = match self.facts {
            Some(_) => Verdict::Unsigned,
            None => Verdict::Unreadable,
        };
        let (version, facts) = (self.version.clone(), self.facts.clone());
        Sighting::Found { version, verdict, facts, age: None }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Former {
    pub(crate) object: Object,
    /// The tick at which it was last there.
    pub(crate) last_there: u16,
}

/// A request on its way, or its answer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Sent {
    pub(crate) host: usize,
    /// `None`: nobody waits for the answer any more.
    pub(crate) id: Option<RequestId>,
    pub(crate) request: Request,
    /// What it would write.
    pub(crate) object: Option<Object>,
    /// The process that sent it is gone.
    pub(crate) is_left_behind: bool,
    /// When it was sent, on the sender's clock.
    pub(crate) at: MonotonicTime,
    /// The answer, if it is that which is on its way.
    pub(crate) answer: Option<Reply>,
    /// It takes no time, unless something goes wrong with it.
    pub(crate) is_quick: bool,
    /// It does not arrive at this tick.
    pub(crate) is_held_up: bool,
}

impl Sent {
    pub(crate) fn draft(&self) -> Option<&Draft> {
        match &self.request {
            Request::Create(draft) | Request::Replace(draft, _) => Some(draft),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Host {
    pub(crate) machine: Option<Driven>,
    pub(crate) instance: InstanceId,
    pub(crate) directory: Directory,
    /// Notes that the disk has not taken yet.
    pub(crate) notes: VecDeque<(RequestId, Note)>,
    pub(crate) stands: Stands,
    pub(crate) is_cut: bool,
    /// For how many ticks its monotonic clock did not count.
    pub(crate) asleep: u16,
    /// How many nonces were drawn here.
    pub(crate) drawn: u32,
    /// The last tenure of this process.
    pub(crate) tenure: Option<Tenure>,
    /// The epoch of this process that a write landed under last, and when the latest such write was
    /// sent.
    pub(crate) landed: Option<(Epoch, MonotonicTime)>,
    /// The last release that this instance sent.
    pub(crate) last_release: Option<Nonce>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Stands {
    Not,
    Paused,
    Suspended,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Tenure {
    pub(crate) epoch: Epoch,
    pub(crate) fence: Fence,
    pub(crate) is_over: bool,
    /// It began with a lease that was missing.
    pub(crate) was_missing: bool,
}

/// A fence as its orders make it, kept as data: the clocks are looked at when it is asked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fence {
    NotOpen,
    Until { deadline: MonotonicTime, wall_limit: WallTime },
    Shut,
}

impl Fence {
    /// Half-open: at its deadline it is shut.
    pub(crate) fn is_open(self, now: Reading, kept: &Kept) -> bool {
        match self {
            Self::Until { deadline, wall_limit } => {
                let is_past_on_wall = kept.wall_clock_is_looked_at && now.wall >= wall_limit;
                now.monotonic < deadline && !is_past_on_wall
            }
            Self::NotOpen | Self::Shut => false,
        }
    }
}

/// What survives a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Directory {
    pub(crate) past: Past,
    pub(crate) opened_here: Option<TenureMark>,
}

impl Directory {
    pub(crate) fn write(&mut self, note: &Note) {
        self.past.last_epoch = self.past.last_epoch.max(note.opened.map(|tenure| tenure.epoch));
        self.opened_here = note.opened.or(self.opened_here);
        self.past.last_release = note.release.or(self.past.last_release);
        self.past.largest_ttl = self.past.largest_ttl.max(note.largest_ttl);
    }
}

/// The nonces of one host: its number and a counter.
pub(crate) struct Counted<'a> {
    pub(crate) host: usize,
    pub(crate) drawn: &'a mut u32,
}

impl Entropy for Counted<'_> {
    fn nonce(&mut self) -> Nonce {
        *self.drawn += 1;
        let mut bytes = [0; 16];
        bytes[3] = u8::try_from(self.host).unwrap_or(u8::MAX);
        // The tag of a tenure is the first half of the nonce that it begins with.
        bytes[4..8].copy_from_slice(&self.drawn.to_be_bytes());
        bytes[12..].copy_from_slice(&self.drawn.to_be_bytes());
        Nonce::from_bytes(bytes)
    }
}

pub(crate) fn holds(role: Role) -> bool {
    matches!(role, Role::Active | Role::Releasing | Role::TakingOver)
}

impl Host {
    pub(crate) fn is_running(&self) -> bool {
        self.machine.is_some() && self.stands == Stands::Not
    }

    fn new(number: usize) -> Self {
        Self {
            machine: None,
            instance: name(number, 0),
            directory: Directory::default(),
            notes: VecDeque::new(),
            stands: Stands::Not,
            is_cut: false,
            asleep: 0,
            drawn: 0,
            tenure: None,
            landed: None,
            last_release: None,
        }
    }
}

/// The name of an instance: that of its host, and how often a directory was lost there.
pub(crate) fn name(host: usize, lost: u32) -> InstanceId {
    let text = format!("{}{lost}", char::from(b'a' + u8::try_from(host).unwrap_or(25)));
    InstanceId::new(&text).unwrap_or_else(|_| unreachable!("a plain name"))
}

impl World {
    /// The world before anything has happened: every process has just been started.
    pub(crate) fn new(setting: &Setting) -> Self {
        let mut world = Self {
            now: 0,
            object: None,
            former: Vec::new(),
            hosts: (0..setting.timings.len()).map(Host::new).collect(),
            requests: Vec::new(),
            faults: setting.faults,
            highest: None,
            broken: None,
            marks: Marks::default(),
        };
        for host in 0..world.hosts.len() {
            // Nobody else has ever had this lease.
            world.start(setting, host, setting.starts_held);
        }
        world
    }

    /// A process is started on a host that has none. `is_new`: it is told that the cluster is new.
    pub(crate) fn start(&mut self, setting: &Setting, number: usize, is_new: bool) {
        let now = self.reading(setting, number);
        let host = &mut self.hosts[number];
        let mut config = Config::new(host.instance.clone(), setting.timings[number]);
        config.epochs = setting.epochs;
        config.first_start = match is_new {
            true => FirstStart::Immediate,
            false => FirstStart::HeldBack,
        };
        config.phase_lock = false;
        config.has_history = setting.has_history;
        let mut past = host.directory.past.clone();
        past.reclaimable = host.directory.opened_here.filter(|_| setting.reclaim);
        let mut machine = setting.kept.machine(config, past, now);
        machine.want(true, now);
        host.machine = Some(machine);
    }

    /// Both clocks of a host. Each has an origin of its own.
    pub(crate) fn reading(&self, setting: &Setting, host: usize) -> Reading {
        let rate = setting.rates[host];
        let shown = |ticks: u16| setting.tick * u32::from(ticks) * rate / 100;
        let origin = Duration::from_secs(1_000) * (1 + u32::try_from(host).unwrap_or(0));
        Reading {
            monotonic: MonotonicTime::from_nanos(0)
                + origin
                + shown(self.now - self.hosts[host].asleep),
            wall: WallTime::from_unix_seconds(1_767_225_600)
                + shown(self.now) * setting.wall_rate / 100,
        }
    }

    /// Whether a timer of the machine on this host is due.
    pub(crate) fn is_due(&self, setting: &Setting, number: usize) -> bool {
        let host = &self.hosts[number];
        let now = self.reading(setting, number);
        let machine = host.machine.as_ref().filter(|_| host.is_running());
        let due = machine.and_then(|machine| machine.poll_timeout(now));
        due.is_some_and(|due| due <= now.monotonic)
    }

    /// Whether a record that stood there once may be put back.
    pub(crate) fn may_be_put_back(&self, setting: &Setting) -> bool {
        self.faults > 0 && setting.kinds.contains(&Fault::PutBack)
    }

    /// Which records a person with a backup may put back: not within the claims that the protocol
    /// does not make (see `lease_core::testing::sim`): none that a standby may have seen within 2R,
    /// no release of an epoch that was there within that time, nobody's own last release, and nothing
    /// that a takeover or a release on its way would land on.
    pub(crate) fn harmful(&self, setting: &Setting) -> impl Iterator<Item = usize> {
        let renew = setting.timings.iter().map(|timing| timing.renew()).max().unwrap_or_default();
        let blind = (renew * 3).as_nanos() / setting.tick.as_nanos().max(1);
        let since = u128::from(self.now).checked_sub(blind);
        let is_old =
            move |it: &Former| since.is_some_and(|since| u128::from(it.last_there) <= since);
        let recent = self.former.iter().filter(move |it| !is_old(it)).map(|it| &it.object);
        let recent: Vec<_> =
            recent.chain(&self.object).filter_map(|it| Some(it.facts.as_ref()?.epoch)).collect();
        self.former.iter().enumerate().filter_map(move |(at, former)| {
            let facts = former.object.facts.as_ref()?;
            let is_release = facts.holder.is_none();
            let is_last_release = self
                .hosts
                .iter()
                .any(|host| facts.nonce.is_some() && host.last_release == facts.nonce);
            let is_awaited = self.requests.iter().any(|sent| {
                let Request::Replace(draft, expected) = &sent.request else { return false };
                let hands_over = !draft.held || draft.seq == 1;
                hands_over && *expected == former.object.version
            });
            let is_fit = is_old(former)
                && !is_awaited
                && !(is_release && (is_last_release || recent.contains(&facts.epoch)));
            is_fit.then_some(at)
        })
    }
}
