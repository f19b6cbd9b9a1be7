//! Records to begin with.

use fencing::Epoch;
use lease_core::{
    ObjectKey,
    auth::{Authenticator, ClusterSecret},
    key::{ClusterName, InstanceId, LeaseName},
    record::{Label, LeaseRecord, Nonce, SnapshotMark, Ttl},
    session::{
        Life, SessionState,
        record::{NamedLeaseRecord, SessionRecord},
    },
};
use proptest::prelude::*;
use std::time::Duration;

pub(crate) const STATES: [SessionState; 5] = [
    SessionState::HeldBack,
    SessionState::Killed,
    SessionState::Live,
    SessionState::Released,
    SessionState::Tombstone,
];

pub(crate) fn cluster() -> ClusterName {
    ClusterName::new("orders").unwrap()
}

pub(crate) fn id(text: &str) -> InstanceId {
    InstanceId::new(text).unwrap()
}

pub(crate) fn epoch(number: u64) -> Epoch {
    Epoch::new(number).unwrap()
}

pub(crate) fn lease_key(name: &str) -> ObjectKey {
    cluster().named_lease_key(&LeaseName::new(name).unwrap())
}

pub(crate) fn secret() -> ClusterSecret {
    ClusterSecret::new(b"0123456789abcdef0123456789abcdef").unwrap()
}

pub(crate) fn authenticator() -> Authenticator {
    Authenticator::new(cluster(), Some(&secret()))
}

pub(crate) fn lease(holder: Option<&str>) -> LeaseRecord {
    LeaseRecord {
        cluster: cluster(),
        holder: holder.map(id),
        holder_name: Label::default(),
        epoch: epoch(7),
        seq: 1,
        nonce: None,
        renewed_at: Label::default(),
        ttl: Ttl::new(Duration::from_secs(30)).unwrap(),
        key_id: None,
        last_snapshot: None,
        mac: None,
    }
}

pub(crate) fn session(state: SessionState) -> SessionRecord {
    SessionRecord {
        lease: lease(state.is_renewed().then_some("s-1")),
        object_key: cluster().session_key(&id("s-1")),
        life: Nonce::from_bytes([1; 16]),
        state,
    }
}

pub(crate) fn named(name: &str) -> NamedLeaseRecord {
    NamedLeaseRecord {
        lease: lease(Some("s-1")),
        object_key: lease_key(name),
        session: id("s-1"),
        life: Life { epoch: epoch(3), nonce: Nonce::from_bytes([1; 16]) },
        held_back: false,
    }
}

fn label() -> impl Strategy<Value = Label> {
    "\\PC{0,32}|[\"\\\\/ a\u{2028}]{0,40}"
        .prop_filter_map("too long", |text| Label::new(&text).ok())
}

fn mark() -> impl Strategy<Value = SnapshotMark> {
    (1..=u64::MAX, label()).prop_map(|(at, label)| SnapshotMark { epoch: epoch(at), at: label })
}

prop_compose! {
    fn any_lease(holder: Option<InstanceId>)(
        cluster in "[a-z0-9][a-z0-9_-]{0,63}",
        number in 1..=u64::MAX,
        seq in any::<u64>(),
        nonce in any::<Option<[u8; 16]>>(),
        ttl in 1..=86_400_000_u64,
        last_snapshot in prop::option::of(mark()),
        [holder_name, renewed_at] in [label(), label()],
        [key_id, mac] in [prop::option::of(label()), prop::option::of(label())],
    ) -> LeaseRecord {
        LeaseRecord {
            cluster: ClusterName::new(&cluster).unwrap(),
            holder: holder.clone(),
            epoch: epoch(number),
            nonce: nonce.map(Nonce::from_bytes),
            ttl: Ttl::new(Duration::from_millis(ttl)).unwrap(),
            holder_name, seq, renewed_at, key_id, last_snapshot, mac,
        }
    }
}

fn any_id() -> impl Strategy<Value = InstanceId> {
    "[a-zA-Z0-9][a-zA-Z0-9._-]{0,63}".prop_map(|text| id(&text))
}

pub(crate) fn any_session() -> impl Strategy<Value = SessionRecord> {
    (any_id(), prop::sample::select(STATES.as_slice()), any::<[u8; 16]>()).prop_flat_map(
        |(owner, state, life)| {
            any_lease(state.is_renewed().then(|| owner.clone())).prop_map(move |lease| {
                let object_key = lease.cluster.session_key(&owner);
                SessionRecord { lease, object_key, life: Nonce::from_bytes(life), state }
            })
        },
    )
}

pub(crate) fn any_named() -> impl Strategy<Value = NamedLeaseRecord> {
    (any_id(), any::<bool>(), "[a-z0-9_][a-z0-9_-]{0,127}").prop_flat_map(
        |(session, held, name)| {
            let life = (1..=u64::MAX, any::<[u8; 16]>());
            let lease = any_lease(held.then(|| session.clone()));
            (lease, life, any::<bool>()).prop_map(move |(lease, (number, nonce), held_back)| {
                let life = Life { epoch: epoch(number), nonce: Nonce::from_bytes(nonce) };
                let name = LeaseName::new(&name).unwrap();
                let object_key = lease.cluster.named_lease_key(&name);
                NamedLeaseRecord { lease, object_key, session: session.clone(), life, held_back }
            })
        },
    )
}
