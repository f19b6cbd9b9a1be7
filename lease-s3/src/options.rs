//! Choosing a store, and connecting to it: object lock, the probe in both dialects, fresh connections.

use crate::{
    client::{Client, Recipe},
    error::{OpenError, UrlError},
    object_lock::{self, Locked},
    place::Place,
    provider::Provider,
    store::{Opened, S3Store},
    tag::Dialect,
    url::{self, Endpoint, StoreUrl},
};
use lease_core::{
    ObjectKey, StoreError, StoreErrorKind,
    fencing::{Clock as _, SystemClock},
    probe::{ProbeError, ProbeStep, probe_and_clean},
    store::MAX_OBJECT_BYTES,
};
use object_store::{
    BackoffConfig, ClientConfigKey, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut},
};
use std::{fmt, time::Duration};

/// How often a store is probed whose answers left the verdict open: Ceph 16 answers 500 to most losers
/// of a race, and then to nearly all. What bounds the time that this takes is the limit of connecting.
const PROBE_TRIES: u32 = 50;

/// What to do about S3 Object Lock, under which every renewal leaves a version that cannot be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum ObjectLock {
    /// Take such buckets too. They are not even asked.
    Allow,
    /// Refuse buckets that say that they have it; take those that do not let us ask (403).
    AllowUnknown,
    /// Take only buckets that say that they do not have it, or do not know what it is.
    #[default]
    Refuse,
}

/// A store that was chosen and not connected to. See [`S3Store::from_url`].
#[derive(Clone)]
#[must_use = "nothing is sent before `connect`"]
pub struct S3Options {
    recipe: Recipe,
    place: Place,
    object_lock: ObjectLock,
    connect_limit: Duration,
    max_object_bytes: usize,
}

impl S3Options {
    pub(crate) fn from_url(text: &str) -> Result<Self, UrlError> {
        let url = StoreUrl::parse(text)?;
        match url.provider {
            Provider::S3 => Self::s3(url),
            #[cfg(feature = "gcp")]
            Provider::Gcs => Self::gcs(url),
            #[cfg(feature = "azure")]
            Provider::Azure => Self::azure(url),
            #[cfg(not(all(feature = "azure", feature = "gcp")))]
            _ => Err(UrlError::Scheme),
        }
    }

    fn s3(url: StoreUrl) -> Result<Self, UrlError> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(&url.bucket)
            .with_config(
                AmazonS3ConfigKey::Client(ClientConfigKey::Timeout),
                format!("{} s", url.timeout.as_secs()),
            )
            .with_virtual_hosted_style_request(!url.path_style);
        if let Some(region) = url.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &url.endpoint {
            let text = match url.path_style {
                true => endpoint.text.clone(),
                // object_store expects the bucket in the host name then.
                false => endpoint.of_bucket(&url.bucket),
            };
            builder = builder.with_endpoint(&text).with_config(AmazonS3ConfigKey::S3Endpoint, text);
        }
        let options = Self::from_builder(builder, &url.prefix)?;
        let server = url.endpoint.map(|endpoint| endpoint.text).or(options.place.server);
        let place = Place { server, ..options.place };
        Ok(Self { place, object_lock: url.object_lock, ..options })
    }

    pub(crate) fn from_builder(builder: AmazonS3Builder, prefix: &str) -> Result<Self, UrlError> {
        use AmazonS3ConfigKey::{
            AccessKeyId, Bucket, Endpoint as Any, S3Endpoint, SecretAccessKey,
        };
        let value = |key| builder.get_config_value(&key);
        let bucket = url::bucket(&value(Bucket).ok_or(UrlError::Bucket)?)?;
        let prefix = url::prefix(prefix)?;
        if value(AccessKeyId).is_some() != value(SecretAccessKey).is_some() {
            return Err(UrlError::HalfCredentials);
        }
        let server = value(S3Endpoint).or_else(|| value(Any));
        let server = server.map(|text| Endpoint::parse(&text)).transpose()?;
        let is_plain_http = server.as_ref().is_some_and(|server| server.is_plain_http);
        let builder = builder
            .with_allow_http(is_plain_http)
            .with_conditional_put(S3ConditionalPut::ETagMatch)
            .with_disable_bulk_delete(true)
            .with_retry(no_retries());
        let server = server.map(|server| server.text);
        let place = Place { provider: Provider::S3, bucket, prefix, server };
        Self::new(Recipe::S3(Box::new(builder)), place)
    }

    #[cfg(feature = "gcp")]
    fn gcs(url: StoreUrl) -> Result<Self, UrlError> {
        use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
        let mut builder =
            GoogleCloudStorageBuilder::from_env().with_bucket_name(&url.bucket).with_config(
                GoogleConfigKey::Client(ClientConfigKey::Timeout),
                format!("{} s", url.timeout.as_secs()),
            );
        if let Some(endpoint) = &url.endpoint {
            builder = builder.with_base_url(&endpoint.text);
        }
        Self::from_gcs_builder(builder, &url.prefix)
    }

    #[cfg(feature = "gcp")]
    pub(crate) fn from_gcs_builder(
        builder: object_store::gcp::GoogleCloudStorageBuilder,
        prefix: &str,
    ) -> Result<Self, UrlError> {
        use object_store::gcp::GoogleConfigKey::{BaseUrl, Bucket, Client as Option};
        let value = |key| builder.get_config_value(&key);
        let bucket = url::bucket(&value(Bucket).ok_or(UrlError::Bucket)?)?;
        let server = value(BaseUrl).map(|text| Endpoint::parse(&text)).transpose()?;
        let is_plain_http = server.as_ref().is_some_and(|server| server.is_plain_http);
        let builder = builder
            .with_config(Option(ClientConfigKey::AllowHttp), is_plain_http.to_string())
            .with_retry(no_retries());
        let (prefix, server) = (url::prefix(prefix)?, server.map(|server| server.text));
        let place = Place { provider: Provider::Gcs, bucket, prefix, server };
        Self::new(Recipe::Gcs(Box::new(builder)), place)
    }

    #[cfg(feature = "azure")]
    fn azure(url: StoreUrl) -> Result<Self, UrlError> {
        use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
        let is_plain_http = url.endpoint.as_ref().is_some_and(|endpoint| endpoint.is_plain_http);
        let mut builder = MicrosoftAzureBuilder::from_env()
            .with_container_name(&url.bucket)
            .with_config(
                AzureConfigKey::Client(ClientConfigKey::Timeout),
                format!("{} s", url.timeout.as_secs()),
            )
            .with_allow_http(is_plain_http)
            .with_retry(no_retries());
        if let Some(account) = &url.account {
            builder = builder.with_account(account);
        }
        if let Some(endpoint) = &url.endpoint {
            builder = builder.with_endpoint(endpoint.text.clone());
        }
        Self::new(Recipe::Azure(Box::new(builder)), Place::of(url))
    }

    fn new(recipe: Recipe, place: Place) -> Result<Self, UrlError> {
        // What cannot be made a client of is found here, not at the first request.
        let max_object_bytes = MAX_OBJECT_BYTES;
        Client::new(recipe.clone(), max_object_bytes).map_err(|_| UrlError::Settings)?;
        let connect_limit = Duration::from_secs(60);
        let object_lock = ObjectLock::default();
        Ok(Self { recipe, place, object_lock, connect_limit, max_object_bytes })
    }

    /// What to do about S3 Object Lock. Default: refuse.
    pub fn object_lock(self, object_lock: ObjectLock) -> Self {
        Self { object_lock, ..self }
    }

    /// The most that is read of an object, in bytes; at least 64 KiB, which is the default and enough
    /// for any lease.
    ///
    /// For fenced objects (`lease_core::fenced`) that are larger. They are held in memory as a whole.
    pub fn max_object_bytes(self, bytes: usize) -> Self {
        Self { max_object_bytes: bytes.max(MAX_OBJECT_BYTES), ..self }
    }

    /// How long connecting may take as a whole. Default: 60 s.
    pub fn connect_limit(self, connect_limit: Duration) -> Self {
        Self { connect_limit, ..self }
    }

    /// Connects: looks whether the bucket has object lock, and tries whether its conditional writes
    /// hold, on objects `probe-…` under the prefix, which are removed afterwards.
    ///
    /// A store that does not recognise its own versions in quotes is tried again without them. The
    /// probe's connections are closed: those of the lease are opened by, and belong to, the runtime
    /// that uses them.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says what to change. A refused store must not be used for a lease.
    ///
    /// # Cancel safety
    ///
    /// May be dropped at any time. Objects of the probe may stay then.
    pub async fn connect(self) -> Result<S3Store, OpenError> {
        let (limit, place) = (self.connect_limit, self.place.to_string());
        let connecting = self.connect_without_limit();
        let Ok(connected) = tokio::time::timeout(limit, connecting).await else {
            return Err(OpenError::Silent { place, limit });
        };
        connected
    }

    /// The store without its probe, for looking at a lease. Who holds a lease on it must probe it
    /// ([`LeaseStore::needs_probe`](lease_core::LeaseStore::needs_probe) says so), and then it
    /// speaks the usual dialect only.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says what to change. Nothing is sent.
    pub fn unprobed(self) -> Result<S3Store, OpenError> {
        self.store(Dialect::default())
    }

    async fn connect_without_limit(self) -> Result<S3Store, OpenError> {
        self.refuse_object_lock().await?;
        let quoted = match self.probed(Dialect::Quoted).await {
            Err(OpenError::Refused { place, refusal })
                if refusal.step == ProbeStep::ReplaceCurrent
                    && self.place.provider == Provider::S3 =>
            {
                OpenError::Refused { place, refusal }
            }
            result => return result,
        };
        match self.probed(Dialect::Bare).await {
            // No better without quotes: the usual dialect's refusal is the one that helps.
            Err(OpenError::Refused { refusal, .. })
                if refusal.step == ProbeStep::ReplaceCurrent =>
            {
                Err(quoted)
            }
            result => result,
        }
    }

    async fn refuse_object_lock(&self) -> Result<(), OpenError> {
        let (Recipe::S3(builder), false) = (&self.recipe, self.object_lock == ObjectLock::Allow)
        else {
            return Ok(());
        };
        let attempted = format!("asking {} for object lock", self.place);
        match object_lock::ask(builder, &attempted).await {
            Ok(Locked::No) => Ok(()),
            Ok(Locked::Yes) => Err(OpenError::ObjectLock { place: self.place.to_string() }),
            Ok(Locked::CannotTell) if self.object_lock == ObjectLock::AllowUnknown => {
                tracing::warn!(store = %self.place, "it cannot be told whether it has object lock");
                Ok(())
            }
            Ok(Locked::CannotTell) => {
                Err(OpenError::ObjectLockUnknown { place: self.place.to_string() })
            }
            Err(source) => Err(self.unavailable("looking for object lock", source)),
        }
    }

    async fn probed(&self, dialect: Dialect) -> Result<S3Store, OpenError> {
        let store = self.clone().store(dialect)?;
        let clock = SystemClock::new();
        let began = clock.monotonic();
        let lease = ObjectKey::new("lease.json").map_err(|_| OpenError::Url(UrlError::Prefix))?;
        let mut tries = 1;
        let verdict = loop {
            match probe_and_clean(&store, &lease).await {
                // As after a race whose losers were answered 500. It says nothing of the store.
                Err(ProbeError::Inconclusive { step, source })
                    if tries < PROBE_TRIES && is_doubt(&source) =>
                {
                    tracing::info!(store = %self.place, %step, %source, "probing it again");
                    tries += 1;
                }
                verdict => break verdict,
            }
        };
        let report = match verdict {
            Ok(report) => report,
            Err(ProbeError::Refused(refusal)) => {
                return Err(OpenError::Refused { place: self.place.to_string(), refusal });
            }
            Err(other) => return Err(self.unavailable("probing it", StoreError::from(other))),
        };
        let took = began.until(clock.monotonic());
        // All that the probe read was written since it began. If it was told to be older, what says
        // `Date` and what says `Last-Modified` are not one clock.
        let tells_age = store.oldest_seen() <= took.as_secs() + 1;
        if !tells_age {
            tracing::warn!(
                store = %self.place,
                "the ages that it tells cannot be right (a proxy with a clock of its own?) and are \
                 not used"
            );
        }
        let opened = Opened { dialect, probe: Some(report), tells_age };
        let client = Client::new(self.recipe.clone(), self.max_object_bytes)
            .map_err(|_| UrlError::Settings)?;
        tracing::info!(store = %self.place, ?dialect, ?took, "the store passed its probe");
        Ok(S3Store::new(client, self.place.clone(), opened))
    }

    fn store(self, dialect: Dialect) -> Result<S3Store, OpenError> {
        let client =
            Client::new(self.recipe, self.max_object_bytes).map_err(|_| UrlError::Settings)?;
        let opened = Opened { dialect, probe: None, tells_age: true };
        Ok(S3Store::new(client, self.place, opened))
    }

    fn unavailable(&self, what: &'static str, source: StoreError) -> OpenError {
        OpenError::Unavailable { place: self.place.to_string(), what, source }
    }
}

fn is_doubt(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::InDoubt | StoreErrorKind::Contended)
}

/// Retrying a conditional write is the state machine's decision alone.
fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

/// Where the store is.
impl fmt::Display for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.place, f)
    }
}

impl fmt::Debug for S3Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Options")
            .field("place", &format_args!("{}", self.place))
            .field("object_lock", &self.object_lock)
            .finish_non_exhaustive()
    }
}
