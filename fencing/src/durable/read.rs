use super::{FileIdentity, FileKind, ReadError, Step};
use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};
use std::{
    ffi::OsStr,
    fmt,
    fs::File,
    io::{self, Read as _},
    os::fd::{BorrowedFd, OwnedFd},
    path::Path,
};

/// What a bounded read found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// More than the limit; only its beginning was read.
    Oversize(Oversize),
    /// All of the file.
    Whole(Vec<u8>),
}

/// A file larger than the limit, by what tells one version of it from another.
#[derive(Clone, PartialEq, Eq)]
pub struct Oversize {
    /// Which file it is.
    pub identity: FileIdentity,
    /// Its size in bytes when it was opened (it may have grown while it was read).
    pub size: u64,
    /// When it was last modified, in nanoseconds since the Unix epoch, as the file system tells.
    pub modified_unix_nanos: i128,
    /// Its first bytes, as many as the limit.
    pub head: Vec<u8>,
}

impl fmt::Debug for Oversize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Oversize")
            .field("identity", &self.identity)
            .field("size", &self.size)
            .field("modified_unix_nanos", &self.modified_unix_nanos)
            .finish_non_exhaustive()
    }
}

pub(super) fn read_at(
    at: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    limit: usize,
) -> Result<Option<Content>, ReadError> {
    let Some((handle, stat)) = open_regular(at, name, path, OFlags::RDONLY)? else {
        return Ok(None);
    };
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let (bytes, whole) = read_up_to(handle.into(), size, limit)
        .map_err(|source| ReadError::Io { path: path.into(), step: Step::Read, source })?;
    Ok(Some(if whole {
        Content::Whole(bytes)
    } else {
        Content::Oversize(Oversize {
            identity: FileIdentity::of(&stat),
            size,
            modified_unix_nanos: modified_unix_nanos(&stat),
            head: bytes,
        })
    }))
}

/// Opens a regular file and nothing else, without following a symlink and without blocking.
/// `None`: there is none (with `OFlags::CREATE` there always is).
pub(super) fn open_regular(
    at: BorrowedFd<'_>,
    name: &OsStr,
    path: &Path,
    access: OFlags,
) -> Result<Option<(OwnedFd, Stat)>, ReadError> {
    // NONBLOCK: opening a FIFO must not wait for its other end. It means nothing for regular files.
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let mode = if access.contains(OFlags::CREATE) { super::FILE_MODE } else { Mode::empty() };
    let handle = match openat(at, name, flags, mode) {
        Ok(handle) => handle,
        Err(Errno::NOENT) if !access.contains(OFlags::CREATE) => return Ok(None),
        Err(errno) => return Err(refused(at, name, path, errno)),
    };
    let stat = fstat(&handle).map_err(|errno| ReadError::Io {
        path: path.into(),
        step: Step::Stat,
        source: errno.into(),
    })?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(Some((handle, stat))),
        other => Err(ReadError::NotRegular { path: path.into(), found: FileKind::of(other) }),
    }
}

/// A symlink, a socket or a directory makes `open` itself fail: tell it by what it is.
fn refused(at: BorrowedFd<'_>, name: &OsStr, path: &Path, errno: Errno) -> ReadError {
    if let Ok(stat) = statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            return ReadError::NotRegular { path: path.into(), found: FileKind::of(kind) };
        }
    }
    ReadError::Io { path: path.into(), step: Step::Open, source: errno.into() }
}

/// Reads at most `limit` + 1 bytes; returns at most `limit` and whether that was all.
///
/// One `read` for a file that is as large as `size` says: what is appended after it was opened
/// counts as after the read. A file whose size is told as zero (procfs) is read to its end.
fn read_up_to(mut file: File, size: u64, limit: usize) -> io::Result<(Vec<u8>, bool)> {
    let expected = usize::try_from(size).map_or(limit, |size| size.min(limit));
    let mut bytes = vec![0; expected + 1];
    let mut filled = 0;
    loop {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        if filled == expected && filled > 0 && size == filled as u64 {
            break;
        }
        if filled == bytes.len() {
            if filled > limit {
                bytes.truncate(limit);
                return Ok((bytes, false));
            }
            bytes.resize(limit + 1, 0);
        }
    }
    bytes.truncate(filled);
    Ok((bytes, true))
}

#[allow(clippy::unnecessary_cast, reason = "of another width or sign on other platforms")]
fn modified_unix_nanos(stat: &Stat) -> i128 {
    stat.st_mtime as i128 * 1_000_000_000 + stat.st_mtime_nsec as i128
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::PathBuf};

    fn scratch(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("file");
        fs::write(&path, content).unwrap();
        (scratch, path)
    }

    #[test]
    fn case_37_no_more_than_the_limit_and_one_byte_is_read() {
        for (size, whole) in
            [(0, true), (1, true), (99, true), (100, true), (101, false), (500, false)]
        {
            let content: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (_scratch, path) = scratch(&content);
            match super::super::read_bounded(&path, 100).unwrap().unwrap() {
                Content::Whole(read) => assert!(whole && read == content, "{size}"),
                Content::Oversize(over) => {
                    assert!(!whole, "{size}");
                    assert_eq!(over.head, content[..100]);
                    assert_eq!(over.size, size as u64);
                }
            }
        }
    }

    #[test]
    fn a_file_that_lies_about_its_size_is_bounded_all_the_same() {
        let (_scratch, path) = scratch(&[7; 300]);
        for told in [0, 1, 99, 100, 299] {
            let (bytes, whole) = read_up_to(File::open(&path).unwrap(), told, 100).unwrap();
            // One that grew to more than it said when it was opened is read as it was.
            if (1..=100).contains(&told) && whole {
                assert_eq!(bytes.len() as u64, told);
            } else {
                assert_eq!((bytes.len(), whole), (100, false), "{told}");
            }
        }
        let (bytes, whole) = read_up_to(File::open(&path).unwrap(), 0, 300).unwrap();
        assert_eq!((bytes.len(), whole), (300, true));
        let (bytes, whole) = read_up_to(File::open(&path).unwrap(), 900, 400).unwrap();
        assert_eq!((bytes.len(), whole), (300, true), "it shrank");
    }
}
