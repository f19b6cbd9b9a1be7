//! Which snapshots there are, and what each is worth.
//!
//! Whoever can write to the store can list, copy, rename, delete and plant objects there. So a name
//! is only where to look: every decision reads the sealed header behind it, in takeover order, until
//! it has enough.
//!
//! | what is found | verdict |
//! | --- | --- |
//! | a header under the cluster's secret that says what the name says | [`Verdict::Verified`] |
//! | a header that says something else; what the secret does not open | [`Verdict::Refused`] |
//! | the store fails; a newer format | [`Verdict::Unchecked`] |
//! | a database under the cluster's secret, without a header | [`Verdict::Legacy`] |
//!
//! # What it costs
//!
//! One listing for each decision, every page of it: a page that fails fails the whole. One ranged
//! read of at most 66 KiB for each stored version (key, size, modification time, ETag) that is looked
//! at, once, however many decisions ask; so planted objects cost one read each. Reads go in pages of
//! [`PAGE`] at a time.
//!
//! Time limits are the store's own business: `object_store` has them in its client options.

mod cache;
mod error;
mod floor;
mod listing;
mod read;
mod verdict;
mod walk;
mod weigh;

use crate::{
    cipher::Cipher,
    name::Layout,
    stream::{Headerless, Opened, RestoreError},
};
use cache::Cache;
pub use error::CatalogError;
pub use floor::{EpochFloor, SecretCheck};
use futures_util::lock::Mutex;
pub use listing::{Listing, MAX_LISTED};
use object_store::ObjectStore;
use std::{fmt, io::Write, sync::Arc};
pub use verdict::{ListedSnapshot, Refusal, Uncheckable, Verdict};
pub use walk::{Checked, PAGE, Walk};
pub use weigh::judge;
pub(crate) use weigh::weigh;

/// The snapshots of one cluster in an object store.
///
/// Cheap to clone; clones share what they found out.
///
/// ```
/// use snapshot_format::{
///     Catalog,
///     catalog::Verdict,
///     cipher::Cipher,
///     lease_core::{auth::ClusterSecret, key::ClusterName},
///     name::{Application, Layout},
///     object_store::memory::InMemory,
/// };
/// use std::sync::Arc;
///
/// # futures_executor::block_on(async {
/// let layout = Layout::new(Application::new("orders")?, ClusterName::new("prod")?);
/// let cipher = Cipher::new(&ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?);
/// let catalog = Catalog::new(Arc::new(InMemory::new()), layout, cipher);
///
/// let listing = catalog.list().await?;            // every page, or an error
/// let mut walk = catalog.walk(&listing);
/// while let Some(checked) = walk.next().await {   // in takeover order
///     if let Verdict::Verified(header) = checked.verdict {
///         println!("{} was written under epoch {}", checked.listed.key, header.epoch);
///         break;                                  // enough
///     }
/// }
/// assert!(listing.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Catalog(Arc<Shared>);

struct Shared {
    store: Arc<dyn ObjectStore>,
    layout: Layout,
    cipher: Cipher,
    cache: Cache,
    // Held while headers are read, so that two decisions do not read the same one.
    reading: Mutex<()>,
    limit: usize,
}

impl Catalog {
    /// The snapshots that `store` keeps for the application and cluster of `layout`. For a prefix in
    /// a bucket, give it an [`object_store::prefix::PrefixStore`].
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, layout: Layout, cipher: Cipher) -> Self {
        Self::with_limits(store, layout, cipher, MAX_LISTED, cache::MAX_CACHED)
    }

    fn with_limits(
        store: Arc<dyn ObjectStore>,
        layout: Layout,
        cipher: Cipher,
        listed_max: usize,
        cached_max: usize,
    ) -> Self {
        let cache = Cache::new(cached_max);
        Self(Arc::new(Shared {
            store,
            layout,
            cipher,
            cache,
            reading: Mutex::default(),
            limit: listed_max,
        }))
    }

    /// Where they are kept.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// The store that keeps them.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.0.store
    }

    /// Lists all that is kept under the cluster's prefix.
    ///
    /// # Errors
    ///
    /// [`CatalogError::List`] if any page fails, [`CatalogError::TooMany`] above [`MAX_LISTED`]
    /// objects. There is no partial answer.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is dropped.
    pub async fn list(&self) -> Result<Listing, CatalogError> {
        let listing = listing::list(&*self.0.store, &self.0.layout, self.0.limit).await?;
        self.0.cache.retain(&listing.snapshots);
        Ok(listing)
    }

    /// Checks the snapshots of a listing one after the other, in takeover order, reading
    /// [`PAGE`] headers at a time.
    pub fn walk<'a>(&'a self, listing: &'a Listing) -> Walk<'a> {
        Walk::new(self, &listing.snapshots)
    }

    /// Checks one snapshot: reads its start, unless the verdict on this stored version is known.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if it is dropped but what was read.
    pub async fn check(&self, listed: &ListedSnapshot) -> Verdict {
        if let Some(known) = self.0.cache.find(listed) {
            return known;
        }
        let _reading = self.0.reading.lock().await;
        self.known_or_read(listed).await
    }

    /// Opens a snapshot, verifies its header against its name, and writes its database to `sink`,
    /// which comes back. Bounded memory; opening and writing happen on a thread of their own.
    ///
    /// What was written to the sink counts for nothing unless this returns [`Ok`].
    ///
    /// # Errors
    ///
    /// [`RestoreError`] says what is wrong, and with which side; [`RestoreError::may_pass`] whether
    /// trying again may help. An older snapshot never stands in for one that cannot be restored.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the thread ends at its next read, and the sink with it.
    pub async fn restore<W: Write + Send + 'static>(
        &self,
        listed: &ListedSnapshot,
        headerless: Headerless,
        sink: W,
    ) -> Result<(Opened, W), RestoreError> {
        read::restore(&self.0, listed, headerless, sink).await
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog")
            .field("store", &self.0.store)
            .field("layout", &self.0.layout)
            .finish_non_exhaustive()
    }
}
