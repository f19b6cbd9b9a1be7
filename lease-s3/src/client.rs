//! object_store's side of a store, which can be made anew.

use crate::{
    tls::Roots,
    wire::{Connector, PlainConnector, Shown},
};
use object_store::{ObjectStore, RetryConfig, aws::AmazonS3Builder, client::HttpConnector};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Objects = Arc<dyn ObjectStore>;

/// How a client is made, with its credentials. Never shown: it holds them.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) builder: Builder,
    pub(crate) roots: Roots,
    /// The most that is read of an object.
    pub(crate) max_object_bytes: usize,
}

#[derive(Clone)]
pub(crate) enum Builder {
    S3(Box<AmazonS3Builder>),
    #[cfg(feature = "gcp")]
    Gcs(Box<object_store::gcp::GoogleCloudStorageBuilder>),
    #[cfg(feature = "azure")]
    Azure(Box<object_store::azure::MicrosoftAzureBuilder>),
}

impl Builder {
    fn with_retry(self, retry: RetryConfig) -> Self {
        match self {
            Self::S3(builder) => Self::S3(Box::new(builder.with_retry(retry))),
            #[cfg(feature = "gcp")]
            Self::Gcs(builder) => Self::Gcs(Box::new(builder.with_retry(retry))),
            #[cfg(feature = "azure")]
            Self::Azure(builder) => Self::Azure(Box::new(builder.with_retry(retry))),
        }
    }

    fn build(&self, connector: impl HttpConnector) -> object_store::Result<Objects> {
        Ok(match self {
            Self::S3(builder) => Arc::new(builder.clone().with_http_connector(connector).build()?),
            #[cfg(feature = "gcp")]
            Self::Gcs(builder) => Arc::new(builder.clone().with_http_connector(connector).build()?),
            #[cfg(feature = "azure")]
            Self::Azure(builder) => {
                Arc::new(builder.clone().with_http_connector(connector).build()?)
            }
        })
    }
}

impl Recipe {
    /// What connects clients, and keeps what the wire shows.
    pub(crate) fn connector(&self) -> Connector {
        Connector::new(self.roots.clone(), self.max_object_bytes)
    }

    /// A client for what is no lease, which object_store may do with as it usually does.
    pub(crate) fn plain(&self) -> object_store::Result<Objects> {
        let builder = self.builder.clone().with_retry(RetryConfig::default());
        builder.build(PlainConnector(self.roots.clone()))
    }
}

/// The client of a store. Made anew, it has fresh connections and fetches its credentials again.
pub(crate) struct Client {
    recipe: Recipe,
    connector: Connector,
    objects: Mutex<Objects>,
}

impl Client {
    pub(crate) fn new(recipe: Recipe) -> object_store::Result<Self> {
        let connector = recipe.connector();
        let objects = Mutex::new(recipe.builder.build(connector.clone())?);
        Ok(Self { recipe, connector, objects })
    }

    pub(crate) fn objects(&self) -> Objects {
        Arc::clone(&self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Makes it anew, unless somebody has done so since `used` was taken.
    pub(crate) fn reset(&self, used: &Objects) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&objects, used) {
            // It could be made before; if it cannot be now, the old one is as good as any.
            if let Ok(anew) = self.recipe.builder.build(self.connector.clone()) {
                *objects = anew;
            }
        }
    }

    /// Why a request never got to the wire. The error itself is not shown: it may quote credentials.
    pub(crate) fn why_not_sent(
        &self,
        shown: &Shown,
        error: Option<&object_store::Error>,
    ) -> String {
        if !matches!(shown, Shown::Nothing) {
            return String::new();
        }
        let why = match (self.connector.credential_trouble(), error) {
            (Some(trouble), _) => trouble,
            (None, _) => "they could not be read".to_owned(),
        };
        let source = match &self.recipe.builder {
            Builder::S3(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine or container \
                 a role (profile files are not read)"
            }
            #[cfg(feature = "gcp")]
            Builder::Gcs(_) => {
                "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, or give this machine \
                 a service account"
            }
            #[cfg(feature = "azure")]
            Builder::Azure(_) => {
                "set AZURE_STORAGE_ACCOUNT_KEY, or give this machine or workload an identity"
            }
        };
        format!("nothing was sent, for want of credentials ({why}); {source}")
    }
}
