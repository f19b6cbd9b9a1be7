//! Where the leases are kept: a directory, or a place of its own in a bucket.

use futures_util::TryStreamExt as _;
use lease_core::LeaseStore;
use lease_local::LocalStore;
use lease_s3::S3Store;
use object_store::ObjectStoreExt as _;
use std::{fmt, io, path::PathBuf, sync::Arc};
use tempfile::TempDir;

/// Where the leases of one run are kept.
pub(crate) enum Place {
    /// Removed with the value.
    Directory(TempDir),
    Bucket {
        /// As the processes are told it.
        url: String,
    },
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error(transparent)]
    Bucket(#[from] lease_s3::OpenError),
    #[error(transparent)]
    Directory(#[from] lease_local::OpenError),
    #[error("{0}")]
    Object(#[from] object_store::Error),
    #[error("a temporary directory cannot be made in {}: {source}; give another one with --store DIR", path.display())]
    TemporaryDirectory { path: PathBuf, source: io::Error },
}

impl PlaceError {
    /// Nothing was tried: what was said on the command line can be no store.
    pub(crate) const fn is_usage(&self) -> bool {
        matches!(self, Self::Bucket(lease_s3::OpenError::Url(_)))
    }
}

impl Place {
    /// A place of this run alone within what was asked for.
    pub(crate) fn prepare(store: Option<&str>) -> Result<Self, PlaceError> {
        if let Some(url) = store.filter(|text| text.contains("://")) {
            let (prefix, options) = url.find('?').map_or((url, ""), |at| url.split_at(at));
            let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
            let run = fastrand::u64(..);
            return Ok(Self::Bucket { url: format!("{prefix}/shards-{run:016x}{options}") });
        }
        let path = store.map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = TempDir::with_prefix_in("shards-", &path)
            .map_err(|source| PlaceError::TemporaryDirectory { path, source })?;
        Ok(Self::Directory(dir))
    }

    /// Opens it as any service does.
    pub(crate) async fn open(&self) -> Result<Arc<dyn LeaseStore>, PlaceError> {
        open(&self.to_string()).await
    }

    /// Removes what this run wrote to a bucket. (A temporary directory goes by itself.)
    pub(crate) async fn clean_up(&self) -> Result<(), PlaceError> {
        let Self::Bucket { url } = self else { return Ok(()) };
        let options = S3Store::from_url(url).map_err(lease_s3::OpenError::from)?;
        let objects = options.object_store().map_err(lease_s3::OpenError::from)?;
        let keys: Vec<_> =
            objects.list(None).map_ok(|object| object.location).try_collect().await?;
        for key in keys {
            objects.delete(&key).await?;
        }
        Ok(())
    }
}

/// Opens what [`Place`] shows itself as.
pub(crate) async fn open(store: &str) -> Result<Arc<dyn LeaseStore>, PlaceError> {
    Ok(if store.contains("://") {
        let options = S3Store::from_url(store).map_err(lease_s3::OpenError::from)?;
        Arc::new(options.connect().await?)
    } else {
        Arc::new(LocalStore::open(store)?)
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => dir.path().display().fmt(f),
            Self::Bucket { url } => f.write_str(url),
        }
    }
}
