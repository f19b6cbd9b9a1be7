//! Carrying a plan out.

use super::{Plan, plan};
use crate::catalog::{Catalog, CatalogError};
use fencing::{Fence, FenceShut};
use object_store::{Error, ObjectStoreExt as _, path::Path};

/// What a round of retention did.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Pruned {
    /// What was decided, and by which rules.
    pub plan: Plan,
    /// How many were deleted.
    pub deleted: usize,
}

/// Retention stopped. What was not deleted is decided on anew the next time.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PruneError {
    /// The snapshots cannot be listed, all of them; nothing was deleted.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// One could not be deleted.
    #[error(
        "the snapshot {key} was not deleted, {deleted} others were; see the cause, it is tried again"
    )]
    Delete {
        /// Which.
        key: Path,
        /// How many were deleted before it.
        deleted: usize,
        /// What the store said.
        source: Error,
    },
    /// The tenure may not act any more.
    #[error(transparent)]
    FenceShut(#[from] FenceShut),
}

impl Catalog {
    /// Deletes the snapshots that are not needed any more, as [`plan`] decides with the fence's
    /// epoch as the current one. The fence is checked before each deletion.
    ///
    /// Reads what is not known yet, then deletes one after the other, the oldest first.
    ///
    /// # Errors
    ///
    /// [`PruneError`]; some may have been deleted.
    ///
    /// # Cancel safety
    ///
    /// Some may have been deleted; the next round decides anew.
    pub async fn prune(&self, fence: &Fence) -> Result<Pruned, PruneError> {
        fence.check()?;
        let listing = self.list().await?;
        let checked = self.walk(&listing).rest().await;
        let plan = plan(&checked, fence.epoch());
        let mut deleted = 0;
        for listed in plan.deleted() {
            fence.check()?;
            match self.store().delete(&listed.key).await {
                Ok(()) => deleted += 1,
                Err(Error::NotFound { .. }) => {}
                Err(source) => {
                    return Err(PruneError::Delete { key: listed.key.clone(), deleted, source });
                }
            }
        }
        if deleted > 0 {
            tracing::info!(deleted, "snapshots beyond those that are kept were deleted");
        }
        Ok(Pruned { plan, deleted })
    }
}
