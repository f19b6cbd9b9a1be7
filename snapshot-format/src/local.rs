//! Snapshots in a plain directory, for instances that share one.

use object_store::{Result, local::LocalFileSystem};
use std::path::Path;

/// The store that keeps snapshots below `directory`, which must exist.
///
/// What it stored is on disk when a write returns: each file is synced before it gets its name, and
/// so is its directory behind it. (`LocalFileSystem::new_with_prefix` alone does neither.)
///
/// ```
/// use snapshot_format::local;
///
/// let scratch = tempfile::tempdir()?;
/// let store = local::open(scratch.path())?;
/// assert!(local::open(scratch.path().join("nowhere")).is_err());
/// # drop(store);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// If there is no such directory.
pub fn open(directory: impl AsRef<Path>) -> Result<LocalFileSystem> {
    Ok(LocalFileSystem::new_with_prefix(directory)?.with_fsync(true))
}
