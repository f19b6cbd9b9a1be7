//! The store of a world of sessions: session objects and named leases, every version of each.

use super::super::object::{Content, Object as Stored, ObjectStore, facts, verdict};
use crate::{
    ObjectKey,
    key::InstanceId,
    record::Nonce,
    session::{Draft, NamedFacts, Object, Reply, Request, SessionFacts, SessionState},
    store::{StoreErrorKind, Version},
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

#[derive(Debug)]
pub(super) struct Store {
    sessions: BTreeMap<InstanceId, ObjectStore<SessionFacts>>,
    leases: BTreeMap<ObjectKey, ObjectStore<NamedFacts>>,
    pub(super) signs: bool,
    tells_age: bool,
}

impl Store {
    pub(super) fn new(signs: bool, tells_age: bool) -> Self {
        Self { sessions: BTreeMap::new(), leases: BTreeMap::new(), signs, tells_age }
    }

    pub(super) fn session(&mut self, instance: &InstanceId) -> &mut ObjectStore<SessionFacts> {
        let new = || ObjectStore::new(self.signs, self.tells_age);
        self.sessions.entry(instance.clone()).or_insert_with(new)
    }

    pub(super) fn lease(&mut self, key: &ObjectKey) -> &mut ObjectStore<NamedFacts> {
        let new = || ObjectStore::new(self.signs, self.tells_age);
        self.leases.entry(key.clone()).or_insert_with(new)
    }

    /// Whose sessions there are, or were.
    pub(super) fn instances(&self) -> Vec<InstanceId> {
        self.sessions.keys().cloned().collect()
    }

    /// The nonce of what stands there now.
    pub(super) fn nonce(&mut self, object: &Object) -> Option<Nonce> {
        match object {
            Object::Lease(key) => self.lease(key).object().and_then(Stored::nonce),
            Object::Session(instance) => self.session(instance).object().and_then(Stored::nonce),
        }
    }

    /// Carries a request of `writer` out.
    pub(super) fn serve(
        &mut self,
        object: &Object,
        request: &Request,
        writer: (&InstanceId, Duration),
        now: Duration,
    ) -> Reply {
        let signs = self.signs;
        let (draft, condition) = match request {
            Request::Read { unless } => {
                return match object {
                    Object::Lease(key) => Reply::Lease(self.lease(key).read(unless.as_ref(), now)),
                    Object::Session(instance) => {
                        Reply::Session(self.session(instance).read(unless.as_ref(), now))
                    }
                };
            }
            Request::Create(draft) => (draft, None),
            Request::Replace(draft, version) => (draft, Some(version)),
        };
        let written = match (object, draft) {
            (Object::Lease(key), Draft::Lease(named)) => {
                let lease = facts(&named.lease, writer.0, writer.1);
                let (session, life) = (named.session.clone(), named.life);
                let facts = NamedFacts { lease, session, life, held_back: named.held_back };
                let record = Stored::new(verdict(signs && named.lease.sign), Arc::new(facts));
                write(self.lease(key), record, condition, now)
            }
            (Object::Session(instance), Draft::Session(session)) => {
                let lease = facts(&session.lease, writer.0, writer.1);
                let (life, state) = (session.life, session.state);
                let facts = SessionFacts { lease, life, state };
                let record = Stored::new(verdict(signs && session.lease.sign), Arc::new(facts));
                write(self.session(instance), record, condition, now)
            }
            // A record of another kind than its key's.
            _ => Err(StoreErrorKind::Unsupported),
        };
        written.map_or_else(Reply::Failed, Reply::Written)
    }
}

fn write<F: Content>(
    store: &mut ObjectStore<F>,
    record: Stored<F>,
    condition: Option<&Version>,
    now: Duration,
) -> Result<Version, StoreErrorKind> {
    match condition {
        None => store.create(record, now),
        Some(version) => store.replace(record, version, now),
    }
}

/// Whether a draft is of a session that is over with it.
pub(super) const fn ends(state: SessionState) -> bool {
    matches!(state, SessionState::Killed | SessionState::Released)
}
