//! A renewal and a poll in a directory of a real disk, beside the system calls they cannot avoid.

use benches::{
    bare::Bare,
    holder::{Holder, Write, lease_key},
    paired,
};
use bytes::Bytes;
use criterion::{Criterion, SamplingMode};
use lease_core::{LeaseStore as _, ObjectKey, Read, Version};
use lease_local::{FileSystem, LocalStore};
use std::{sync::Arc, time::Duration};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A store and a bare directory side by side, both holding the same lease.
struct Bed {
    scratch: TempDir,
    runtime: Runtime,
    store: LocalStore,
    key: ObjectKey,
}

impl Bed {
    fn new() -> Self {
        // Below the target directory: the system's temporary directory is often in memory.
        let scratch = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let store = LocalStore::open(scratch.path().join("store")).expect("a local file system");
        Self { scratch, runtime, store, key: lease_key() }
    }

    fn write(&self, Write { content, replaces }: Write) -> Version {
        let written = match &replaces {
            Some(version) => {
                self.runtime.block_on(self.store.replace_if_match(&self.key, content, version))
            }
            None => self.runtime.block_on(self.store.create_if_absent(&self.key, content)),
        };
        written.expect("nobody else writes")
    }

    fn read(&self, unless: Option<&Version>) -> Read {
        let read = self.store.read_versioned(&self.key, unless);
        self.runtime.block_on(read).expect("the lease is there")
    }

    /// The lease as it is, and the bare directory with the same bytes.
    fn bare(&self) -> (Bare, Bytes, Version) {
        let Read::Found { content, version, .. } = self.read(None) else {
            unreachable!("it was created");
        };
        (Bare::create(&self.scratch.path().join("bare"), &content), content, version)
    }

    fn file_system(&self) -> &'static str {
        let stat = rustix::fs::statfs(self.store.root()).expect("it was told before");
        FileSystem::of_magic(u64::try_from(stat.f_type).unwrap_or(0)).name
    }
}

pub(crate) fn renewal(criterion: &mut Criterion) {
    let bed = Bed::new();
    let mut carry = |it| bed.write(it);
    let mut holder = Holder::active(&mut carry);
    let (bare, content, _) = bed.bare();

    let mut group = criterion.benchmark_group("renew local");
    // Each iteration waits for the disk twice.
    group.sample_size(20).sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(4));
    group.bench_function("renewal", |bencher| bencher.iter(|| holder.renew(&mut carry)));
    group.bench_function("bare system calls", |bencher| bencher.iter(|| bare.renew(&content)));
    group.finish();
}

pub(crate) fn poll(criterion: &mut Criterion) {
    let bed = Bed::new();
    Holder::active(&mut |it| bed.write(it));
    let (bare, _, version) = bed.bare();

    let mut group = criterion.benchmark_group("poll local");
    group.bench_function("nothing new", |bencher| {
        bencher.iter(|| assert_eq!(bed.read(Some(&version)), Read::NotModified));
    });
    group.bench_function("bare open, read, digest", |bencher| bencher.iter(|| bare.poll()));
    // What it costs to keep a read that hangs from stalling the runtime.
    group.bench_function("bare hop to a blocking thread and back", |bencher| {
        bencher.iter(|| {
            let hop = async { tokio::task::spawn_blocking(|| ()).await };
            bed.runtime.block_on(hop).expect("it does nothing");
        });
    });
    group.finish();
}

/// The figures to go by: `fsync` takes what it takes, from one moment to the next.
pub(crate) fn ratios() {
    let told = |argument| std::env::args().any(|it| it == argument);
    if told("--list") {
        return;
    }
    // As criterion tells a run that only tries everything out.
    let pairs = if told("--bench") && !told("--test") { 400 } else { 1 };
    let bed = Bed::new();
    let mut carry = |it| bed.write(it);
    let mut holder = Holder::active(&mut carry);
    let (bare, content, _) = bed.bare();

    let took = paired::run(pairs, || holder.renew(&mut carry), || bare.renew(&content));
    println!("renew_local: {took}; on {}", bed.file_system());

    // No store that keeps a slow disk from stalling a runtime can do without the threads.
    let bare = Arc::new(bare);
    let elsewhere = || {
        let (bare, content) = (Arc::clone(&bare), content.clone());
        let renewed = async { tokio::task::spawn_blocking(move || bare.renew(&content)).await };
        bed.runtime.block_on(renewed).expect("nothing is wrong with the disk");
    };
    let took = paired::run(pairs, || holder.renew(&mut carry), elsewhere);
    println!("renew_local, the bare calls on a blocking thread too: {took}");
}
