//! An instance that holds the lease, its machine driven by hand.

use bytes::Bytes;
use fencing::{Clock as _, FenceControl, testing::ManualClock};
use lease_core::{
    Timing, Version,
    auth::{Authenticator, ClusterSecret},
    key::{ClusterName, InstanceId, ObjectKey},
    machine::{
        Action, Config, Entropy, Event, FenceOrder, FirstStart, Machine, Past, Reply, Request,
        RequestId, Role, Sighting,
    },
    record::{Label, Nonce, Ttl},
    wire::Wire,
};
use std::sync::Arc;

/// What a holder asks of its store: to create the lease, or to replace that version of it.
pub(crate) struct Write {
    pub(crate) content: Bytes,
    pub(crate) replaces: Option<Version>,
}

pub(crate) struct Holder {
    machine: Machine,
    clock: ManualClock,
    wire: Wire,
    control: Option<FenceControl>,
}

impl Holder {
    /// Creates the lease in an empty store and opens its fence.
    pub(crate) fn active(store: &mut impl FnMut(Write) -> Version) -> Self {
        let (clock, timing) = (ManualClock::new(), Timing::default());
        let instance = InstanceId::new("0f1e2d3c4b5a69788796a5b4c3d2e1f0").expect("it is an id");
        let mut config = Config::new(instance.clone(), timing);
        config.first_start = FirstStart::Immediate;
        config.has_secret = true;
        let wire = Wire {
            auth: Authenticator::new(cluster(), Some(&secret())),
            instance,
            name: Label::new("orders-0").expect("it is a label"),
            ttl: Ttl::new(timing.ttl()).expect("it is in range"),
        };
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
    pub(crate) fn renew(&mut self, store: &mut impl FnMut(Write) -> Version) {
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

/// Nonces from the operating system, as the runner draws them.
struct System;

impl Entropy for System {
    fn nonce(&mut self) -> Nonce {
        Nonce::random().expect("the system has random bits")
    }
}

pub(crate) fn lease_key() -> ObjectKey {
    cluster().lease_key()
}

pub(crate) fn secret() -> ClusterSecret {
    ClusterSecret::new(b"only what is measured here uses it").expect("it is long enough")
}

fn cluster() -> ClusterName {
    ClusterName::new("orders").expect("it is a name")
}
