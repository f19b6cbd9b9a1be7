//! Collecting what the store keeps.

use super::Snapshots;
use crate::catalog::{Catalog, CatalogError};
use object_store::path::Path;

impl Catalog {
    /// What a takeover's decision needs of the snapshots: headers are read in takeover order until
    /// two are verified, or to the end. So planted objects cost one read each, once, and old
    /// snapshots none.
    ///
    /// `forced` is the snapshot that an operator named, if one did: it is looked at as well.
    ///
    /// # Errors
    ///
    /// [`CatalogError`] if they cannot be listed, all of them. One that cannot be read is no error
    /// but a fact.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is dropped.
    pub async fn takeover_snapshots(
        &self,
        forced: Option<&Path>,
    ) -> Result<Snapshots, CatalogError> {
        let listing = self.list().await?;
        let (mut checked, mut verified) = (Vec::new(), 0);
        let mut walk = self.walk(&listing);
        while verified < 2
            && let Some(next) = walk.next().await
        {
            verified += usize::from(next.verdict.verified().is_some());
            checked.push(next);
        }
        let is_there = |key: &Path| checked.iter().any(|it| it.listed.key == *key);
        let named = listing.snapshots.iter().find(|listed| Some(&listed.key) == forced);
        if let Some(listed) = named.filter(|listed| !is_there(&listed.key)) {
            let verdict = self.check(listed).await;
            // Behind two verified ones, it changes nothing but what the operator's word leads to.
            checked.push(crate::catalog::Checked { listed: listed.clone(), verdict });
        }
        Ok(Snapshots::new(checked, !listing.others.is_empty()))
    }
}
