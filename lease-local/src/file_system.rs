//! Which file systems lock for everybody.

use std::{fmt, io, os::fd::BorrowedFd};

/// Whether `flock` on a file system excludes every process that sees the same files.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Locking {
    /// All who see the files are on this machine's kernel, which keeps the locks.
    Local,
    /// Others may see the same files through another kernel or through a process in user space,
    /// and whether they see the locks depends on its version, its server and its mount options.
    Shared,
    /// This crate does not know the file system.
    Unknown,
}

/// A kind of file system, as `statfs` tells it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FileSystem {
    /// The number that it is known by (`f_type`); 0 where the platform tells none.
    pub magic: u64,
    /// Its name; of one that is not known, "unknown".
    pub name: &'static str,
    /// What `flock` is worth on it.
    pub locking: Locking,
}

impl FileSystem {
    /// The kind with this number.
    #[must_use]
    pub fn of_magic(magic: u64) -> Self {
        KNOWN.iter().find(|known| known.magic == magic).copied().unwrap_or(Self {
            magic,
            name: "unknown",
            locking: Locking::Unknown,
        })
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) fn of(directory: BorrowedFd<'_>) -> io::Result<Self> {
        let stat = rustix::fs::fstatfs(directory)?;
        // The numbers have 32 bits; some platforms widen them with their sign.
        #[allow(clippy::unnecessary_cast, reason = "of another width or sign on other platforms")]
        let magic = stat.f_type as u64 & 0xffff_ffff;
        Ok(Self::of_magic(magic))
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn of(_: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self::of_magic(0))
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#x})", self.name, self.magic)
    }
}

const fn local(magic: u64, name: &'static str) -> FileSystem {
    FileSystem { magic, name, locking: Locking::Local }
}

const fn shared(magic: u64, name: &'static str) -> FileSystem {
    FileSystem { magic, name, locking: Locking::Shared }
}

/// From `linux/magic.h`, statfs(2) and the file systems' own sources.
const KNOWN: &[FileSystem] = &[
    local(0xef53, "ext2/ext3/ext4"),
    local(0x5846_5342, "xfs"),
    local(0x9123_683e, "btrfs"),
    local(0x0102_1994, "tmpfs"),
    local(0x8584_58f6, "ramfs"),
    local(0x794c_7630, "overlayfs"),
    local(0x2fc1_2fc1, "zfs"),
    local(0xf2f5_2010, "f2fs"),
    local(0xca45_1a4e, "bcachefs"),
    local(0x3153_464a, "jfs"),
    local(0x5265_4973, "reiserfs"),
    local(0x3434, "nilfs2"),
    local(0x2405_1905, "ubifs"),
    shared(0x6969, "NFS"),
    shared(0x517b, "SMB"),
    shared(0xff53_4d42, "CIFS"),
    shared(0xfe53_4d42, "SMB2"),
    shared(0x0102_1997, "9p"),
    shared(0x6573_5546, "FUSE (virtiofs among them)"),
    shared(0x5346_414f, "AFS"),
    shared(0x6b41_4653, "kAFS"),
    shared(0x7375_7245, "Coda"),
    shared(0x564c, "NCP"),
    shared(0x00c3_6400, "Ceph"),
    shared(0x0116_1970, "GFS2"),
    shared(0x7461_636f, "OCFS2"),
    shared(0x0bd0_0bd0, "Lustre"),
    shared(0x4750_4653, "GPFS"),
    shared(0x1983_0326, "BeeGFS"),
    shared(0xaad7_aaea, "PanFS"),
    shared(0x2003_0528, "OrangeFS"),
    shared(0x786f_4256, "VirtualBox shared folder"),
    shared(0xbacb_acbc, "VMware shared folder"),
    shared(0x7c7c_6673, "Parallels shared folder"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_15_network_and_fuse_file_systems_are_told_from_local_ones() {
        for magic in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(FileSystem::of_magic(magic).locking, Locking::Local, "{magic:#x}");
        }
        for magic in [0x6969, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x6573_5546, 0x00c3_6400] {
            assert_eq!(FileSystem::of_magic(magic).locking, Locking::Shared, "{magic:#x}");
        }
        assert_eq!(FileSystem::of_magic(0x1234_5678).locking, Locking::Unknown);
        for (i, known) in KNOWN.iter().enumerate() {
            assert_eq!(FileSystem::of_magic(known.magic), *known, "number {i} is there twice");
        }
    }
}
