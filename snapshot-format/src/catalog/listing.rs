//! Every page, or nothing.

use super::{CatalogError, ListedSnapshot};
use crate::name::Layout;
use fencing::WallTime;
use futures_util::TryStreamExt as _;
use object_store::{ObjectMeta, ObjectStore, path::Path};

/// The most objects that are looked at under one prefix.
pub const MAX_LISTED: usize = 200_000;

/// All that is kept where a cluster's snapshots are, as one look showed it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// What is named like a snapshot, in takeover order: the first to try comes first.
    pub snapshots: Vec<ListedSnapshot>,
    /// What is not. It is never read; that it is there shows that the cluster is not new.
    pub others: Vec<Path>,
}

impl Listing {
    /// Whether nothing at all is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.snapshots.is_empty() && self.others.is_empty()
    }
}

pub(super) async fn list(
    store: &dyn ObjectStore,
    layout: &Layout,
    limit: usize,
) -> Result<Listing, CatalogError> {
    let prefix = layout.prefix();
    let mut listing = Listing::default();
    let mut objects = store.list(Some(&prefix));
    loop {
        let object = match objects.try_next().await {
            Ok(Some(object)) => object,
            Ok(None) => break,
            Err(source) => return Err(CatalogError::List { prefix, source }),
        };
        if listing.snapshots.len() + listing.others.len() == limit {
            return Err(CatalogError::TooMany { prefix, limit });
        }
        match layout.parse(&object.location) {
            Some(name) => listing.snapshots.push(ListedSnapshot {
                name,
                size: object.size,
                modified: modified(&object),
                etag: object.e_tag,
                key: object.location,
            }),
            None => listing.others.push(object.location),
        }
    }
    // No two have one name: a name has one key.
    listing.snapshots.sort_unstable_by_key(|listed| listed.name);
    Ok(listing)
}

fn modified(object: &ObjectMeta) -> WallTime {
    let nanos = object.last_modified.timestamp_nanos_opt();
    WallTime::from_unix_nanos(nanos.and_then(|nanos| nanos.try_into().ok()).unwrap_or(0))
}

/// Whether what was read is the version that was listed, as far as it can be told: the two answers
/// of one store may quote a tag differently, and tell a time in seconds or in milliseconds.
pub(super) fn is_same_version(listed: &ListedSnapshot, read: &ObjectMeta) -> bool {
    let bare = |etag: &str| etag.trim_start_matches("W/").trim_matches('"').to_owned();
    let is_same = match (&listed.etag, &read.e_tag) {
        (Some(listed), Some(read)) => bare(listed) == bare(read),
        _ => listed.modified.unix_seconds() == modified(read).unix_seconds(),
    };
    is_same && listed.size == read.size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Application, SnapshotName, SnapshotTime};
    use fencing::Epoch;
    use futures_executor::block_on;
    use lease_core::key::ClusterName;
    use object_store::{ObjectStoreExt as _, memory::InMemory};

    #[test]
    fn more_objects_than_are_looked_at_are_an_error_not_a_part() {
        let layout =
            Layout::new(Application::new("orders").unwrap(), ClusterName::new("prod").unwrap());
        let store = InMemory::new();
        block_on(async {
            for n in 0..3 {
                store.put(&layout.prefix().join(format!("{n}")), "x".into()).await.unwrap();
            }
            assert_eq!(list(&store, &layout, 3).await.unwrap().others.len(), 3);
            let error = list(&store, &layout, 2).await.unwrap_err();
            assert!(matches!(error, CatalogError::TooMany { limit: 2, .. }), "{error}");
        });
    }

    #[test]
    fn tags_and_times_are_compared_as_far_as_two_answers_agree_on_them() {
        let meta = |etag: Option<&str>, seconds, size| ObjectMeta {
            location: "k".into(),
            last_modified: (std::time::UNIX_EPOCH + std::time::Duration::from_millis(seconds))
                .into(),
            size,
            e_tag: etag.map(str::to_owned),
            version: None,
        };
        let listed = |etag: Option<&str>| ListedSnapshot {
            name: SnapshotName::new(SnapshotTime::MIN, Epoch::MIN),
            key: "k".into(),
            size: 7,
            modified: WallTime::from_unix_seconds(5),
            etag: etag.map(str::to_owned),
        };
        assert!(is_same_version(&listed(Some("\"a\"")), &meta(Some("a"), 9_000, 7)));
        assert!(is_same_version(&listed(Some("a")), &meta(Some("W/\"a\""), 9_000, 7)));
        assert!(!is_same_version(&listed(Some("a")), &meta(Some("b"), 5_000, 7)));
        assert!(!is_same_version(&listed(Some("a")), &meta(Some("a"), 5_000, 8)));
        assert!(is_same_version(&listed(None), &meta(Some("a"), 5_900, 7)));
        assert!(!is_same_version(&listed(None), &meta(None, 6_000, 7)));
    }
}
