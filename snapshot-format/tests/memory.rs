//! What sealing and opening hold in memory, counted by the allocator, whatever the size is.
//!
//! `HOLDFAST_SNAPSHOT_BYTES` is the size of the database, by default 64 MiB; with 4294967296 it takes
//! a minute or two and 4 GiB of disk for the last of them.
#![allow(clippy::unwrap_used, reason = "these are tests, whatever they are called")]

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use peak_alloc::PeakAlloc;
use snapshot_format::{
    Catalog, Writer,
    cipher::Unopenable,
    fencing::{Clock as _, FenceControl, SystemClock},
    lease_core::key::InstanceId,
    local,
    name::SnapshotName,
    stream::{self, Headerless},
};
use std::{
    future::pending,
    io::{self, Read as _},
    sync::Arc,
    thread,
    time::Duration,
};
use support::{CIPHER, header, layout, name};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const MIB: usize = 1024 * 1024;
const LIMIT: usize = 8 * MIB;
/// What one derivation of work factor 10 takes: nothing below it can have made one.
const DERIVATION: usize = MIB;

fn main() {
    let mut arguments = Arguments::from_args();
    // One counter for the whole process.
    arguments.test_threads = Some(1);
    let trials = vec![
        Trial::test("the_counter_counts", the_counter_counts),
        Trial::test("sealing_into_a_sink_stays_below_8_mib", sealing),
        Trial::test("opening_into_a_sink_stays_below_8_mib", opening),
        Trial::test("storing_and_restoring_stay_below_two_parts", storing_and_restoring),
        Trial::test("nothing_is_derived_for_what_is_refused_before", nothing_is_derived),
    ];
    libtest_mimic::run(&arguments, trials).exit();
}

/// The most that `work` held at once, beyond what there was before.
fn peak<T>(what: &str, work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    println!("{what}: {peak} bytes at the most");
    (peak, result)
}

fn size() -> u64 {
    let asked = std::env::var("HOLDFAST_SNAPSHOT_BYTES").ok().and_then(|bytes| bytes.parse().ok());
    asked.unwrap_or(64 * MIB as u64)
}

fn subject() -> SnapshotName {
    // Made before anything is counted.
    let _ = &*CIPHER;
    name(7, 0)
}

fn seal(sink: impl io::Write) -> u64 {
    let database = io::repeat(7).take(size());
    let header = header(subject());
    stream::seal(&CIPHER, layout().application(), &header, database, sink).unwrap()
}

fn the_counter_counts() -> Result<(), Failed> {
    let (counted, kept) = peak("a vector of 3 MiB", || vec![1_u8; 3 * MIB]);
    assert!((3 * MIB..4 * MIB).contains(&counted), "{counted}");
    drop(kept);
    Ok(())
}

fn sealing() -> Result<(), Failed> {
    subject();
    let (counted, bytes) = peak(&format!("sealing {} bytes", size()), || seal(io::sink()));
    assert_eq!(bytes, size());
    assert!((DERIVATION..LIMIT).contains(&counted), "{counted}");
    Ok(())
}

fn opening() -> Result<(), Failed> {
    subject();
    let work = || {
        let (reader, writer) = io::pipe().unwrap();
        let sealing = thread::spawn(move || seal(writer));
        let name = subject();
        let opened =
            stream::open(&CIPHER, &layout(), &name, Headerless::Refuse, reader, io::sink());
        sealing.join().unwrap();
        opened.unwrap().database_bytes
    };
    let (counted, bytes) = peak(&format!("sealing and opening {} bytes", size()), work);
    assert_eq!(bytes, size());
    assert!((DERIVATION..LIMIT).contains(&counted), "{counted}");
    Ok(())
}

fn storing_and_restoring() -> Result<(), Failed> {
    subject();
    let scratch = tempfile::tempdir()?;
    let store = Arc::new(local::open(scratch.path())?);
    let clock = SystemClock::new();
    let mut control = FenceControl::new(support::epoch(7), Arc::new(clock));
    control.open(clock.reading(), Duration::from_secs(24 * 3600))?;
    let mut writer = Writer::new(store.clone(), layout(), CIPHER.clone(), InstanceId::new("s-1")?)
        .single_put_max(MIB);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;

    let what = format!("storing {} bytes in a directory", size());
    let database = io::repeat(7).take(size());
    let (counted, stored) =
        peak(&what, || runtime.block_on(writer.write(&control.fence(), database, pending())));
    assert_eq!(stored?.database_bytes, size());
    assert!(counted < 2 * snapshot_format::writer::PART_BYTES, "{counted}");

    let catalog = Catalog::new(store, layout(), CIPHER.clone());
    let what = format!("restoring {} bytes", size());
    let (counted, restored) = peak(&what, || {
        runtime.block_on(async {
            let listed = catalog.list().await.unwrap().snapshots.remove(0);
            catalog.restore(&listed, Headerless::Refuse, io::sink()).await
        })
    });
    assert_eq!(restored?.0.database_bytes, size());
    assert!(counted < LIMIT, "{counted}");
    Ok(())
}

fn nothing_is_derived() -> Result<(), Failed> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors");
    let content = |name: &str| -> io::Result<Vec<u8>> {
        let file = std::fs::read(format!("{directory}/{name}.snapshot"))?;
        let end = file.windows(2).position(|window| window == b"\n\n").unwrap();
        Ok(file[end + 2..].to_vec())
    };
    subject();
    for (name, expected) in [
        ("seal-work-factor-11", Unopenable::TooMuchWork { found: 11 }),
        ("seal-work-factor-18", Unopenable::TooMuchWork { found: 18 }),
        ("seal-work-factor-30", Unopenable::TooMuchWork { found: 30 }),
        ("seal-work-factor-63", Unopenable::TooMuchWork { found: 63 }),
        ("seal-x25519", Unopenable::ForeignRecipient),
        ("seal-two-kinds", Unopenable::NotSealed),
        ("seal-two-passphrases", Unopenable::NotSealed),
        ("seal-long-header", Unopenable::NotSealed),
    ] {
        let sealed = content(name)?;
        let (counted, opened) = peak(name, || CIPHER.open(&*sealed).map(drop));
        match opened {
            Err(snapshot_format::cipher::OpenError::Unopenable(why)) if why == expected => {}
            other => return Err(format!("{name}: {other:?}").into()),
        }
        assert!(counted < DERIVATION / 8, "{name}: {counted}");
    }
    // What has the right work and another secret is derived, once.
    let sealed = content("seal-other-secret")?;
    let (counted, opened) = peak("seal-other-secret", || CIPHER.open(&*sealed).map(drop));
    assert!(opened.is_err() && (DERIVATION..2 * DERIVATION).contains(&counted), "{counted}");
    Ok(())
}
