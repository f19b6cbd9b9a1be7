//! `MemoryStore` passes the suite that it is used to test others with, each case by its name, and so
//! does a `FaultStore` without faults.

use lease_core::{
    LeaseStore, ObjectKey,
    testing::{
        AgePrecision, FaultStore, ManualClock, MemoryStore,
        conformance::{Capabilities, Case, Suite, Target},
    },
};
use libtest_mimic::{Arguments, Failed, Trial};
use std::sync::Arc;

type Stores = (&'static str, Capabilities, fn() -> Arc<dyn LeaseStore>);

const STORES: [Stores; 3] = [
    ("digests", Capabilities { tells_age: false, ..Capabilities::ALL }, || {
        Arc::new(MemoryStore::new())
    }),
    ("counted", Capabilities { content_versions: false, ..Capabilities::ALL }, || {
        let store = MemoryStore::with_counted_versions();
        Arc::new(store.telling_age(ManualClock::new(), AgePrecision::WholeSeconds))
    }),
    ("without_faults", Capabilities { tells_age: false, ..Capabilities::ALL }, || {
        Arc::new(FaultStore::new(MemoryStore::new()))
    }),
];

fn trial((name, capabilities, store): Stores, case: Case) -> Trial {
    let skipped = case.skipped_for(capabilities).is_some();
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let target = Target::new(store(), ObjectKey::new("suite")?);
        runtime.block_on(case.run(target)).map_err(Failed::from)
    };
    Trial::test(format!("{name}::{}", case.name()), run).with_ignored_flag(skipped)
}

fn main() {
    let trials = STORES
        .into_iter()
        .flat_map(|store| Suite::new(store.1).cases().map(move |case| trial(store, case)));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit();
}
