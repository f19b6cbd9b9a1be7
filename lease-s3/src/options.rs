//! Choosing a store.

use crate::{
    client::{Builder, Client, Recipe},
    error::{OpenError, UrlError},
    place::Place,
    provider::Provider,
    store::S3Store,
    tag::Dialect,
    tls::{self, Roots},
    url::{self, Endpoint, StoreUrl},
};
use lease_core::store::MAX_OBJECT_BYTES;
use object_store::{
    BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut},
    path::Path,
    prefix::PrefixStore,
};
use std::{fmt, sync::Arc, time::Duration};

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
    pub(crate) recipe: Recipe,
    pub(crate) place: Place,
    pub(crate) object_lock: ObjectLock,
    connect_limit: Duration,
}

impl S3Options {
    pub(crate) fn from_url(text: &str) -> Result<Self, UrlError> {
        let url = StoreUrl::parse(text)?;
        let ca = url.ca.as_deref().map(tls::read).transpose()?;
        let options = match url.provider {
            Provider::S3 => Self::s3(url),
            #[cfg(feature = "gcp")]
            Provider::Gcs => Self::gcs(url),
            #[cfg(feature = "azure")]
            Provider::Azure => Self::azure(url),
            #[cfg(not(all(feature = "azure", feature = "gcp")))]
            _ => Err(UrlError::Scheme),
        }?;
        ca.map_or(Ok(options.clone()), |pem| options.root_certificates(&pem))
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
        Self::new(Builder::S3(Box::new(builder)), place)
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
        Self::new(Builder::Gcs(Box::new(builder)), place)
    }

    #[cfg(feature = "azure")]
    fn azure(url: StoreUrl) -> Result<Self, UrlError> {
        use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
        let mut builder =
            MicrosoftAzureBuilder::from_env().with_container_name(&url.bucket).with_config(
                AzureConfigKey::Client(ClientConfigKey::Timeout),
                format!("{} s", url.timeout.as_secs()),
            );
        if let Some(account) = &url.account {
            builder = builder.with_account(account);
        }
        if let Some(endpoint) = url.endpoint {
            builder = builder.with_endpoint(endpoint.text);
        }
        Self::from_azure_builder(builder, &url.prefix)
    }

    #[cfg(feature = "azure")]
    pub(crate) fn from_azure_builder(
        builder: object_store::azure::MicrosoftAzureBuilder,
        prefix: &str,
    ) -> Result<Self, UrlError> {
        use object_store::azure::AzureConfigKey::{ContainerName, Endpoint as Server};
        let value = |key| builder.get_config_value(&key);
        let bucket = url::bucket(&value(ContainerName).ok_or(UrlError::Bucket)?)?;
        let server = value(Server).map(|text| Endpoint::parse(&text)).transpose()?;
        let is_plain_http = server.as_ref().is_some_and(|server| server.is_plain_http);
        let builder = builder.with_allow_http(is_plain_http).with_retry(no_retries());
        let (prefix, server) = (url::prefix(prefix)?, server.map(|server| server.text));
        let place = Place { provider: Provider::Azure, bucket, prefix, server };
        Self::new(Builder::Azure(Box::new(builder)), place)
    }

    fn new(builder: Builder, place: Place) -> Result<Self, UrlError> {
        let roots = Roots::default();
        let recipe = Recipe { builder, roots, max_object_bytes: MAX_OBJECT_BYTES };
        // What cannot be made a client of is found here, not at the first request.
        Client::new(recipe.clone()).map_err(|_| UrlError::Settings)?;
        let connect_limit = Duration::from_secs(60);
        Ok(Self { recipe, place, object_lock: ObjectLock::default(), connect_limit })
    }

    /// What to do about S3 Object Lock. Default: refuse.
    pub fn object_lock(self, object_lock: ObjectLock) -> Self {
        Self { object_lock, ..self }
    }

    /// The most that is read of an object, in bytes; at least 64 KiB, which is the default and enough
    /// for any lease.
    ///
    /// For fenced objects (`lease_core::fenced`) that are larger. They are held in memory as a whole.
    pub fn max_object_bytes(mut self, bytes: usize) -> Self {
        self.recipe.max_object_bytes = bytes.max(MAX_OBJECT_BYTES);
        self
    }

    /// Trusts these certificates too, beside those of the system: that of a private CA, in PEM form.
    /// May be called several times. What a builder was told of certificates stands as well.
    ///
    /// # Errors
    ///
    /// [`UrlError::Certificates`] if there is none in `pem`, or one that cannot be trusted.
    pub fn root_certificates(mut self, pem: &[u8]) -> Result<Self, UrlError> {
        self.recipe.roots.add(pem)?;
        Client::new(self.recipe.clone()).map_err(|_| UrlError::Certificates {
            found: "hold one that no certificate can be checked with",
        })?;
        Ok(self)
    }

    /// How long connecting may take as a whole. Default: 60 s.
    pub fn connect_limit(self, connect_limit: Duration) -> Self {
        Self { connect_limit, ..self }
    }

    /// A client of object_store for the same prefix, by the same credentials and certificates: for
    /// what is no lease, such as snapshots beside it, or cleaning up after tests.
    ///
    /// It does as object_store usually does: it retries, **conditional writes included**, and
    /// classifies nothing. A lease that it writes to is lost by its holder at best.
    ///
    /// # Errors
    ///
    /// [`UrlError::Settings`] if no client can be made of the settings. Nothing is sent.
    pub fn object_store(&self) -> Result<Arc<dyn ObjectStore>, UrlError> {
        let objects = self.recipe.plain().map_err(|_| UrlError::Settings)?;
        Ok(Arc::new(PrefixStore::new(objects, Path::from(&*self.place.prefix))))
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
            .field("root_certificates", &self.recipe.roots.len())
            .finish_non_exhaustive()
    }
}
