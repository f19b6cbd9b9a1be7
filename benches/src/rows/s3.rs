//! A renewal and a poll in a bucket through the runner, beside `object_store` alone on the same server.

use super::{Bar, Effort, Row, local::runtime};
use crate::{
    holder::lease_key,
    paired,
    prompted::{Renewing, Watching},
};
use bytes::Bytes;
use lease_core::{LeaseStore as _, ObjectKey, Read, Version};
use lease_s3::{
    AmazonS3Builder, S3Options, S3Store,
    testing::{Requests, TestServer},
};
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, RetryConfig, UpdateVersion,
    aws::AmazonS3, path::Path,
};
use std::{cell::RefCell, io, thread::JoinHandle};
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

    /// Its endpoint, bucket and keys.
    #[must_use]
    pub fn builder(&self) -> AmazonS3Builder {
        self.server().builder()
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

/// A lease in a bucket, and the same bytes under another key for who asks without a store.
#[derive(Debug)]
pub struct Bed {
    runtime: Runtime,
    store: S3Store,
    holder: Renewing,
    content: Bytes,
    /// `object_store`, as the driver has it: one request, never tried again.
    objects: AmazonS3,
    path: Path,
    tag: Option<String>,
    /// What is written by the store alone.
    beside: ObjectKey,
    version: Option<Version>,
}

impl Bed {
    /// On that server.
    #[must_use]
    pub fn on(server: &Server) -> Self {
        let runtime = runtime().expect("a runtime");
        let options = server.options("store");
        let store = runtime.block_on(options.connect()).expect("the server is one");
        let holder = runtime.block_on(Renewing::on(store.clone()));
        let read = runtime.block_on(store.read_versioned(&lease_key(), None));
        let Ok(Read::Found { content, .. }) = read else {
            unreachable!("the lease is held, and was {read:?}");
        };
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let builder = server.builder().with_retry(retry).with_allow_http(true);
        let objects = builder.build().expect("the server is one");
        let path = Path::from("bare/lease.json");
        let put = runtime.block_on(objects.put(&path, PutPayload::from_bytes(content.clone())));
        let tag = put.expect("the server is one").e_tag;
        let beside = ObjectKey::new("beside/lease.json").expect("it is a key");
        let version = runtime.block_on(store.create_if_absent(&beside, content.clone())).ok();
        Self { runtime, store, holder, content, objects, path, tag, beside, version }
    }

    /// Through the runner.
    pub fn renew(&mut self) {
        self.runtime.block_on(self.holder.renew());
    }

    /// By the store alone, without a runner.
    pub fn write(&mut self) {
        let version = self.version.take().expect("it was created");
        let content = self.content.clone();
        let write = self.store.replace_if_match(&self.beside, content, &version);
        self.version = Some(self.runtime.block_on(write).expect("nobody else writes"));
    }

    /// A bare `put_opts` with the condition and the bytes of a renewal.
    pub fn put(&mut self) {
        let condition = UpdateVersion { e_tag: self.tag.take(), version: None };
        let payload = PutPayload::from_bytes(self.content.clone());
        let put = self.objects.put_opts(&self.path, payload, PutMode::Update(condition).into());
        self.tag = self.runtime.block_on(put).expect("nobody else writes").e_tag;
    }

    /// A bare conditional GET that finds nothing new.
    pub fn get(&self) {
        let options = GetOptions { if_none_match: self.tag.clone(), ..GetOptions::default() };
        let got = self.runtime.block_on(self.objects.get_opts(&self.path, options));
        assert!(matches!(got, Err(object_store::Error::NotModified { .. })), "nobody writes");
    }
}

const RENEWAL: &str = "a renewal in a bucket through the runner, beside a bare `put_opts`";
const POLL: &str = "a poll that finds nothing new, beside a bare conditional GET";

/// The renewal and the poll, in time and in requests.
///
/// # Errors
///
/// If no server can be started.
pub fn rows(effort: Effort) -> io::Result<Vec<Row>> {
    let server = Server::start()?;
    let bed = RefCell::new(Bed::on(&server));
    let pairs = effort.of(5_000);
    let renewed = paired::run(pairs, || bed.borrow_mut().renew(), || bed.borrow_mut().put());
    let written = paired::run(pairs, || bed.borrow_mut().write(), || bed.borrow_mut().put());
    let _ = server.take_requests();
    (0..100).for_each(|_| bed.borrow_mut().renew());
    let puts = server.take_requests();

    let store = bed.borrow().store.clone();
    let mut standby = bed.borrow().runtime.block_on(Watching::on(store));
    let bed = bed.into_inner();
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
    Ok(vec![
        Row::of("s3-renewal", &renewed, Bar::AtMost(1.03), RENEWAL),
        Row::of(
            "s3-write",
            &written,
            Bar::None,
            "a write by the store alone, beside a bare `put_opts`",
        ),
        Row::new(
            "s3-renewal-requests",
            each(all(puts)),
            Bar::Exactly(1.0),
            "requests for it",
            asked(puts),
        ),
        Row::of("s3-poll", &polled, Bar::AtMost(1.03), POLL),
        Row::new(
            "s3-poll-requests",
            each(all(gets)),
            Bar::Exactly(1.0),
            "requests for it",
            asked(gets),
        ),
    ])
}
