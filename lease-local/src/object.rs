//! The blocking side: one operation on one object, and what is known when it fails.

use crate::{FileSystem, options::Policy, version};
use bytes::Bytes;
use fencing::durable::{Content, Directory, FileKind, LockError, LockFile, ReadError, WriteError};
use lease_core::{ObjectKey, Read, StoreError, Version, store::Cause};
use std::{
    ffi::{OsStr, OsString},
    io,
    os::fd::AsFd as _,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// The root as it was when the store was opened.
#[derive(Debug)]
pub(crate) struct Root {
    directory: Directory,
    policy: Policy,
    max_object_bytes: usize,
}

/// What a store remembers of a key between operations.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// What earlier processes left behind was removed.
    swept: AtomicBool,
    /// A rename was not made durable: what a read shows now may be gone after a power cut.
    unsynced: AtomicBool,
}

impl Memory {
    /// Whether forgetting it would lose more than a moment's work.
    pub(crate) fn matters(&self) -> bool {
        self.unsynced.load(SeqCst)
    }
}

/// One operation: on which object, and whether anyone still waits for its end.
pub(crate) struct Job {
    pub(crate) key: ObjectKey,
    pub(crate) cancelled: std::sync::Arc<AtomicBool>,
}

impl Root {
    pub(crate) fn new(directory: Directory, policy: Policy, max_object_bytes: usize) -> Self {
        Self { directory, policy, max_object_bytes }
    }

    /// The most that is read and written of an object.
    pub(crate) fn max_object_bytes(&self) -> usize {
        self.max_object_bytes
    }

    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Reads the object.
    pub(crate) fn read(
        &self,
        job: &Job,
        memory: &Memory,
        unless: Option<&Version>,
    ) -> Result<Read, StoreError> {
        let Some(directory) = self.directory_of(job, Missing::IsNone)? else {
            return Ok(Read::Missing);
        };
        if memory.unsynced.swap(false, SeqCst)
            && let Err(source) = directory.sync()
        {
            memory.unsynced.store(true, SeqCst);
            let what = job.says("reading", "an earlier write is not on disk yet, and fsync of its directory fails again; see the system's log for the disk");
            return Err(StoreError::Unavailable(Cause::with_source(what, source)));
        }
        let Some(content) = job.read(&directory, self.max_object_bytes, "reading")? else {
            return Ok(Read::Missing);
        };
        let version = version::of(&content);
        match content {
            _ if unless == Some(&version) => Ok(Read::NotModified),
            Content::Whole(content) => {
                Ok(Read::Found { content: content.into(), version, age: None })
            }
            Content::Oversize(file) => {
                let what = format!(
                    "it has {} bytes, more than {}; see who wrote it",
                    file.size, self.max_object_bytes
                );
                Err(StoreError::Corrupt { version, cause: Cause::new(job.says("reading", &what)) })
            }
        }
    }

    /// Creates the object, and the directories that its key names.
    pub(crate) fn create(
        &self,
        job: &Job,
        memory: &Memory,
        content: &Bytes,
    ) -> Result<Version, StoreError> {
        const DOING: &str = "creating";
        job.check_size(content, self.max_object_bytes, DOING)?;
        let Some(directory) = self.directory_of(job, Missing::IsCreated)? else {
            return Err(StoreError::Unavailable(Cause::new(
                job.says(DOING, "its directory vanished; try again"),
            )));
        };
        let lock = job.lock(&directory, memory, DOING)?;
        match directory.kind_of(job.file_name()).map_err(|error| job.unreadable(DOING, error))? {
            None => {}
            Some(FileKind::Regular) => return Err(job.exists()),
            Some(other) => {
                let what = format!(
                    "there is {other} in its place, which is left alone; see who put it there"
                );
                return Err(StoreError::Unavailable(Cause::new(job.says(DOING, &what))));
            }
        }
        let written = directory.create_new(job.file_name(), content, || job.may_still_write(&lock));
        job.outcome(written, memory, DOING)?;
        Ok(version::of_content(content))
    }

    /// Replaces the object if it has `expected`.
    pub(crate) fn replace(
        &self,
        job: &Job,
        memory: &Memory,
        content: &Bytes,
        expected: &Version,
    ) -> Result<Version, StoreError> {
        const DOING: &str = "replacing";
        job.check_size(content, self.max_object_bytes, DOING)?;
        let Some(directory) = self.directory_of(job, Missing::IsNone)? else {
            return Err(job.precondition("it is gone, with its directory"));
        };
        let lock = job.lock(&directory, memory, DOING)?;
        let Some(current) = job.read(&directory, self.max_object_bytes, DOING)? else {
            return Err(job.precondition("it is gone"));
        };
        let found = version::of(&current);
        if found != *expected {
            return Err(job.precondition(&format!("it has version {found}, not {expected}")));
        }
        let written = directory.replace(job.file_name(), content, || job.may_still_write(&lock));
        job.outcome(written, memory, DOING)?;
        Ok(version::of_content(content))
    }

    /// Walks from the root to the directory of the object. No symlink is followed below the root.
    fn directory_of(&self, job: &Job, missing: Missing) -> Result<Option<Directory>, StoreError> {
        const DOING: &str = "finding";
        let known = &self.directory;
        let unreadable = |error| job.unreadable(DOING, error);
        // By its path again, each time: a handle would go on into a directory that was moved away,
        // while others use the one that is now in its place.
        let root = Directory::open(known.path()).map_err(unreadable)?;
        if root.identity() != known.identity() {
            let what = format!(
                "{} is another directory than when the store was opened; mount or restore the first one, or open the store anew",
                known.path().display()
            );
            return Err(StoreError::Unavailable(Cause::new(job.says(DOING, &what))));
        }
        let mut directory = root;
        for segment in job.parents() {
            let name = OsStr::new(segment);
            let next = match missing {
                Missing::IsCreated => {
                    Some(directory.ensure_subdirectory(name).map_err(unreadable)?)
                }
                Missing::IsNone => directory.subdirectory(name).map_err(unreadable)?,
            };
            let Some(next) = next else { return Ok(None) };
            if next.identity().dev != known.identity().dev {
                self.check_mounted(job, &next)?;
            }
            directory = next;
        }
        Ok(Some(directory))
    }

    /// Another file system is mounted below the root: the rules for the root hold there too.
    fn check_mounted(&self, job: &Job, directory: &Directory) -> Result<(), StoreError> {
        let says = |what: &str| job.says("finding", what);
        let kind = FileSystem::of(directory.as_fd()).map_err(|error| {
            StoreError::Unavailable(Cause::with_source(says("statfs failed"), error))
        })?;
        if self.policy.takes(kind) {
            return Ok(());
        }
        let what = format!(
            "{} is on another file system, {kind}, where flock may not exclude everybody; unmount it",
            directory.path().display()
        );
        Err(StoreError::Unavailable(Cause::new(says(&what))))
    }
}

/// What a missing directory on the way to an object means.
#[derive(Clone, Copy)]
enum Missing {
    IsCreated,
    IsNone,
}

impl Job {
    /// The last segment of the key.
    fn file_name(&self) -> &OsStr {
        let key = self.key.as_str();
        OsStr::new(key.rsplit_once('/').map_or(key, |(_, name)| name))
    }

    /// The segments before the last.
    fn parents(&self) -> impl Iterator<Item = &str> {
        let parents = self.key.as_str().rsplit_once('/').map(|(parents, _)| parents);
        parents.into_iter().flat_map(|parents| parents.split('/'))
    }

    /// Locks the object's sidecar file. No key has its name: none ends in `.lock`.
    fn lock(
        &self,
        directory: &Directory,
        memory: &Memory,
        doing: &str,
    ) -> Result<LockFile, StoreError> {
        let mut name = OsString::from(self.file_name());
        name.push(".lock");
        let lock = directory.lock(&name).map_err(|error| {
            let message = self.says(doing, &error.to_string());
            StoreError::Unavailable(match error {
                LockError::Io { source, .. } => Cause::with_source(message, source),
                _ => Cause::new(message),
            })
        })?;
        if !memory.swept.swap(true, SeqCst)
            && let Err(error) = directory.sweep_temporaries(self.file_name())
        {
            tracing::debug!(key = %self.key, %error, "temporary files of killed writers were not removed");
        }
        Ok(lock)
    }

    /// The last look before the rename.
    fn may_still_write(&self, lock: &LockFile) -> io::Result<()> {
        if self.cancelled.load(SeqCst) {
            return Err(io::Error::other("nobody waits for this write any more"));
        }
        if !lock.still_in_place() {
            return Err(io::Error::other(
                "the lock file or a directory above it was removed or replaced while it was locked; \
                 stop what removes it",
            ));
        }
        Ok(())
    }

    fn read(
        &self,
        directory: &Directory,
        limit: usize,
        doing: &str,
    ) -> Result<Option<Content>, StoreError> {
        directory
            .read_bounded(self.file_name(), limit)
            .map_err(|error| self.unreadable(doing, error))
    }

    fn outcome(
        &self,
        written: Result<(), WriteError>,
        memory: &Memory,
        doing: &str,
    ) -> Result<(), StoreError> {
        let Err(error) = written else { return Ok(()) };
        let message = self.says(doing, &error.to_string());
        Err(match error {
            WriteError::AlreadyExists { .. } => self.exists(),
            WriteError::NotWritten { source, .. } => {
                StoreError::Unavailable(Cause::with_source(message, source))
            }
            WriteError::InDoubt { source, .. } => {
                memory.unsynced.store(true, SeqCst);
                StoreError::InDoubt(Cause::with_source(message, source))
            }
            other => {
                memory.unsynced.store(true, SeqCst);
                StoreError::InDoubt(Cause::with_source(message, other))
            }
        })
    }

    fn check_size(&self, content: &Bytes, limit: usize, doing: &str) -> Result<(), StoreError> {
        if content.len() <= limit {
            return Ok(());
        }
        let what = format!("{} bytes are more than {limit}; write less", content.len());
        Err(StoreError::Unavailable(Cause::new(self.says(doing, &what))))
    }

    fn exists(&self) -> StoreError {
        self.precondition("it exists")
    }

    fn precondition(&self, what: &str) -> StoreError {
        StoreError::Precondition(Cause::new(format!("{}: {what}; read it again", self.key)))
    }

    fn unreadable(&self, doing: &str, error: ReadError) -> StoreError {
        let message = self.says(doing, &error.to_string());
        StoreError::Unavailable(match error {
            ReadError::Io { source, .. } => Cause::with_source(message, source),
            _ => Cause::new(message),
        })
    }

    fn says(&self, doing: &str, what: &str) -> String {
        format!("{doing} {}: {what}", self.key)
    }
}
