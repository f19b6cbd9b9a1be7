//! A renewal and a poll in a bucket through the runner, beside `object_store` alone on the same server.

use super::{Bar, Effort, Row, local::runtime};
use crate::{
    holder::lease_key,
    paired,
    prompted::{Renewing, Watching},
    record,
};
use bytes::Bytes;
use lease_core::{LeaseStore as _, ObjectKey, Version};
use lease_s3::{
    S3Options, S3Store,
    testing::{Requests, TestServer},
};
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, UpdateVersion, path::Path,
};
use std::{cell::RefCell, io, sync::Arc, thread::JoinHandle};
use tokio::{runtime::Runtime, sync::oneshot};

/// A server on a thread and a runtime of its own: what it does takes no time of who asks.
#[derive(Debug)]
pub struct Server {
    server: Option<TestServer>,
    ending: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one.
    ///
    /// # Errors
    ///
    /// If there is no port or no thread.
    pub fn start() -> io::Result<Self> {
        let (started, server) = std::sync::mpsc::channel();
        let (ending, ended) = oneshot::channel::<()>();
        let runtime = runtime()?;
        let thread = std::thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                drop(started.send(TestServer::start().await));
                drop(ended.await);
            });
        })?;
        let server = server.recv().map_err(io::Error::other)??;
        Ok(Self { server: Some(server), ending: Some(ending), thread: Some(thread) })
    }

    fn server(&self) -> &TestServer {
        self.server.as_ref().expect("it is there until it is dropped")
    }

    /// Options of a store under `prefix`.
    pub fn options(&self, prefix: &str) -> S3Options {
        self.server().options(prefix)
    }

    /// How many requests came since this was asked last.
    #[must_use]
    pub fn take_requests(&self) -> Requests {
        self.server().take_requests()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.server.take());
        drop(self.ending.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// What cannot be done without: one object, written and asked for by `object_store` alone.
#[derive(Debug)]
pub struct Bare {
    objects: Arc<dyn ObjectStore>,
    path: Path,
    content: Bytes,
    tag: Option<String>,
}

impl Bare {
    /// An object as large as a lease.
    #[must_use]
    pub fn new(objects: Arc<dyn ObjectStore>) -> Self {
        let (path, content) = (Path::from("bare/lease.json"), record::Bed::new().encode());
        Self { objects, path, content, tag: None }
    }

    /// A bare `put_opts` with the condition and the bytes of a renewal; the first creates the object.
    pub async fn put(&mut self) {
        let mode = match self.tag.take() {
            None => PutMode::Overwrite,
            e_tag => PutMode::Update(UpdateVersion { e_tag, version: None }),
        };
        let payload = PutPayload::from_bytes(self.content.clone());
        let put = self.objects.put_opts(&self.path, payload, mode.into()).await;
        self.tag = put.expect("nobody else writes").e_tag;
    }

    /// A bare conditional GET that finds nothing new.
    pub async fn get(&self) {
        let options = GetOptions { if_none_match: self.tag.clone(), ..GetOptions::default() };
        let got = self.objects.get_opts(&self.path, options).await;
        assert!(matches!(got, Err(object_store::Error::NotModified { .. })), "nobody writes");
    }
}

/// A lease in a bucket, and the same bytes under another key for who asks without a store.
#[derive(Debug)]
pub struct Bed {
    runtime: Runtime,
    store: S3Store,
    holder: Renewing,
    bare: Bare,
    /// What is written by the store alone.
    beside: ObjectKey,
    version: Option<Version>,
}

impl Bed {
    /// In the bucket that the options name, below their prefix.
    ///
    /// # Errors
    ///
    /// If the store cannot be opened, or refuses a write.
    pub fn on(options: S3Options) -> io::Result<Self> {
        let runtime = runtime()?;
        let mut bare = Bare::new(options.object_store().map_err(io::Error::other)?);
        let store = runtime.block_on(options.connect()).map_err(io::Error::other)?;
        let holder = runtime.block_on(Renewing::on(store.clone()));
        runtime.block_on(bare.put());
        let beside = ObjectKey::new("beside/lease.json").expect("it is a key");
        let created = runtime.block_on(store.create_if_absent(&beside, bare.content.clone()));
        let version = Some(created.map_err(io::Error::other)?);
        Ok(Self { runtime, store, holder, bare, beside, version })
    }

    /// Through the runner.
    pub fn renew(&mut self) {
        self.runtime.block_on(self.holder.renew());
    }

    /// By the store alone, without a runner.
    pub fn write(&mut self) {
        let version = self.version.take().expect("it was created");
        let content = self.bare.content.clone();
        let write = self.store.replace_if_match(&self.beside, content, &version);
        self.version = Some(self.runtime.block_on(write).expect("nobody else writes"));
    }

    /// As [`Bare::put`].
    pub fn put(&mut self) {
        self.runtime.block_on(self.bare.put());
    }

    /// As [`Bare::get`].
    pub fn get(&self) {
        self.runtime.block_on(self.bare.get());
    }

    /// A standby of its lease.
    #[must_use]
    pub fn standby(&self) -> Watching {
        self.runtime.block_on(Watching::on(self.store.clone()))
    }

    /// Removes what it wrote, and ends.
    pub fn clean(self) {
        let Self { runtime, holder, bare: Bare { objects, path, .. }, beside, .. } = self;
        drop(holder);
        for path in [path, Path::from(beside.as_str()), Path::from(lease_key().as_str())] {
            // What stays is one small object; the figures stand.
            let _ = runtime.block_on(objects.delete(&path));
        }
    }
}

const RENEWAL: &str = "a renewal in a bucket through the runner, beside a bare `put_opts`";
const WRITE: &str = "a write by the store alone, beside a bare `put_opts`";
const POLL: &str = "a poll that finds nothing new, beside a bare conditional GET";

/// The renewal and the poll, in time and in requests; the same in time on a server of its own process,
/// if its URL is given.
///
/// # Errors
///
/// If a server cannot be started, or reached.
pub fn rows(effort: Effort, url: Option<&str>) -> io::Result<Vec<Row>> {
    let mut rows = in_this_process(effort)?;
    rows.extend(elsewhere(effort, url)?);
    Ok(rows)
}

fn in_this_process(effort: Effort) -> io::Result<Vec<Row>> {
    let server = Server::start()?;
    let bed = RefCell::new(Bed::on(server.options("store"))?);
    let pairs = effort.of(5_000);
    let renewed = paired::run(pairs, || bed.borrow_mut().renew(), || bed.borrow_mut().put());
    let written = paired::run(pairs, || bed.borrow_mut().write(), || bed.borrow_mut().put());
    let _ = server.take_requests();
    (0..100).for_each(|_| bed.borrow_mut().renew());
    let puts = server.take_requests();

    let bed = bed.into_inner();
    let mut standby = bed.standby();
    let polled = paired::run(pairs, || bed.runtime.block_on(standby.poll()), || bed.get());
    let _ = server.take_requests();
    (0..100).for_each(|_| bed.runtime.block_on(standby.poll()));
    let gets = server.take_requests();
    assert!(bed.holder.is_open(), "the lease is still held");

    let all = |it: Requests| it.put + it.get + it.delete + it.other;
    let each = |requests: usize| requests as f64 / 100.0;
    let asked = |it: Requests| {
        format!("{} PUT, {} GET, {} others in 100", it.put, it.get, it.delete + it.other)
    };
    let requests = |path, counted: Requests| {
        let each = each(all(counted));
        Row::new(path, each, Bar::Exactly(1.0), "requests for it", asked(counted))
    };
    Ok(vec![
        Row::of("s3-renewal", &renewed, Bar::AtMost(1.03), RENEWAL),
        Row::of("s3-write", &written, Bar::None, WRITE),
        requests("s3-renewal-requests", puts),
        Row::of("s3-poll", &polled, Bar::AtMost(1.03), POLL),
        requests("s3-poll-requests", gets),
    ])
}

/// On a server that is a process of its own, as every store is.
fn elsewhere(effort: Effort, url: Option<&str>) -> io::Result<Vec<Row>> {
    let [renewal, poll] = [("s3-renewal-server", RENEWAL), ("s3-poll-server", POLL)];
    let bar = Bar::AtMost(1.03);
    let Some(url) = url else {
        let skipped =
            |(path, what)| Row::skipped(path, bar, what, "no bucket was given by --store");
        return Ok(vec![skipped(renewal), skipped(poll)]);
    };
    let options = S3Store::from_url(url).map_err(io::Error::other)?;
    let bed = RefCell::new(Bed::on(options)?);
    let pairs = effort.of(2_000);
    let renewed = paired::run(pairs, || bed.borrow_mut().renew(), || bed.borrow_mut().put());
    let bed = bed.into_inner();
    let mut standby = bed.standby();
    let polled = paired::run(pairs, || bed.runtime.block_on(standby.poll()), || bed.get());
    drop(standby);
    bed.clean();
    let on = |what| format!("{what}; on a server of its own process");
    Ok(vec![
        Row::of(renewal.0, &renewed, bar, &on(renewal.1)),
        Row::of(poll.0, &polled, bar, &on(poll.1)),
    ])
}
