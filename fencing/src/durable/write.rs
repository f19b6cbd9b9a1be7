use super::{Directory, FILE_MODE, Step, WriteError, directory::component};
use rustix::{
    fs::{AtFlags, Dir, OFlags, linkat, openat, renameat, unlinkat},
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Write as _},
    os::{fd::AsFd as _, unix::ffi::OsStrExt as _},
};

/// What the rename may find at its target.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    Created,
    Replaced,
}

pub(super) fn write(
    directory: &Directory,
    name: &OsStr,
    content: &[u8],
    target: Target,
    before_rename: impl FnOnce() -> io::Result<()>,
) -> Result<(), WriteError> {
    let not_written =
        |step, source| WriteError::NotWritten { path: directory.path_of(name), step, source };
    component(name).map_err(|source| not_written(Step::CreateTemporary, source))?;
    let temporary = Temporary::create(directory, name)
        .map_err(|source| not_written(Step::CreateTemporary, source))?;
    (&temporary.file).write_all(content).map_err(|source| not_written(Step::Write, source))?;
    temporary.file.sync_all().map_err(|source| not_written(Step::SyncFile, source))?;
    before_rename().map_err(|source| not_written(Step::BeforeRename, source))?;

    match temporary.become_target(name, target) {
        Ok(()) => {}
        Err(Errno::EXIST) if target == Target::Created => {
            return Err(WriteError::AlreadyExists { path: directory.path_of(name) });
        }
        Err(errno) if refused_without_effect(errno) => {
            return Err(not_written(Step::Rename, errno.into()));
        }
        Err(errno) => {
            let path = directory.path_of(name);
            return Err(WriteError::InDoubt { path, step: Step::Rename, source: errno.into() });
        }
    }
    directory.sync().map_err(|source| WriteError::InDoubt {
        path: directory.path_of(name),
        step: Step::SyncDirectory,
        source,
    })
}

/// Whether a rename that failed so was refused before anything changed.
///
/// An I/O error is not among them: the change may be in the journal, or on its way to a server.
pub(super) fn refused_without_effect(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ACCESS
            | Errno::BUSY
            | Errno::DQUOT
            | Errno::EXIST
            | Errno::INVAL
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::MLINK
            | Errno::NAMETOOLONG
            | Errno::NOENT
            | Errno::NOMEM
            | Errno::NOSPC
            | Errno::NOSYS
            | Errno::NOTDIR
            | Errno::NOTEMPTY
            | Errno::OPNOTSUPP
            | Errno::PERM
            | Errno::ROFS
            | Errno::XDEV
    )
}

/// A file that nobody else knows of. Unlinked when dropped, unless it became the target.
struct Temporary<'a> {
    directory: &'a Directory,
    name: OsString,
    file: File,
    named: bool,
}

impl<'a> Temporary<'a> {
    fn create(directory: &'a Directory, target: &OsStr) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let mut name = temporary_prefix(target);
        name.push(format!("{:016x}{SUFFIX}", u64::from_be_bytes(random)));
        // EXCL: an earlier file of that name, or a symlink planted there, is an error.
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(directory.as_fd(), &name, flags, FILE_MODE)?;
        Ok(Self { directory, name, file: file.into(), named: true })
    }

    fn become_target(mut self, name: &OsStr, target: Target) -> Result<(), Errno> {
        let at = self.directory.as_fd();
        match target {
            Target::Replaced => renameat(at, &self.name, at, name)?,
            Target::Created => match rename_no_replace(self.directory, &self.name, name) {
                // The file system has no such rename. A hard link has the same effect in one step;
                // the temporary name is unlinked by the drop.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                    return linkat(at, &self.name, at, name, AtFlags::empty());
                }
                renamed => renamed?,
            },
        }
        self.named = false;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if self.named {
            // If this fails the file stays behind, which readers never look at.
            let _ = unlinkat(self.directory.as_fd(), &self.name, AtFlags::empty());
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_no_replace(directory: &Directory, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    let at = directory.as_fd();
    rustix::fs::renameat_with(at, from, at, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_no_replace(_: &Directory, _: &OsStr, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

const SUFFIX: &str = ".tmp";

fn temporary_prefix(target: &OsStr) -> OsString {
    let mut name = OsString::from(".");
    name.push(target);
    name.push(".");
    name
}

pub(super) fn sweep_temporaries(directory: &Directory, target: &OsStr) -> io::Result<usize> {
    let prefix = temporary_prefix(target);
    let mut removed = 0;
    for entry in Dir::read_from(directory.as_fd())? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        let Some(rest) = name.strip_prefix(prefix.as_bytes()) else { continue };
        let Some(random) = rest.strip_suffix(SUFFIX.as_bytes()) else { continue };
        if random.len() == 16 && random.iter().all(u8::is_ascii_hexdigit) {
            match unlinkat(directory.as_fd(), entry.file_name(), AtFlags::empty()) {
                Ok(()) => removed += 1,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
    Ok(removed)
}
