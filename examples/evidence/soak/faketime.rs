//! Wall clocks that jump, by `libfaketime`.
//!
//! Tried with 0.9.10 on Linux: it stands in for the C library's `clock_gettime`, and moves
//! `CLOCK_REALTIME`, `CLOCK_MONOTONIC` and `CLOCK_BOOTTIME` alike, unless
//! `FAKETIME_DONT_FAKE_MONOTONIC` is set: then only the wall clock. System calls go past it, and with
//! them rustix, which asks the kernel itself: see `LibraryClock`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The library, where the systems put it that have it.
pub(crate) fn library() -> Option<PathBuf> {
    // The processes have several threads.
    const NAME: &str = "faketime/libfaketimeMT.so.1";
    let mut directories = vec![PathBuf::from("/usr/lib"), PathBuf::from("/usr/local/lib")];
    let listed = fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    directories.extend(listed.map(|entry| entry.path()).filter(|path| is_of_an_architecture(path)));
    directories.into_iter().map(|directory| directory.join(NAME)).find(|path| path.exists())
}

fn is_of_an_architecture(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().ends_with("-linux-gnu"))
}

/// The wall clock of one place.
#[derive(Debug)]
pub(crate) struct Wall {
    library: PathBuf,
    file: PathBuf,
    /// How far it is from the true one, in seconds.
    pub(crate) offset: i64,
}

impl Wall {
    pub(crate) fn new(library: &Path, file: PathBuf) -> io::Result<Self> {
        let wall = Self { library: library.to_owned(), file, offset: 0 };
        wall.write()?;
        Ok(wall)
    }

    pub(crate) fn env(&self) -> [(&'static str, std::ffi::OsString); 5] {
        [
            ("LD_PRELOAD", self.library.clone().into()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.clone().into()),
            ("FAKETIME_NO_CACHE", "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
            ("NO_FAKE_STAT", "1".into()),
        ]
    }

    /// Sets it, for a process that runs too.
    pub(crate) fn set(&mut self, offset: i64) -> io::Result<()> {
        self.offset = offset;
        self.write()
    }

    fn write(&self) -> io::Result<()> {
        // The file is read at every look at the clock, and must be whole.
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{:+}\n", self.offset))?;
        fs::rename(new, &self.file)
    }
}
