//! What the snapshots prove to a lease: the epoch floor, and whether this is the secret.

use super::{Catalog, CatalogError, Refusal, Uncheckable, Verdict};
use crate::cipher::Unopenable;
use fencing::Epoch;
use std::{error::Error, pin::Pin, sync::Arc};

/// What `lease_core::runner::LeaseBuilder::epoch_floor` asks. The same type as
/// `lease_core::runner::EpochFloor`, which this crate does not link, since it brings a runtime.
pub type EpochFloor = Arc<dyn Fn() -> FloorAnswer + Send + Sync>;
type FloorAnswer =
    Pin<Box<dyn Future<Output = Result<Option<Epoch>, Box<dyn Error + Send + Sync>>> + Send>>;

/// Whether the instance has the secret that the snapshots were sealed with.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SecretCheck {
    /// It opens one of them.
    Opens,
    /// It opens none, and some were sealed with another secret: an instance that goes on could read
    /// nothing that the cluster has. It must not start.
    Foreign,
    /// There is nothing that could tell.
    NothingSealed,
}

impl Catalog {
    /// The highest epoch that a snapshot proves; `None` if none proves any. A name proves nothing:
    /// only verified snapshots count.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] if they cannot be listed, or if one that sorts before the newest verified
    /// one cannot be checked: it may carry the highest epoch.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is dropped.
    pub async fn highest_epoch(&self) -> Result<Option<Epoch>, CatalogError> {
        let listing = self.list().await?;
        let mut walk = self.walk(&listing);
        while let Some(checked) = walk.next().await {
            match checked.verdict {
                // In takeover order no other can have a higher one.
                Verdict::Verified(header) => return Ok(Some(header.epoch)),
                Verdict::Unchecked(why) => {
                    return Err(CatalogError::Undecided { listed: checked.listed, why });
                }
                Verdict::Refused(_) | Verdict::Legacy => {}
            }
        }
        Ok(None)
    }

    /// [`highest_epoch`](Self::highest_epoch) as the lease asks for it:
    /// `builder.epoch_floor(catalog.epoch_floor(), limit)`. An acquisition then waits until it can
    /// be told, and its epoch is above every one that a snapshot proves.
    #[must_use]
    pub fn epoch_floor(&self) -> EpochFloor {
        let catalog = self.clone();
        Arc::new(move || {
            let catalog = catalog.clone();
            Box::pin(async move { Ok(catalog.highest_epoch().await?) })
        })
    }

    /// Whether the secret opens any of the snapshots, asked before an instance joins.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] if they cannot be listed, or if none opens and one cannot be read.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is dropped.
    pub async fn check_secret(&self) -> Result<SecretCheck, CatalogError> {
        let listing = self.list().await?;
        let mut walk = self.walk(&listing);
        let mut found = SecretCheck::NothingSealed;
        let mut undecided = None;
        while let Some(checked) = walk.next().await {
            match checked.verdict {
                Verdict::Refused(Refusal::DoesNotOpen { why: Unopenable::WrongSecret }) => {
                    found = SecretCheck::Foreign;
                }
                Verdict::Refused(Refusal::DoesNotOpen { .. }) => {}
                Verdict::Unchecked(why @ (Uncheckable::Store(_) | Uncheckable::Changed)) => {
                    undecided = Some(CatalogError::Undecided { listed: checked.listed, why });
                }
                _ => return Ok(SecretCheck::Opens),
            }
        }
        undecided.map_or(Ok(found), Err)
    }
}
