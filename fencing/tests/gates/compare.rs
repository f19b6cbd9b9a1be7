//! One test for all gates: what they answer and hold is what the naive model does.

use crate::support::test;
use fencing::{
    Epoch, FencingGate, FileGate, Stale, durable,
    http::FencingLayer,
    testing::gates::{Resource, Step, Trouble, compare},
};
use futures_util::FutureExt as _;
use http::{Request, Response};
use libtest_mimic::Trial;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::{convert::Infallible, path::PathBuf, sync::Arc};
use tower::{Layer as _, ServiceExt as _, service_fn};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("the_gate_in_memory_is_the_model", || {
            matches_the_model(512, InMemory::default);
        }),
        test("the_gate_in_a_file_is_the_model", || matches_the_model(48, InFile::new)),
        test("the_gate_of_an_endpoint_is_the_model", || {
            matches_the_model(256, Endpoint::default);
        }),
        test("the_comparison_finds_a_gate_that_refuses_ties", finds_refused_ties),
        test("the_comparison_finds_a_gate_that_forgets", finds_a_forgetful_gate),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(any::<(u8, u8)>().prop_map(Step::from), 1..60)
}

fn differs<R: Resource>(cases: u32, fresh: impl Fn() -> R) -> Option<String> {
    let mut runner =
        TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(cases) });
    let run = |steps: Vec<Step>| compare(&steps, &mut fresh()).map_err(TestCaseError::fail);
    runner.run(&steps(), run).err().map(|error| error.to_string())
}

fn matches_the_model<R: Resource>(cases: u32, fresh: impl Fn() -> R) {
    assert_eq!(differs(cases, fresh), None);
}

#[derive(Default)]
struct InMemory {
    gate: FencingGate,
    value: Option<u64>,
}

impl Resource for InMemory {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        let admitted = self.gate.admit(token);
        if admitted.is_ok() {
            self.value = Some(value);
        }
        Ok(admitted)
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        Ok(self.gate.raise(token))
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        Ok(self.gate.highest())
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        Ok(self.value)
    }
}

struct InFile {
    scratch: tempfile::TempDir,
    gate: FileGate,
}

impl InFile {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let gate = FileGate::open(scratch.path().join("mark")).unwrap();
        Self { scratch, gate }
    }

    fn path(&self) -> PathBuf {
        self.scratch.path().join("value")
    }
}

/// A refusal is an answer; anything else that went wrong is trouble.
fn refusal<T>(
    result: Result<T, fencing::gate::FileGateError>,
) -> Result<Result<T, Stale>, Trouble> {
    match result {
        Ok(done) => Ok(Ok(done)),
        Err(error) => error.stale().map(Err).ok_or_else(|| error.into()),
    }
}

impl Resource for InFile {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        match refusal(self.gate.admit(token))? {
            Ok(_admitted) => Ok(Ok(durable::replace(&self.path(), &value.to_be_bytes())?)),
            Err(stale) => Ok(Err(stale)),
        }
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        refusal(self.gate.raise(token))
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        Ok(self.gate.highest()?)
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        match std::fs::read(self.path()) {
            Ok(bytes) => Ok(Some(u64::from_be_bytes(bytes.as_slice().try_into()?))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn reopen(&mut self) -> Result<(), Trouble> {
        self.gate = FileGate::open(self.scratch.path().join("mark"))?;
        Ok(())
    }
}

/// The token goes in a header, the answer is a status and JSON.
#[derive(Default)]
struct Endpoint {
    gate: Arc<FencingGate>,
    value: Option<u64>,
}

impl Resource for Endpoint {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        let written = &mut self.value;
        let service =
            FencingLayer::new(Arc::clone(&self.gate)).layer(service_fn(|request: Request<u64>| {
                *written = Some(request.into_body());
                async { Ok::<_, Infallible>(Response::new(String::new())) }
            }));
        let request = Request::put("/").header("fencing-token", token.as_u64()).body(value)?;
        let answer = service.oneshot(request).now_or_never().ok_or("it waits")??;
        match answer.status().as_u16() {
            200 => Ok(Ok(())),
            409 => {
                let told: serde_json::Value = serde_json::from_str(answer.body())?;
                let epoch = |name: &str| serde_json::from_value(told[name].clone());
                let (presented, highest): (Epoch, Epoch) = (epoch("presented")?, epoch("highest")?);
                let stale = Stale::check(presented, Some(highest)).err().ok_or("not stale")?;
                Ok(Err(stale))
            }
            other => Err(format!("status {other}").into()),
        }
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        Ok(self.gate.raise(token))
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        Ok(self.gate.highest())
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        Ok(self.value)
    }
}

/// A gate as people write it the first time: the holder's own second write is refused.
#[derive(Default)]
struct RefusesTies(InMemory);

impl Resource for RefusesTies {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        match self.0.gate.highest() {
            Some(highest) if highest == token => {
                // The nearest thing to "not larger than the highest" that can be told.
                let above = highest.next()?;
                Ok(Stale::check(token, Some(above)))
            }
            _ => self.0.write(token, value),
        }
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        self.0.raise(token)
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        self.0.highest()
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        self.0.value()
    }
}

fn finds_refused_ties() {
    let found = differs(64, RefusesTies::default).expect("it refuses ties");
    assert!(found.contains("the answer is Err"), "{found}");
}

/// A gate in memory in front of a resource that outlives it.
#[derive(Default)]
struct Forgets(InMemory);

impl Resource for Forgets {
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
        self.0.write(token, value)
    }

    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
        self.0.raise(token)
    }

    fn highest(&mut self) -> Result<Option<Epoch>, Trouble> {
        self.0.highest()
    }

    fn value(&mut self) -> Result<Option<u64>, Trouble> {
        self.0.value()
    }

    fn reopen(&mut self) -> Result<(), Trouble> {
        self.0.gate = FencingGate::new();
        Ok(())
    }
}

fn finds_a_forgetful_gate() {
    let found = differs(64, Forgets::default).expect("it forgets");
    assert!(found.contains("the mark is None"), "{found}");
}
