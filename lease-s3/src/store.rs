//! The driver: three conditional operations over object_store, told by what the wire showed.

use crate::{
    S3Options, UrlError,
    age::{age, seconds},
    classify::{Attempt, Op, ReadReply},
    client::{Client, Objects},
    place::Place,
    provider::{LimitExceeded, Provider},
    tag::{self, Dialect},
    wire::{Body, Connector, Recorder, Reply, Shown},
};
use async_trait::async_trait;
use bytes::Bytes;
use lease_core::{
    LeaseStore, ObjectKey, Read, StoreError, Timing, Version,
    probe::{ProbeCleaner, ProbeKey, ProbeReport},
};
use object_store::{
    GetOptions, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload, UpdateVersion,
    aws::AmazonS3Builder,
};
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// A store in a bucket. Clones share it.
///
/// The [crate's page](crate) has an example, and what the store relies on. It needs a tokio runtime
/// with time and I/O enabled; connections belong to the runtime that first used them.
#[derive(Clone)]
pub struct S3Store(Arc<Shared>);

struct Shared {
    client: Client,
    place: Place,
    opened: Opened,
    /// The oldest version that was read, in seconds.
    oldest_seen: AtomicU64,
}

/// What was found when the store was opened.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub(crate) dialect: Dialect,
    pub(crate) probe: Option<ProbeReport>,
    /// Whether ages are told: what the probe saw of the store's clock was plausible.
    pub(crate) tells_age: bool,
}

impl S3Store {
    /// A store at `s3://bucket/prefix?option=value&…`, to be
    /// [connected](S3Options::connect). Credentials come from the environment or the machine's role,
    /// never from the URL.
    ///
    /// | option | meaning | default |
    /// | --- | --- | --- |
    /// | `endpoint` | `https://host[:port]` of the server, or `http://…` for plain HTTP | `AWS_ENDPOINT_URL`, or AWS itself |
    /// | `region` | the bucket's region | `AWS_REGION`, or `us-east-1` |
    /// | `path_style` | `true`: the bucket is in the path; `false`: in the host name | `true` |
    /// | `allow_object_lock` | `false`, `unknown`, `true`: see [`ObjectLock`](crate::ObjectLock) | `false` |
    /// | `timeout` | whole seconds after which a request is given up | 30 |
    /// | `ca` | file of the certificate of a private CA, in PEM form, trusted beside those of the system | none |
    ///
    /// With the feature `gcp` also `gs://bucket/prefix`, with the feature `azure` also
    /// `az://container/prefix?account=…`; both with `endpoint`, `timeout` and `ca`.
    ///
    /// ```
    /// use lease_s3::S3Store;
    ///
    /// let options = S3Store::from_url("s3://ha/orders?endpoint=http://127.0.0.1:9000")?;
    /// assert_eq!(options.to_string(), "s3://ha/orders at http://127.0.0.1:9000");
    /// assert!(S3Store::from_url("s3://ha/orders?colour=green").is_err());
    /// # Ok::<(), lease_s3::UrlError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UrlError`] names the part that is wrong, and never quotes a value.
    pub fn from_url(url: &str) -> Result<S3Options, UrlError> {
        S3Options::from_url(url)
    }

    /// A store at the bucket of `builder`, under `prefix` (which may be empty), to be
    /// [connected](S3Options::connect).
    ///
    /// Whatever the builder says, requests are not retried, conditions are ETags, and plain HTTP is
    /// spoken only if the endpoint is `http://…`. Its credentials, certificates, time-outs and
    /// proxies stand.
    ///
    /// # Errors
    ///
    /// [`UrlError`] if the builder has no bucket, or the prefix or endpoint cannot be used.
    pub fn from_builder(builder: AmazonS3Builder, prefix: &str) -> Result<S3Options, UrlError> {
        S3Options::from_builder(builder, prefix)
    }

    /// The same on Google Cloud Storage.
    ///
    /// # Errors
    ///
    /// As [`from_builder`](Self::from_builder).
    #[cfg(feature = "gcp")]
    pub fn from_gcs_builder(
        builder: object_store::gcp::GoogleCloudStorageBuilder,
        prefix: &str,
    ) -> Result<S3Options, UrlError> {
        S3Options::from_gcs_builder(builder, prefix)
    }

    /// The same on Azure Blob Storage.
    ///
    /// # Errors
    ///
    /// As [`from_builder`](Self::from_builder).
    #[cfg(feature = "azure")]
    pub fn from_azure_builder(
        builder: object_store::azure::MicrosoftAzureBuilder,
        prefix: &str,
    ) -> Result<S3Options, UrlError> {
        S3Options::from_azure_builder(builder, prefix)
    }

    pub(crate) fn new(client: Client, place: Place, opened: Opened) -> Self {
        let oldest_seen = AtomicU64::new(0);
        Self(Arc::new(Shared { client, place, opened, oldest_seen }))
    }

    /// Whose protocol the store speaks.
    #[must_use]
    pub fn provider(&self) -> Provider {
        self.0.place.provider
    }

    /// How the store wants its versions back.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.0.opened.dialect
    }

    /// What the probe saw when the store was connected; `None` without a probe.
    #[must_use]
    pub fn probe_report(&self) -> Option<&ProbeReport> {
        self.0.opened.probe.as_ref()
    }

    /// Looks whether a lease with this timing writes more often than the provider sustains, and logs
    /// a warning if so. To be called once, with the timing of the lease.
    #[must_use = "a lease that exceeds the limits of its store will be lost now and then"]
    pub fn check_timing(&self, timing: &Timing) -> Option<LimitExceeded> {
        let exceeded = self.provider().exceeded_by(timing)?;
        tracing::warn!(store = %self.0.place, "{exceeded}");
        Some(exceeded)
    }

    pub(crate) fn connector(&self) -> &Connector {
        self.0.client.connector()
    }

    pub(crate) fn oldest_seen(&self) -> u64 {
        self.0.oldest_seen.load(Relaxed)
    }

    fn attempt<'a>(&'a self, op: Op, key: &'a ObjectKey) -> Attempt<'a> {
        Attempt { op, key, place: &self.0.place }
    }

    /// Sends one PUT and tells what it came to.
    async fn put(
        &self,
        attempt: Attempt<'_>,
        content: Bytes,
        mode: PutMode,
    ) -> Result<Version, StoreError> {
        let objects = self.0.client.objects();
        let recorder = Recorder::default();
        let mut options = PutOptions { mode, ..PutOptions::default() };
        options.extensions.insert(recorder.clone());
        let path = self.0.place.path(attempt.key.as_str());
        // What it returns repeats a part of what the recorder has.
        let result =
            objects.put_opts(&path, PutPayload::from_bytes(content.clone()), options).await;
        let shown = recorder.shown();
        let why = self.0.client.why_not_sent(&shown, result.as_ref().err());
        self.renew_credentials(&objects, &shown);
        let reply = attempt.written(shown, &why)?;
        match self.provider().version(&reply) {
            Ok(version) => Ok(version),
            Err(_) => self.read_back(attempt, &content).await,
        }
    }

    /// It was written, and the reply told no version that could be used: one read may.
    async fn read_back(
        &self,
        attempt: Attempt<'_>,
        written: &Bytes,
    ) -> Result<Version, StoreError> {
        match self.read_versioned(attempt.key, None).await {
            Ok(Read::Found { content, version, .. }) if content == *written => Ok(version),
            Err(StoreError::Corrupt { version, .. }) if written.len() > self.max_object_bytes() => {
                Ok(version)
            }
            Err(refused @ StoreError::Unsupported(_)) => Err(refused),
            Ok(_) | Err(StoreError::Corrupt { .. }) => Err(StoreError::InDoubt(attempt.cause(
                "it was written, but the reply told no version, and a read then showed something \
                 else",
            ))),
            Err(error) => Err(StoreError::InDoubt(attempt.cause(format_args!(
                "it was written, but the reply told no version, and it could not be read back: \
                 {error}"
            )))),
        }
    }

    /// Credentials that the store calls expired are fetched anew, even if they should still be good.
    fn renew_credentials(&self, used: &Objects, shown: &Shown) {
        let Shown::Replied(reply) = shown else { return };
        let expired = ["ExpiredToken", "InvalidToken", "TokenRefreshRequired"];
        if crate::classify::code(reply).is_some_and(|code| expired.contains(&&*code)) {
            self.0.client.reset(used);
        }
    }

    fn found(&self, attempt: Attempt<'_>, reply: &Reply) -> Result<Read, StoreError> {
        let version =
            self.provider().version(reply).map_err(|bad| bad.refusal(&attempt.to_string()))?;
        match &reply.body {
            Body::Whole(content) => {
                self.0.oldest_seen.fetch_max(seconds(reply).unwrap_or_default(), Relaxed);
                let age = self.0.opened.tells_age.then(|| age(reply)).flatten();
                Ok(Read::Found { content: content.clone(), version, age })
            }
            Body::TooLong => {
                let limit = self.max_object_bytes();
                let cause = attempt.cause(format_args!("it is larger than {limit} bytes"));
                Err(StoreError::Corrupt { version, cause })
            }
            Body::Broken(text) => Err(StoreError::Unavailable(
                attempt.cause(format_args!("the reply broke off ({text})")),
            )),
        }
    }

    /// "Not modified" is believed where it was asked for, and about the version it was asked for.
    fn not_modified(
        attempt: Attempt<'_>,
        reply: &Reply,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let is_asked = unless.is_some_and(|known| match reply.header("etag") {
            None => true,
            told => tag::parse(told).is_ok_and(|tag| tag == known.tag()),
        });
        match is_asked {
            true => Ok(Read::NotModified),
            false => Err(StoreError::Unavailable(attempt.cause(
                "the store answered 304 for a version that was not asked for; is there a cache \
                 before it?",
            ))),
        }
    }
}

#[async_trait]
impl LeaseStore for S3Store {
    async fn read_versioned(
        &self,
        key: &ObjectKey,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let attempt = self.attempt(Op::Read, key);
        let objects = self.0.client.objects();
        let recorder = Recorder::default();
        let condition = unless.and_then(tag::unless);
        let unless = unless.filter(|_| condition.is_some());
        let mut options = GetOptions { if_none_match: condition, ..GetOptions::default() };
        options.extensions.insert(recorder.clone());
        let result = objects.get_opts(&self.0.place.path(key.as_str()), options).await;
        let shown = recorder.shown();
        let why = self.0.client.why_not_sent(&shown, result.as_ref().err());
        self.renew_credentials(&objects, &shown);
        match attempt.read(shown, &why)? {
            ReadReply::Found(reply) => self.found(attempt, &reply),
            ReadReply::Missing => Ok(Read::Missing),
            ReadReply::NotModified(reply) => Self::not_modified(attempt, &reply, unless),
        }
    }

    async fn create_if_absent(
        &self,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Version, StoreError> {
        self.put(self.attempt(Op::Create, key), content, PutMode::Create).await
    }

    async fn replace_if_match(
        &self,
        key: &ObjectKey,
        content: Bytes,
        version: &Version,
    ) -> Result<Version, StoreError> {
        let attempt = self.attempt(Op::Replace, key);
        let is_generation = self.provider() == Provider::Gcs;
        let condition = self.dialect().condition(version);
        if condition.is_none() || (is_generation && version.generation().is_none()) {
            return Err(StoreError::Precondition(attempt.cause(
                "nothing was sent, since the version that it was asked to replace is none of this \
                 store's; read the object first",
            )));
        }
        let version = version.generation().map(str::to_owned);
        let mode = PutMode::Update(UpdateVersion { e_tag: condition, version });
        self.put(attempt, content, mode).await
    }

    /// Not once it was connected: the probe is a part of that.
    fn needs_probe(&self) -> bool {
        self.0.opened.probe.is_none()
    }

    fn max_object_bytes(&self) -> usize {
        self.0.client.connector().max_object_bytes()
    }
}

#[async_trait]
impl ProbeCleaner for S3Store {
    async fn remove_probe_object(&self, key: &ProbeKey) -> Result<(), StoreError> {
        let key = key.as_object_key();
        // Without a recorder it passes as any request of object_store's does: all that matters is
        // whether it succeeded.
        let removed = self.0.client.objects().delete(&self.0.place.path(key.as_str())).await;
        match removed {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(_) => Err(StoreError::InDoubt(self.attempt(Op::Remove, key).cause(
                "it did not succeed; let the credentials delete objects under the prefix \
                 (s3:DeleteObject)",
            ))),
        }
    }
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Store")
            .field("place", &format_args!("{}", self.0.place))
            .field("dialect", &self.0.opened.dialect)
            .finish_non_exhaustive()
    }
}
