//! The store of the world: one object, every version that it ever had, and what people do to it.

use crate::{
    auth::Verdict,
    key::InstanceId,
    machine::{self, Draft, Facts},
    record::Nonce,
    session::{NamedFacts, SessionFacts, Sighting},
    store::{StoreErrorKind, Version},
};
use fencing::Epoch;
use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

/// What a record of some kind says.
pub(super) trait Content: Hash {
    /// What every kind says.
    fn lease(&self) -> &Facts;
}

impl Content for Facts {
    fn lease(&self) -> &Facts {
        self
    }
}

impl Content for NamedFacts {
    fn lease(&self) -> &Facts {
        &self.lease
    }
}

impl Content for SessionFacts {
    fn lease(&self) -> &Facts {
        &self.lease
    }
}

impl From<Sighting<Facts>> for machine::Sighting {
    fn from(sighting: Sighting<Facts>) -> Self {
        match sighting {
            Sighting::Found { version, verdict, facts, age } => {
                Self::Found { version, verdict, facts, age }
            }
            Sighting::Missing => Self::Missing,
            Sighting::NotModified => Self::NotModified,
        }
    }
}

/// What the store holds: something with a verdict, and the facts if it can be read.
///
/// Versions come from content, as on S3 and on a directory: what is put back has its old one.
#[derive(Debug)]
pub(super) struct Object<F = Facts> {
    pub(super) verdict: Verdict,
    pub(super) facts: Option<Arc<F>>,
    pub(super) version: Version,
}

impl<F> Clone for Object<F> {
    fn clone(&self) -> Self {
        let (facts, version) = (self.facts.clone(), self.version.clone());
        Self { verdict: self.verdict, facts, version }
    }
}

impl<F: Content> Object<F> {
    /// A record.
    pub(super) fn new(verdict: Verdict, facts: Arc<F>) -> Self {
        Self::of(verdict, Some(facts), 0)
    }

    /// Bytes that are no record, unlike all others.
    pub(super) fn garbage(bytes: u64) -> Self {
        Self::of(Verdict::Unreadable, None, bytes)
    }

    fn of(verdict: Verdict, facts: Option<Arc<F>>, bytes: u64) -> Self {
        let mut hasher = DefaultHasher::new();
        (verdict, &facts, bytes).hash(&mut hasher);
        let version = Version::new(format!("{:016x}", hasher.finish()));
        Self { verdict, facts, version }
    }

    fn epoch(&self) -> Option<Epoch> {
        self.facts.as_ref().map(|facts| facts.lease().epoch)
    }

    fn is_held(&self) -> bool {
        self.facts.as_ref().is_some_and(|facts| facts.lease().holder.is_some())
    }

    pub(super) fn nonce(&self) -> Option<Nonce> {
        self.facts.as_ref().and_then(|facts| facts.lease().nonce)
    }
}

/// An authentic record that once stood in the store.
#[derive(Debug)]
pub(super) struct Former<F = Facts> {
    pub(super) object: Object<F>,
    /// When it was last there.
    last_there: Duration,
}

/// What `draft` says in the hands of `writer`.
pub(super) fn facts(draft: &Draft, writer: &InstanceId, ttl: Duration) -> Facts {
    let holder = draft.held.then(|| writer.clone());
    Facts::new(holder, draft.epoch, draft.seq, Some(draft.nonce), ttl)
}

/// How a record is judged whose writer signs it, or does not.
pub(super) const fn verdict(is_signed: bool) -> Verdict {
    if is_signed { Verdict::Authentic } else { Verdict::Unsigned }
}

#[derive(Debug)]
pub(super) struct ObjectStore<F = Facts> {
    object: Option<Object<F>>,
    written_at: Duration,
    /// Everything of the cluster's own that was there before, the latest last.
    former: Vec<Former<F>>,
    signs: bool,
    tells_age: bool,
}

impl<F: Content> ObjectStore<F> {
    pub(super) fn new(signs: bool, tells_age: bool) -> Self {
        Self { object: None, written_at: Duration::ZERO, former: Vec::new(), signs, tells_age }
    }

    pub(super) fn object(&self) -> Option<&Object<F>> {
        self.object.as_ref()
    }

    pub(super) fn read(&self, unless: Option<&Version>, now: Duration) -> Sighting<F> {
        match &self.object {
            None => Sighting::Missing,
            Some(object) if unless == Some(&object.version) => Sighting::NotModified,
            Some(object) => Sighting::Found {
                version: object.version.clone(),
                verdict: object.verdict,
                facts: object.facts.clone(),
                // Two stamps in whole seconds, of which the driver takes one off.
                age: self.tells_age.then(|| {
                    Duration::from_secs(
                        now.as_secs().saturating_sub(self.written_at.as_secs()).saturating_sub(1),
                    )
                }),
            },
        }
    }

    pub(super) fn create(
        &mut self,
        object: Object<F>,
        now: Duration,
    ) -> Result<Version, StoreErrorKind> {
        match &self.object {
            Some(_) => Err(StoreErrorKind::Precondition),
            None => Ok(self.put(object, now)),
        }
    }

    pub(super) fn replace(
        &mut self,
        object: Object<F>,
        expected: &Version,
        now: Duration,
    ) -> Result<Version, StoreErrorKind> {
        match &self.object {
            Some(current) if current.version == *expected => Ok(self.put(object, now)),
            _ => Err(StoreErrorKind::Precondition),
        }
    }

    /// Writes whatever stands there now.
    pub(super) fn put(&mut self, object: Object<F>, now: Duration) -> Version {
        self.retire(now);
        let version = object.version.clone();
        self.object = Some(object);
        self.written_at = now;
        version
    }

    pub(super) fn delete(&mut self, now: Duration) {
        self.retire(now);
    }

    /// Records that a person with a backup could put back: not there since `since`; of a release, not
    /// even its epoch.
    pub(super) fn former(&self, since: Duration) -> impl Iterator<Item = &Former<F>> {
        let recent = move |former: &&Former<F>| former.last_there > since;
        let current = self.object.as_ref().and_then(Object::epoch);
        self.former.iter().filter(move |former| {
            let is_recent = |epoch| {
                epoch == current
                    || self.former.iter().filter(recent).any(|it| it.object.epoch() == epoch)
            };
            let epoch = former.object.epoch();
            former.last_there <= since && (former.object.is_held() || !is_recent(epoch))
        })
    }

    fn retire(&mut self, now: Duration) {
        let Some(object) = self.object.take() else { return };
        let is_own = match self.signs {
            true => object.verdict == Verdict::Authentic,
            false => object.verdict == Verdict::Unsigned && object.nonce().is_some(),
        };
        if !is_own {
            return;
        }
        self.former.retain(|former| former.object.version != object.version);
        let former = Former { last_there: now, object: object.clone() };
        self.former.push(former);
    }
}

impl ObjectStore {
    /// The record that `draft` becomes in the hands of `writer`.
    pub(super) fn record(&self, draft: &Draft, writer: &InstanceId, ttl: Duration) -> Object {
        Object::new(verdict(self.signs && draft.sign), Arc::new(facts(draft, writer, ttl)))
    }
}
