//! One object with versions that come from its content, and its past.

use lease_core::{
    auth::Verdict,
    machine::{Facts, Sighting},
    store::Version,
};
use std::{sync::Arc, time::Duration};

/// What stood there: something with a verdict, and the facts if it can be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Object {
    pub(super) verdict: Verdict,
    pub(super) facts: Option<Arc<Facts>>,
    /// Tells unreadable contents apart.
    pub(super) salt: u32,
}

/// The place of an object among all contents that ever stood there: equal contents, equal places.
pub(super) type Place = usize;

#[derive(Debug, Default)]
pub(super) struct Store {
    contents: Vec<Object>,
    now: Option<Place>,
    written_at: Duration,
}

impl Store {
    pub(super) fn current(&self) -> Option<Place> {
        self.now
    }

    pub(super) fn version(&self) -> Option<Version> {
        self.now.map(version)
    }

    pub(super) fn object(&self, place: Place) -> &Object {
        &self.contents[place]
    }

    pub(super) fn contents(&self) -> usize {
        self.contents.len()
    }

    pub(super) fn write(&mut self, object: Object, at: Duration) -> Version {
        let known = self.contents.iter().rposition(|content| *content == object);
        let place = known.unwrap_or_else(|| {
            self.contents.push(object);
            self.contents.len() - 1
        });
        self.put(place, at);
        version(place)
    }

    pub(super) fn put(&mut self, place: Place, at: Duration) {
        self.now = Some(place);
        self.written_at = at;
    }

    pub(super) fn delete(&mut self) {
        self.now = None;
    }

    pub(super) fn read(
        &self,
        unless: Option<&Version>,
        at: Duration,
        tells_age: bool,
    ) -> (Sighting, Option<Place>) {
        let Some(place) = self.now else { return (Sighting::Missing, None) };
        let version = version(place);
        if unless == Some(&version) {
            return (Sighting::NotModified, Some(place));
        }
        let Object { verdict, facts, .. } = self.object(place).clone();
        // In whole seconds, and never too old.
        let age = tells_age.then(|| Duration::from_secs((at - self.written_at).as_secs()));
        (Sighting::Found { version, verdict, facts, age }, Some(place))
    }
}

pub(super) fn version(place: Place) -> Version {
    Version::new(format!("v{place}"))
}
