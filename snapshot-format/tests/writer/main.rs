//! What is stored, through the fence, and what is known of it when a request fails.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

mod faults;
mod fenced;
mod local;
mod names;

#[path = "../support/mod.rs"]
mod support;

use snapshot_format::{
    Writer,
    fencing::{Clock as _, Fence, FenceControl, testing::ManualClock},
    lease_core::key::InstanceId,
};
use std::{io::Read, sync::Arc, time::Duration};
use support::{CIPHER, layout, watched::Watched};

const MIB: usize = 1024 * 1024;
/// Above this the tests' writers send parts.
const SINGLE_PUT_MAX: usize = 100_000;

/// A tenure whose end a test decides.
struct Tenure {
    clock: ManualClock,
    control: FenceControl,
}

impl Tenure {
    fn of_epoch(number: u64) -> Self {
        let clock = ManualClock::new();
        let mut control = FenceControl::new(support::epoch(number), Arc::new(clock.clone()));
        control.open(clock.reading(), Duration::from_secs(20)).unwrap();
        Self { clock, control }
    }

    fn fence(&self) -> Fence {
        self.control.fence()
    }

    fn writer(&self, store: &Watched) -> Writer {
        let instance = InstanceId::new("s-1").unwrap();
        Writer::new(store.shared(), layout(), CIPHER.clone(), instance)
            .clock(Arc::new(self.clock.clone()))
            .single_put_max(SINGLE_PUT_MAX)
    }
}

fn database(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn source(bytes: usize) -> impl Read + Send + 'static {
    std::io::Cursor::new(database(bytes))
}
