//! A fenced object as what any gate is held against. Also used by the tests of the drivers.

use lease_core::{
    LeaseStore, ObjectKey,
    fenced::{FencedError, FencedObject},
    fencing::{
        Epoch, Stale,
        testing::gates::{Resource, Step, Trouble, compare},
    },
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Runtime;

pub(crate) struct Fenced<S> {
    store: S,
    object: FencedObject,
    runtime: Runtime,
}

impl<S: LeaseStore + Clone> Fenced<S> {
    pub(crate) fn new(store: S, key: &str) -> Self {
        let object = FencedObject::new(store.clone(), ObjectKey::new(key).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { store, object, runtime }
    }
}

fn refusal<T>(result: Result<T, FencedError>) -> Result<Result<T, Stale>, Trouble> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(error) => error.stale().map(Err).ok_or_else(|| error.into()),
    }
}

impl<S: LeaseStore + Clone> Resource for Fenced<S> {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        let put = self.object.put(token, value.to_string());
        Ok(refusal(self.runtime.block_on(put))?.map(drop))
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        Ok(refusal(self.runtime.block_on(self.object.seal(token)))?.map(drop))
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        let current = self.runtime.block_on(self.object.read())?;
        Ok(current.map(|current| current.stamp.epoch))
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        let current = self.runtime.block_on(self.object.read())?;
        match current.and_then(|current| current.content) {
            None => Ok(None),
            Some(bytes) => Ok(Some(std::str::from_utf8(&bytes)?.parse()?)),
        }
    }

    /// Another process, which knows nothing.
    fn reopen(&mut self) -> Result<(), Trouble> {
        self.object = FencedObject::new(self.store.clone(), self.object.key().clone());
        Ok(())
    }
}

/// Holds fenced objects on what `fresh` makes against the naive model.
pub(crate) fn matches_the_model<R: Resource>(cases: u32, mut fresh: impl FnMut() -> R) {
    let config = Config { failure_persistence: None, ..Config::with_cases(cases) };
    let steps = prop::collection::vec(any::<(u8, u8)>().prop_map(Step::from), 1..40);
    let fresh = std::cell::RefCell::new(&mut fresh);
    let run = |steps: Vec<Step>| {
        let mut resource = (*fresh.borrow_mut())();
        compare(&steps, &mut resource).map_err(TestCaseError::fail)
    };
    let found = TestRunner::new(config).run(&steps, run);
    assert_eq!(found.map_err(|error| error.to_string()), Ok(()));
}
