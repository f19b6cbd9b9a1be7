//! A renewal and a poll in a directory, through the runner, beside the system calls they cannot avoid.

use super::{Bar, Effort, Row};
use crate::{
    bare::Bare,
    holder::lease_key,
    paired,
    prompted::{Renewing, Watching},
};
use bytes::Bytes;
use lease_core::{LeaseStore as _, Read};
use lease_local::{FileSystem, LocalStore};
use std::{io, path::Path, sync::Arc};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// A store and a bare directory side by side, both holding the same lease.
#[derive(Debug)]
pub struct Bed {
    scratch: TempDir,
    runtime: Runtime,
    store: LocalStore,
    holder: Renewing,
    content: Bytes,
    bare: Arc<Bare>,
}

impl Bed {
    /// In a directory of its own below `parent`, which should be on a disk.
    ///
    /// # Errors
    ///
    /// If there can be none, or it is on no local file system.
    pub fn below(parent: &Path) -> io::Result<Self> {
        let scratch = tempfile::tempdir_in(parent)?;
        let runtime = runtime()?;
        let store = LocalStore::open(scratch.path().join("store")).map_err(io::Error::other)?;
        let holder = runtime.block_on(Renewing::on(store.clone()));
        let read = runtime.block_on(store.read_versioned(&lease_key(), None));
        let Ok(Read::Found { content, .. }) = read else {
            unreachable!("the lease is held, and was {read:?}");
        };
        let bare = Arc::new(Bare::create(&scratch.path().join("bare"), &content));
        Ok(Self { scratch, runtime, store, holder, content, bare })
    }

    /// Through the runner.
    pub fn renew(&mut self) {
        self.runtime.block_on(self.holder.renew());
    }

    /// The bare calls on this thread.
    pub fn renew_bare(&self) {
        self.bare.renew(&self.content);
    }

    /// The bare calls on a thread for blocking work: no store that keeps a slow disk from stalling its
    /// runtime can do without.
    pub fn renew_bare_elsewhere(&self) {
        let (bare, content) = (Arc::clone(&self.bare), self.content.clone());
        let renewed = async { tokio::task::spawn_blocking(move || bare.renew(&content)).await };
        self.runtime.block_on(renewed).expect("nothing is wrong with the disk");
    }

    /// On which file system it is.
    #[must_use]
    pub fn file_system(&self) -> &'static str {
        let stat = rustix::fs::statfs(self.store.root()).expect("it was told before");
        FileSystem::of_magic(u64::try_from(stat.f_type).unwrap_or(0)).name
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }
}

/// A runtime on this thread.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// The renewal, the renewal beside bare calls on a blocking thread, and the poll.
///
/// # Errors
///
/// If `directory` cannot be used.
pub fn rows(effort: Effort, directory: &Path) -> io::Result<Vec<Row>> {
    let bed = std::cell::RefCell::new(Bed::below(directory)?);
    let pairs = effort.of(2_000);
    let ours = || bed.borrow_mut().renew();
    let here = paired::run(pairs, ours, || bed.borrow().renew_bare());
    let elsewhere = paired::run(pairs / 2, ours, || bed.borrow().renew_bare_elsewhere());
    let polled = polls(&bed.borrow(), pairs);
    let renewal = Row::of(
        "local-renewal",
        &here,
        Bar::AtMost(1.1),
        "a renewal in a directory through the runner, beside bare system calls",
    );
    let note = format!("{}; {}", renewal.note, bed.borrow().file_system());
    Ok(vec![
        Row { note, ..renewal },
        Row::of(
            "local-renewal-hop",
            &elsewhere,
            Bar::None,
            "the same beside bare system calls on a thread for blocking work",
        ),
        Row::of(
            "local-poll",
            &polled,
            Bar::None,
            "a poll that finds nothing new, beside open, read, SHA-256 on a thread for blocking work",
        ),
    ])
}

fn polls(bed: &Bed, pairs: usize) -> paired::Pairs {
    let mut standby = bed.runtime.block_on(Watching::on(bed.store.clone()));
    let bare = || {
        let bare = Arc::clone(&bed.bare);
        let polled = async { tokio::task::spawn_blocking(move || bare.poll()).await };
        bed.runtime.block_on(polled).expect("nothing is wrong with the disk");
    };
    paired::run(pairs, || bed.runtime.block_on(standby.poll()), bare)
}
