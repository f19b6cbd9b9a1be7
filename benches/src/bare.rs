//! What no renewal and no poll in a directory can do without, as plain system calls.
//!
//! Nothing here is looked at twice: no symlink, no lock file that was removed, no directory that was
//! moved away, nothing that a killed writer left. It is a floor, not a store.

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock, fsync, mkdirat, openat, renameat},
    io::{read, write},
};
use sha2::{Digest as _, Sha256};
use std::{hint::black_box, os::fd::OwnedFd, path::Path};

const OBJECT: &str = "lease.json";
const LOCK: &str = "lease.json.lock";
const TEMPORARY: &str = ".lease.json.tmp";
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A lease in a directory, written and read without a store.
#[derive(Debug)]
pub struct Bare(OwnedFd);

impl Bare {
    /// The lease in the directory `path`, which is made, with that content.
    #[must_use]
    pub fn create(path: &Path, content: &[u8]) -> Self {
        mkdirat(CWD, path, Mode::RWXU).expect("its parent is there");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let bare = Self(openat(CWD, path, flags, Mode::empty()).expect("it was made"));
        bare.replace(content);
        bare
    }

    /// One renewal: lock, read and digest, write, sync, rename, sync the directory, unlock.
    pub fn renew(&self, content: &[u8]) {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
        let lock = openat(&self.0, LOCK, flags, PRIVATE).expect("a lock file");
        flock(&lock, FlockOperation::LockExclusive).expect("the lock");
        self.poll();
        self.replace(content);
        flock(&lock, FlockOperation::Unlock).expect("the lock's end");
    }

    /// One poll: open, read, digest.
    pub fn poll(&self) {
        let mut content = [0; 4096];
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = openat(&self.0, OBJECT, flags, Mode::empty()).expect("the lease");
        let length = read(&file, &mut content).expect("its content");
        black_box(Sha256::digest(&content[..length]));
    }

    fn replace(&self, content: &[u8]) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = openat(&self.0, TEMPORARY, flags, PRIVATE).expect("a temporary file");
        assert_eq!(write(&file, content).expect("its content"), content.len());
        fsync(&file).expect("the file on disk");
        renameat(&self.0, TEMPORARY, &self.0, OBJECT).expect("the rename");
        fsync(&self.0).expect("the directory on disk");
    }
}
