//! Opening a store: the checks that come before the first lease.

use crate::{FileSystem, LocalStore, Locking, object::Root};
use fencing::durable::{Directory, ReadError};
use lease_core::store::MAX_OBJECT_BYTES;
use rustix::{
    fs::{Access, AtFlags, Mode, accessat},
    io::Errno,
};
use std::{
    io,
    os::fd::AsFd as _,
    path::{Path, PathBuf},
};

/// How to open a [`LocalStore`].
///
/// ```
/// use lease_local::LocalStore;
///
/// # let scratch = tempfile::tempdir().unwrap();
/// # let root = scratch.path().join("ha");
/// assert!(LocalStore::options(&root).create_root(false).open().is_err());
/// let store = LocalStore::options(&root).open()?;
/// assert_eq!(store.root(), root);
/// # Ok::<(), lease_local::OpenError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "options do nothing until they are opened"]
pub struct LocalOptions {
    root: PathBuf,
    create_root: bool,
    max_object_bytes: usize,
    pub(crate) policy: Policy,
}

/// Which file systems are taken although it is not known that they lock for everybody.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Policy {
    shared: bool,
    unknown: bool,
}

impl Policy {
    /// Whether locks on this kind of file system are relied on.
    pub(crate) fn takes(self, kind: FileSystem) -> bool {
        match kind.locking {
            Locking::Local => true,
            Locking::Shared => self.shared,
            Locking::Unknown => self.unknown,
        }
    }
}

impl LocalOptions {
    pub(crate) fn new(root: PathBuf) -> Self {
        let max_object_bytes = MAX_OBJECT_BYTES;
        Self { root, create_root: true, max_object_bytes, policy: Policy::default() }
    }

    /// Whether a missing root is created (the default). Its parent must exist: a path whose
    /// beginning is missing is more likely misspelt, or not mounted, than new.
    ///
    /// Where the root is on a volume of its own, say `false`: an unmounted volume is then an error
    /// and not a new, empty store.
    pub fn create_root(mut self, create: bool) -> Self {
        self.create_root = create;
        self
    }

    /// Takes file systems that other machines may share (NFS, SMB, 9p, FUSE, cluster file
    /// systems), with a warning in the log.
    ///
    /// **Two instances may then hold one lease**: on several of these, in several versions, `flock`
    /// does not reach the other machine. Allow it for tests, or where you know better.
    pub fn allow_network_file_systems(mut self, allow: bool) -> Self {
        self.policy.shared = allow;
        self
    }

    /// Takes file systems that this crate has no name for, with a warning in the log. On platforms
    /// other than Linux that is every one.
    ///
    /// They are refused otherwise: an unknown one may be a network file system, and a refusal is
    /// met at the first start, while two holders are met much later.
    pub fn allow_unknown_file_systems(mut self, allow: bool) -> Self {
        self.policy.unknown = allow;
        self
    }

    /// The most that is read and written of an object, in bytes; at least 64 KiB, which is the default
    /// and enough for any lease.
    ///
    /// For fenced objects (`lease_core::fenced`) that are larger. They are held in memory as a whole.
    pub fn max_object_bytes(mut self, bytes: usize) -> Self {
        self.max_object_bytes = bytes.max(MAX_OBJECT_BYTES);
        self
    }

    /// Opens the store. Blocks for a few file operations; nothing is left behind but the root.
    ///
    /// # Errors
    ///
    /// [`OpenError`] says what to do about it.
    pub fn open(self) -> Result<LocalStore, OpenError> {
        // A relative path must not change its meaning when the process changes its directory.
        let path = std::path::absolute(&self.root)
            .map_err(|source| OpenError::Root { path: self.root.clone(), source })?;
        if self.create_root {
            create(&path)?;
        }
        let root = Directory::open(&path).map_err(|error| match error {
            ReadError::NotRegular { path, .. } => OpenError::NotADirectory { path },
            ReadError::Io { path, source, .. } => OpenError::Root { path, source },
            other => OpenError::Root { path: path.clone(), source: io::Error::other(other) },
        })?;
        check_file_system(&root, self.policy)?;
        check_writable(&root)?;
        root.sync().map_err(|source| OpenError::NoDirectorySync { path: path.clone(), source })?;
        Ok(LocalStore::new(Root::new(root, self.policy, self.max_object_bytes)))
    }
}

fn create(path: &Path) -> Result<(), OpenError> {
    match rustix::fs::mkdir(path, Mode::RWXU) {
        // What is there, and whether it is a directory, comes out when it is opened.
        Err(Errno::EXIST) => Ok(()),
        Err(errno) if path.is_dir() => {
            // A mount point, or a parent that may not be written: it is there, that is enough.
            tracing::debug!(path = %path.display(), %errno, "the root exists");
            Ok(())
        }
        Err(errno) => Err(OpenError::CreateRoot { path: path.into(), source: errno.into() }),
        Ok(()) => {
            let parent = path.parent().unwrap_or(path);
            let failed = |source| OpenError::CreateRoot { path: path.into(), source };
            std::fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)
        }
    }
}

fn check_file_system(root: &Directory, policy: Policy) -> Result<(), OpenError> {
    let path = || root.path().to_path_buf();
    let kind =
        FileSystem::of(root.as_fd()).map_err(|source| OpenError::Root { path: path(), source })?;
    if !policy.takes(kind) {
        return Err(match kind.locking {
            Locking::Shared => OpenError::NetworkFileSystem { path: path(), kind },
            _ => OpenError::UnknownFileSystem { path: path(), kind },
        });
    }
    if kind.locking != Locking::Local {
        tracing::warn!(
            root = %root.path().display(), file_system = %kind,
            "the lease is on a file system whose locks may not exclude everybody; two instances may hold it"
        );
    }
    Ok(())
}

fn check_writable(root: &Directory) -> Result<(), OpenError> {
    let access = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    match accessat(root.as_fd(), ".", access, AtFlags::EACCESS) {
        // A kernel that cannot tell beforehand will tell at the first write.
        Ok(()) | Err(Errno::NOSYS | Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => {
            Err(OpenError::NotWritable { path: root.path().into(), source: errno.into() })
        }
    }
}

/// Why a [`LocalStore`] was not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The root is missing and could not be created.
    #[error("the directory {path} cannot be created ({source}); create its parent, or let this process's user write there", path = path.display())]
    CreateRoot {
        /// The root.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The root is on a file system on which `flock` may not exclude other machines.
    #[error(
        "the directory {path} is on {kind}, where flock may not exclude other machines; use a local disk, or a bucket; to take the risk: `allow_network_file_systems(true)`",
        path = path.display()
    )]
    NetworkFileSystem {
        /// The root.
        path: PathBuf,
        /// What it is on.
        kind: FileSystem,
    },
    /// The file system cannot make a rename durable.
    #[error("the directory {path} cannot be synced ({source}), so that no write to it can be made durable; use another file system", path = path.display())]
    NoDirectorySync {
        /// The root.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something else is at the path.
    #[error("{path} is no directory; choose another path, or remove what is there", path = path.display())]
    NotADirectory {
        /// The root.
        path: PathBuf,
    },
    /// This process may not write there.
    #[error("the directory {path} cannot be written ({source}); give it to this process's user, or mount it writable", path = path.display())]
    NotWritable {
        /// The root.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The root cannot be opened.
    #[error("the directory {path} cannot be opened ({source}); create it, mount it, or let this process's user read it", path = path.display())]
    Root {
        /// The root.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The root is on a file system that this crate does not know.
    #[error(
        "the directory {path} is on a file system that is not known to lock for everybody, {kind}; use ext4, xfs, btrfs, zfs or tmpfs, or, if it is a local one: `allow_unknown_file_systems(true)`",
        path = path.display()
    )]
    UnknownFileSystem {
        /// The root.
        path: PathBuf,
        /// What it is on.
        kind: FileSystem,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_15_only_what_was_allowed_is_taken() {
        let options = || LocalOptions::new("root".into());
        let taken = |options: LocalOptions| {
            [0xef53, 0x6969, 0x1234].map(|magic| options.policy.takes(FileSystem::of_magic(magic)))
        };
        assert_eq!(taken(options()), [true, false, false]);
        assert_eq!(taken(options().allow_network_file_systems(true)), [true, true, false]);
        assert_eq!(taken(options().allow_unknown_file_systems(true)), [true, false, true]);
    }
}
