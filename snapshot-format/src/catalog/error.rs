//! Why the catalog gave no answer.

use super::{ListedSnapshot, Uncheckable};
use object_store::path::Path;

/// The catalog cannot answer. Nothing was changed, and nothing may be concluded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The snapshots cannot be listed, all of them.
    #[error("the snapshots under {prefix} cannot be listed; see the cause, and try again")]
    List {
        /// Where they are kept.
        prefix: Path,
        /// What the store said.
        source: object_store::Error,
    },
    /// There are more objects than are looked at.
    #[error(
        "there are more than {limit} objects under {prefix}; delete what does not belong there"
    )]
    TooMany {
        /// Where they are kept.
        prefix: Path,
        /// The most that are looked at.
        limit: usize,
    },
    /// A snapshot that sorts before the newest verified one cannot be checked. It may be the newest.
    #[error("the snapshot {} cannot be checked ({why}), and may be the newest; try again", listed.key)]
    Undecided {
        /// Which.
        listed: ListedSnapshot,
        /// Why not.
        why: Uncheckable,
    },
}
