//! object_store's side of a store, which can be made anew.

use crate::wire::{Connector, Shown};
use object_store::{ObjectStore, aws::AmazonS3Builder};
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) type Objects = Arc<dyn ObjectStore>;

/// How a client is made, with its credentials. Never shown: it holds them.
#[derive(Clone)]
pub(crate) enum Recipe {
    S3(Box<AmazonS3Builder>),
    #[cfg(feature = "gcp")]
    Gcs(Box<object_store::gcp::GoogleCloudStorageBuilder>),
    #[cfg(feature = "azure")]
    Azure(Box<object_store::azure::MicrosoftAzureBuilder>),
}

impl Recipe {
    fn build(&self, connector: &Connector) -> object_store::Result<Objects> {
        let connector = connector.clone();
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

/// The client of a store. Made anew, it has fresh connections and fetches its credentials again.
pub(crate) struct Client {
    recipe: Recipe,
    connector: Connector,
    objects: Mutex<Objects>,
}

impl Client {
    pub(crate) fn new(recipe: Recipe, max_object_bytes: usize) -> object_store::Result<Self> {
        let connector = Connector::new(max_object_bytes);
        let objects = Mutex::new(recipe.build(&connector)?);
        Ok(Self { recipe, connector, objects })
    }

    /// The most that is read of an object.
    pub(crate) fn max_object_bytes(&self) -> usize {
        self.connector.max_object_bytes()
    }

    pub(crate) fn objects(&self) -> Objects {
        Arc::clone(&self.objects.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes it anew, unless somebody has done so since `used` was taken.
    pub(crate) fn reset(&self, used: &Objects) {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&objects, used) {
            // It could be made before; if it cannot be now, the old one is as good as any.
            if let Ok(anew) = self.recipe.build(&self.connector) {
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
        let source = match &self.recipe {
            Recipe::S3(_) => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine or container \
                 a role (profile files are not read)"
            }
            #[cfg(feature = "gcp")]
            Recipe::Gcs(_) => {
                "set GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT, or give this machine \
                 a service account"
            }
            #[cfg(feature = "azure")]
            Recipe::Azure(_) => {
                "set AZURE_STORAGE_ACCOUNT_KEY, or give this machine or workload an identity"
            }
        };
        format!("nothing was sent, for want of credentials ({why}); {source}")
    }
}
