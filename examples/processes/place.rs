//! Where the leases are kept, opened as any service opens it, and the hand that reaches past it.

use super::moment::Moment;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use lease_core::{LeaseStore, ObjectKey, Read, StoreError, Timing};
use lease_local::LocalStore;
use lease_s3::S3Store;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use std::{convert::Infallible, fmt, io, path::PathBuf, str::FromStr, sync::Arc};
use tempfile::TempDir;

/// Where the leases are kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// In a directory.
    Directory(PathBuf),
    /// In a bucket, by its URL. Its keys come from the environment.
    Url(String),
}

/// Why a place cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlaceError {
    #[error(transparent)]
    Bucket(#[from] lease_s3::OpenError),
    #[error(transparent)]
    Directory(#[from] lease_local::OpenError),
    #[error("a temporary directory cannot be made in {}: {source}; give another one with --store DIR", path.display())]
    TemporaryDirectory { path: PathBuf, source: io::Error },
}

impl PlaceError {
    /// Nothing was tried: what was said on the command line can be no store.
    pub(crate) const fn is_usage(&self) -> bool {
        matches!(self, Self::Bucket(lease_s3::OpenError::Url(_)))
    }
}

impl FromStr for Place {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once("://") {
            Some((scheme, _)) if !scheme.contains('/') => Self::Url(text.to_owned()),
            _ => Self::Directory(text.into()),
        })
    }
}

/// As `--store` takes it. A URL that has passed [`Place::open`] holds no secret.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

impl Place {
    /// A place for one run of `program` within what was asked for, and a temporary directory, which may be
    /// where it is. Whatever else is in a bucket is left alone.
    pub(crate) fn of_a_run(
        program: &str,
        asked: Option<&Self>,
    ) -> Result<(Self, TempDir), PlaceError> {
        let parent = match asked {
            Some(Self::Directory(path)) => path.clone(),
            _ => std::env::temp_dir(),
        };
        let dir = TempDir::with_prefix_in(format!("{program}-"), &parent)
            .map_err(|source| PlaceError::TemporaryDirectory { path: parent, source })?;
        let place = match asked {
            Some(url @ Self::Url(_)) => {
                url.within(&dir.path().file_name().unwrap_or_default().to_string_lossy())
            }
            _ => Self::Directory(dir.path().join("store")),
        };
        Ok((place, dir))
    }

    /// A place of its own within this one.
    fn within(&self, name: &str) -> Self {
        match self {
            Self::Directory(path) => Self::Directory(path.join(name)),
            Self::Url(url) => {
                let (prefix, options) = url.find('?').map_or((&**url, ""), |at| url.split_at(at));
                let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
                Self::Url(format!("{prefix}/{name}{options}"))
            }
        }
    }

    /// Opens it as any service does. A bucket is probed.
    pub(crate) async fn open(&self, timing: &Timing) -> Result<Arc<dyn LeaseStore>, PlaceError> {
        Ok(match self {
            Self::Directory(path) => Arc::new(LocalStore::open(path)?),
            Self::Url(url) => {
                let options = S3Store::from_url(url).map_err(lease_s3::OpenError::from)?;
                let store = options.connect().await?;
                if let Some(exceeded) = store.check_timing(timing) {
                    eprintln!("{exceeded}");
                }
                Arc::new(store)
            }
        })
    }

    /// The hand of somebody who has got at it.
    pub(crate) fn hand(&self) -> Result<Hand, PlaceError> {
        Ok(match self {
            Self::Directory(path) => Hand::OnDirectory(path.clone()),
            Self::Url(url) => {
                let options = S3Store::from_url(url).map_err(lease_s3::OpenError::from)?;
                Hand::OnBucket(options.object_store().map_err(lease_s3::OpenError::from)?)
            }
        })
    }
}

/// Reaches past the lease, as an operator, a script or a life-cycle rule would.
pub(crate) enum Hand {
    /// On the files.
    OnDirectory(PathBuf),
    /// On the objects, unconditionally.
    OnBucket(Arc<dyn ObjectStore>),
}

/// Why the hand did not get at something.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandError {
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("there was no lease to replace")]
    Missing,
    #[error("{0}")]
    Object(#[from] object_store::Error),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl Hand {
    /// Removes every object of a place in a bucket. (A directory goes with what it is in.)
    pub(crate) async fn clear(&self) -> Result<(), HandError> {
        let Self::OnBucket(objects) = self else { return Ok(()) };
        let listed = objects.list(None).map_ok(|object| object.location);
        for path in listed.try_collect::<Vec<_>>().await? {
            objects.delete(&path).await?;
        }
        Ok(())
    }

    /// Removes the object.
    pub(crate) async fn remove(&self, key: &ObjectKey) -> Result<(), HandError> {
        match self {
            Self::OnDirectory(root) => Ok(std::fs::remove_file(root.join(key.as_str()))?),
            Self::OnBucket(objects) => Ok(objects.delete(&path(key)).await?),
        }
    }

    /// Overwrites the object, and tells since when it may have been overwritten.
    pub(crate) async fn overwrite(
        &self,
        store: &dyn LeaseStore,
        key: &ObjectKey,
        content: Bytes,
    ) -> Result<Moment, HandError> {
        if let Self::OnBucket(objects) = self {
            let at = Moment::now();
            objects.put(&path(key), PutPayload::from_bytes(content)).await?;
            return Ok(at);
        }
        // Not in the middle of a renewal, which would write over it: a file has its lock for that.
        loop {
            let Read::Found { version, .. } = store.read_versioned(key, None).await? else {
                return Err(HandError::Missing);
            };
            let at = Moment::now();
            match store.replace_if_match(key, content.clone(), &version).await {
                Ok(_) => return Ok(at),
                // The holder has renewed it meanwhile.
                Err(StoreError::Precondition(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn path(key: &ObjectKey) -> object_store::path::Path {
    object_store::path::Path::from(key.as_str())
}
