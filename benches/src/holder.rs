//! An instance that holds the lease, its machine driven by hand.

use bytes::Bytes;
use fencing::{Clock as _, FenceControl, MonotonicTime, Reading, testing::ManualClock};
use lease_core::{
    Timing, Version,
    auth::{Authenticator, ClusterSecret},
    key::{ClusterName, InstanceId, ObjectKey},
    machine::{
        Action, Config, Draft, Entropy, Event, FenceOrder, FirstStart, Machine, Past, Reply,
        Request, RequestId, Role, Sighting,
    },
    record::{Label, Nonce, Ttl},
    wire::Wire,
};
use std::{fmt, hint::black_box, sync::Arc};

/// What a holder asks of its store: to create the lease, or to replace that version of it.
#[derive(Clone, Debug)]
pub struct Write {
    /// The record.
    pub content: Bytes,
    /// Which version; `None` creates.
    pub replaces: Option<Version>,
}

/// An instance whose lease is held and whose fence is open. Everything here panics if that ends.
pub struct Holder {
    machine: Machine,
    clock: ManualClock,
    wire: Wire,
    control: Option<FenceControl>,
}

impl fmt::Debug for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holder").field("machine", &self.machine).finish_non_exhaustive()
    }
}

impl Holder {
    /// Creates the lease in an empty store and opens its fence.
    pub fn active(store: &mut impl FnMut(Write) -> Version) -> Self {
        let (clock, timing) = (ManualClock::new(), Timing::default());
        let wire = wire();
        let mut config = Config::new(wire.instance.clone(), timing);
        config.first_start = FirstStart::Immediate;
        config.has_secret = true;
        let machine = Machine::new(config, Past::default(), clock.reading());
        let mut holder = Self { machine, clock, wire, control: None };
        holder.machine.want(true, holder.clock.reading());
        holder.settle(store);
        holder.machine.confirm(holder.clock.reading());
        holder.settle(store);
        assert_eq!(holder.machine.role(), Role::Active);
        holder
    }

    /// Lets the time come for one renewal, and carries it out to the fence that it extends.
    pub fn renew(&mut self, store: &mut impl FnMut(Write) -> Version) {
        let due = self.machine.poll_timeout(self.clock.reading()).expect("it is active");
        self.clock.advance_to(due);
        self.machine.handle_timeout(self.clock.reading());
        let writes = self.settle(store);
        assert_eq!(writes, 1, "one renewal is one write");
    }

    fn settle(&mut self, store: &mut impl FnMut(Write) -> Version) -> usize {
        let mut writes = 0;
        while let Some(action) = self.machine.poll_action(self.clock.reading(), &mut System) {
            match action {
                Action::Fence(order) => self.order(order),
                Action::Persist(id, _) => {
                    self.machine.handle_persisted(id, true, self.clock.reading());
                }
                Action::Send(id, Request::Read { .. }) => {
                    self.reply(id, Reply::Read(Sighting::Missing));
                }
                Action::Send(id, request) => {
                    writes += 1;
                    let (draft, replaces) = match request {
                        Request::Replace(draft, version) => (draft, Some(version)),
                        Request::Create(draft) => (draft, None),
                        other => unreachable!("{other:?} is no write"),
                    };
                    let content = self.wire.encode(&draft);
                    let version = store(Write { content, replaces });
                    self.reply(id, Reply::Written(version));
                }
                _ => {}
            }
        }
        while let Some(event) = self.machine.poll_event() {
            if let Event::TakingOver { epoch, .. } = event {
                self.control = Some(FenceControl::new(epoch, Arc::new(self.clock.clone())));
            }
        }
        writes
    }

    fn reply(&mut self, id: RequestId, reply: Reply) {
        self.machine.handle_reply(id, reply, self.clock.reading());
    }

    fn order(&mut self, order: FenceOrder) {
        let control = self.control.as_mut().expect("it has taken over");
        let done = match order {
            FenceOrder::Extend { sent, window } => control.extend(sent, window),
            FenceOrder::Open { sent, window } => control.open(sent, window),
            other => unreachable!("{other:?}: nothing shuts it here"),
        };
        done.expect("the fence is open");
    }
}

/// The machine of a holder alone: no clock, no store, no encoding, no fence, counted nonces.
#[derive(Debug)]
pub struct Steps {
    machine: Machine,
    now: Reading,
    entropy: Counted,
    versions: [Version; 2],
    step: usize,
}

impl Steps {
    /// A holder that is active.
    #[must_use]
    pub fn active() -> Self {
        let versions = [Version::new("\"one\""), Version::new("\"another\"")];
        let holder = Holder::active(&mut |_| versions[1].clone());
        let now = holder.clock.reading();
        Self { machine: holder.machine, now, entropy: Counted(0), versions, step: 0 }
    }

    /// One renewal: it comes due, is sent, is answered, and its fence and event are told.
    pub fn renew(&mut self) {
        let due = self.machine.poll_timeout(self.now).expect("it is active");
        self.pass(due);
        self.machine.handle_timeout(self.now);
        let sent = self.machine.poll_action(self.now, &mut self.entropy);
        let Some(Action::Send(id, Request::Replace(draft, version))) = sent else {
            unreachable!("a renewal is due, not {sent:?}");
        };
        black_box((draft, version));
        self.step ^= 1;
        let version = self.versions[self.step].clone();
        self.machine.handle_reply(id, Reply::Written(version), self.now);
        let extends = self.machine.poll_action(self.now, &mut self.entropy);
        assert!(matches!(extends, Some(Action::Fence(FenceOrder::Extend { .. }))));
        assert_eq!(self.machine.poll_action(self.now, &mut self.entropy), None);
        assert!(matches!(self.machine.poll_event(), Some(Event::Renewed { .. })));
        assert_eq!(self.machine.poll_event(), None);
    }

    fn pass(&mut self, until: MonotonicTime) {
        let by = until - self.now.monotonic;
        self.now = Reading { monotonic: until, wall: self.now.wall + by };
    }
}

/// Nonces from the operating system, as the runner draws them.
struct System;

impl Entropy for System {
    fn nonce(&mut self) -> Nonce {
        Nonce::random().expect("the system has random bits")
    }
}

/// Nonces that cost nothing: what the system takes for its own is no part of a machine.
#[derive(Debug)]
pub struct Counted(u128);

impl Entropy for Counted {
    fn nonce(&mut self) -> Nonce {
        self.0 += 1;
        Nonce::from_bytes(self.0.to_be_bytes())
    }
}

/// What writes and judges the records of the holder.
#[must_use]
pub fn wire() -> Wire {
    Wire {
        auth: Authenticator::new(cluster(), Some(&secret())),
        instance: InstanceId::new("0f1e2d3c4b5a69788796a5b4c3d2e1f0").expect("it is an id"),
        name: Label::new("orders-0").expect("it is a label"),
        ttl: Ttl::new(Timing::default().ttl()).expect("it is in range"),
    }
}

/// What the machine of a holder wants written.
#[must_use]
pub fn draft() -> Draft {
    let mut drafts = Vec::new();
    let mut holder = Holder::active(&mut |_| Version::new("a"));
    let due = holder.machine.poll_timeout(holder.clock.reading()).expect("it is active");
    holder.clock.advance_to(due);
    while let Some(action) = holder.machine.poll_action(holder.clock.reading(), &mut System) {
        if let Action::Send(_, Request::Replace(draft, _)) = action {
            drafts.push(draft);
        }
    }
    drafts.pop().expect("a renewal was due")
}

/// Where its lease is.
#[must_use]
pub fn lease_key() -> ObjectKey {
    cluster().lease_key()
}

/// The secret of its cluster.
#[must_use]
pub fn secret() -> ClusterSecret {
    ClusterSecret::new(b"only what is measured here uses it").expect("it is long enough")
}

fn cluster() -> ClusterName {
    ClusterName::new("orders").expect("it is a name")
}
