//! Keys: where the snapshots of one application and cluster are kept.

use super::SnapshotName;
use lease_core::key::{ClusterName, NameError, ObjectKey};
use object_store::path::Path;
use std::{fmt, str::FromStr, sync::Arc};

/// The longest name of an application, in bytes.
pub const MAX_APPLICATION_BYTES: usize = 64;
const EXTENSION: &str = ".db.age";

/// The name of the application whose snapshots these are: `a-z 0-9 . _ -`, 1 to 64 bytes, starts
/// with a letter or a digit. Part of every key, and of the first line of every snapshot.
///
/// ```
/// use snapshot_format::name::Application;
///
/// assert_eq!(Application::new("mongorescue")?.as_str(), "mongorescue");
/// assert!(Application::new("Mongo/Rescue").is_err());
/// # Ok::<(), snapshot_format::name::ApplicationError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Application(Arc<str>);

impl Application {
    /// The application of this name.
    ///
    /// # Errors
    ///
    /// [`ApplicationError`] says which rule the text breaks. Nothing is rewritten.
    pub fn new(text: &str) -> Result<Self, ApplicationError> {
        // The rules of a cluster's name, which is a part of keys just like this.
        ClusterName::new(text).map(|_| Self(text.into())).map_err(ApplicationError)
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Application {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for Application {
    type Err = ApplicationError;

    fn from_str(text: &str) -> Result<Self, ApplicationError> {
        Self::new(text)
    }
}

/// An application cannot have this name: the rules are those of a cluster's name, see the cause.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("no keys can be made with this name of an application; see the cause, and choose another")]
pub struct ApplicationError(#[source] NameError);

/// Where the snapshots of one application and one cluster are kept.
///
/// ```
/// use snapshot_format::{
///     fencing::Epoch,
///     lease_core::key::ClusterName,
///     name::{Application, Layout, SnapshotName},
/// };
///
/// let layout = Layout::new(Application::new("mongorescue")?, ClusterName::new("prod")?);
/// let name = SnapshotName::new("2026-10-12T09:58:41.517Z".parse()?, Epoch::try_from(7)?);
/// let key = layout.key(&name);
/// assert_eq!(
///     key.as_ref(),
///     "_mongorescue/metadata/ha/prod/mongorescue-20261012T095841.517Z-e7.db.age",
/// );
/// assert_eq!(layout.parse(&key), Some(name));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    application: Application,
    cluster: ClusterName,
}

impl Layout {
    /// The layout of `cluster`'s snapshots of `application`.
    #[must_use]
    pub fn new(application: Application, cluster: ClusterName) -> Self {
        Self { application, cluster }
    }

    /// The application.
    #[must_use]
    pub fn application(&self) -> &Application {
        &self.application
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    /// What every key starts with, up to the last `/` and without it:
    /// `_<application>/metadata/ha/<cluster>`.
    #[must_use]
    pub fn prefix(&self) -> Path {
        Path::from(self.prefix_text())
    }

    /// The key of the snapshot with this name.
    #[must_use]
    pub fn key(&self, name: &SnapshotName) -> Path {
        // None of its characters is one that a `Path` escapes.
        let text = format!("{}/{}-{name}{EXTENSION}", self.prefix_text(), self.application);
        debug_assert!(ObjectKey::new(&text.to_ascii_lowercase()).is_ok(), "{text}");
        Path::from(text)
    }

    /// The name in a key of this layout; `None` if it is anything else.
    #[must_use]
    pub fn parse(&self, key: &Path) -> Option<SnapshotName> {
        let file = key.as_ref().strip_prefix(&self.prefix_text())?.strip_prefix('/')?;
        let name = file.strip_prefix(self.application.as_str())?.strip_prefix('-')?;
        SnapshotName::parse(name.strip_suffix(EXTENSION)?)
    }

    fn prefix_text(&self) -> String {
        format!("_{}/metadata/ha/{}", self.application, self.cluster)
    }
}
