//! The store of a world: objects with versions, and who asked for what.

use crate::parts::Stored;
use lease_core::{
    key::InstanceId,
    machine::{self, Facts},
    session::{Draft, NamedFacts, Object, Reply, Request, SessionFacts, Sighting},
    store::StoreErrorKind,
};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) objects: BTreeMap<Object, Stored>,
    pub(crate) served: Vec<Served>,
}

/// One request that arrived.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Served {
    pub(crate) at: Duration,
    pub(crate) node: usize,
    pub(crate) object: Object,
    pub(crate) is_write: bool,
}

impl Store {
    pub(crate) fn get_session(&self, object: &Object) -> Option<&SessionFacts> {
        match self.objects.get(object) {
            Some(Stored::Session(facts)) => Some(facts),
            _ => None,
        }
    }

    pub(crate) fn get_lease(&self, object: &Object) -> Option<&NamedFacts> {
        match self.objects.get(object) {
            Some(Stored::Lease(facts)) => Some(facts),
            _ => None,
        }
    }

    pub(crate) fn serve(
        &mut self,
        writer: &InstanceId,
        ttl: Duration,
        object: Object,
        request: Request,
    ) -> Reply {
        let current = self.objects.get(&object);
        let version = current.map(Stored::version);
        match request {
            Request::Read { unless } => {
                let is_same = unless.is_some() && unless == version;
                read(&object, current, is_same)
            }
            Request::Create(draft) if version.is_none() => self.write(writer, ttl, object, draft),
            Request::Replace(draft, expected) if version.as_ref() == Some(&expected) => {
                self.write(writer, ttl, object, draft)
            }
            _ => Reply::Failed(StoreErrorKind::Precondition),
        }
    }

    fn write(&mut self, writer: &InstanceId, ttl: Duration, object: Object, draft: Draft) -> Reply {
        let facts = |lease: &machine::Draft| {
            let holder = lease.held.then(|| writer.clone());
            Facts::new(holder, lease.epoch, lease.seq, Some(lease.nonce), ttl)
        };
        let stored = match draft {
            Draft::Lease(draft) => Stored::Lease(Arc::new(NamedFacts {
                lease: facts(&draft.lease),
                session: draft.session,
                life: draft.life,
                held_back: draft.held_back,
            })),
            Draft::Session(draft) => Stored::Session(Arc::new(SessionFacts {
                lease: facts(&draft.lease),
                life: draft.life,
                state: draft.state,
            })),
            other => panic!("a draft of an unknown kind: {other:?}"),
        };
        let version = stored.version();
        self.objects.insert(object, stored);
        Reply::Written(version)
    }
}

fn read(object: &Object, stored: Option<&Stored>, is_same: bool) -> Reply {
    match (object, stored) {
        (Object::Lease(_), Some(Stored::Lease(facts))) => {
            Reply::Lease(sighting(stored, is_same, Some(facts.clone())))
        }
        (Object::Lease(_), _) => Reply::Lease(sighting(stored, is_same, None)),
        (_, Some(Stored::Session(facts) | Stored::Forged(facts))) => {
            Reply::Session(sighting(stored, is_same, Some(facts.clone())))
        }
        _ => Reply::Session(sighting(stored, is_same, None)),
    }
}

fn sighting<F>(stored: Option<&Stored>, is_same: bool, facts: Option<Arc<F>>) -> Sighting<F> {
    match stored {
        _ if is_same => Sighting::NotModified,
        None => Sighting::Missing,
        Some(stored) => Sighting::Found {
            version: stored.version(),
            verdict: stored.verdict(),
            facts,
            age: None,
        },
    }
}
