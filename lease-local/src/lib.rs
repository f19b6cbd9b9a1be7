//! A lease in a directory: the driver for instances that share one machine.
//!
//! ```
//! use lease_core::{LeaseStore as _, ObjectKey, Read};
//! use lease_local::LocalStore;
//!
//! # let scratch = tempfile::tempdir().unwrap();
//! # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let store = LocalStore::open(scratch.path().join("ha"))?;
//! let key = ObjectKey::new("orders/lease.json")?;
//! let first = store.create_if_absent(&key, "one".into()).await?;
//! let second = store.replace_if_match(&key, "two".into(), &first).await?;
//! assert!(store.replace_if_match(&key, "three".into(), &first).await.is_err());
//! assert_eq!(store.read_versioned(&key, Some(&second)).await?, Read::NotModified);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # How it works
//!
//! An object is the file `<root>/<key>`; its version is the SHA-256 of its content. A write takes an
//! exclusive `flock` on `<key>.lock` beside it, reads the object, compares its version, and replaces
//! it through a temporary file: write, `fsync`, rename, `fsync` of the directory. A read takes no
//! lock: a rename shows it the old content or the new.
//!
//! One renewal is one lock, one read and one replacement; one poll is one read.
//!
//! # What it relies on
//!
//! - **`flock` excludes all processes that use the directory.** That holds on a local file system.
//!   On NFS with local locks, SMB, 9p, virtiofs and other FUSE file systems it may exclude nobody, so
//!   [`LocalStore::open`] refuses those by name, and those that it does not know.
//! - **Nobody removes lock files while instances run.** A writer looks right before its rename
//!   whether its lock file, the directories above it and the root are still where they were, and
//!   gives up if not. What remains is the moment between that look and the rename.
//! - **All instances run as one user.** Files have mode 0600, directories 0700.
//!
//! A process that is stopped (`SIGSTOP`, a debugger) in the middle of a write keeps its lock: others
//! can read, but none can write until it goes on or is killed. That is safe, and it delays a takeover.
//!
//! A symlink is followed in the path of the root and nowhere below it.

mod file_system;
mod object;
mod options;
mod store;
mod version;

pub use file_system::{FileSystem, Locking};
pub use options::{LocalOptions, OpenError};
pub use store::LocalStore;
