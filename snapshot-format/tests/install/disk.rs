//! A file system that forgets in a power cut what was not synced.
//!
//! Names and contents as a trace of calls changes them, once as everybody sees them and once as they
//! are certain to be on disk. A power cut leaves, of the changes of names since the directory was
//! last synced, any part, each change whole; and of a file that was not synced since it was written,
//! any part.

use crate::trace::Call;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Inode {
    content: Vec<u8>,
    synced: bool,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Named { name: String, inode: usize },
    Renamed { from: String, to: String },
    Removed { name: String },
}

type Names = BTreeMap<String, usize>;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    seen: Names,
    on_disk: Names,
    unsynced: Vec<Change>,
}

/// What a power cut left: contents, and which names have which.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Remains {
    inodes: Vec<Vec<u8>>,
    names: Names,
}

impl Disk {
    /// All that is in `directory`, on disk.
    pub(crate) fn of(directory: &Path) -> Self {
        let mut disk =
            Self { inodes: vec![], seen: Names::new(), on_disk: Names::new(), unsynced: vec![] };
        let mut known = BTreeMap::new();
        for name in crate::support::names(directory) {
            let path = directory.join(&name);
            let inode = *known.entry(fs::metadata(&path).unwrap().ino()).or_insert_with(|| {
                disk.inodes.push(Inode { content: fs::read(&path).unwrap(), synced: true });
                disk.inodes.len() - 1
            });
            disk.seen.insert(name, inode);
        }
        disk.on_disk = disk.seen.clone();
        disk
    }

    /// What the call changes.
    pub(crate) fn apply(&mut self, call: &Call, directory: &Path) {
        if !call.succeeded() {
            return;
        }
        let handle = || {
            let path = call.handle().unwrap();
            if path == directory { None } else { path.file_name()?.to_str().map(str::to_owned) }
        };
        let mut names = call.strings().into_iter();
        let mut name = || names.next().unwrap();
        match call.name.as_str() {
            "openat" if call.text.contains("O_CREAT") => {
                let name = name();
                if !self.seen.contains_key(&name) {
                    self.inodes.push(Inode { content: vec![], synced: false });
                    self.change(Change::Named { name, inode: self.inodes.len() - 1 });
                }
            }
            "write" => {
                let inode = self.seen[&handle().unwrap()];
                self.inodes[inode].content.extend(name().into_bytes());
                self.inodes[inode].synced = false;
            }
            "fsync" => match handle() {
                Some(file) => self.inodes[self.seen[&file]].synced = true,
                None => {
                    self.on_disk = self.seen.clone();
                    self.unsynced.clear();
                }
            },
            "linkat" => {
                let inode = self.seen[&name()];
                self.change(Change::Named { name: name(), inode });
            }
            "renameat" | "renameat2" => self.change(Change::Renamed { from: name(), to: name() }),
            "unlinkat" => self.change(Change::Removed { name: name() }),
            "pwrite64" | "writev" | "ftruncate" | "rename" | "unlink" | "link" | "fdatasync" => {
                panic!("a call that this model does not know: {}", call.text)
            }
            _ => {}
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.seen);
        self.unsynced.push(change);
    }

    /// As everybody sees it: what a killed process leaves.
    pub(crate) fn as_seen(&self) -> Remains {
        let inodes = self.inodes.iter().map(|inode| inode.content.clone()).collect();
        Remains { inodes, names: self.seen.clone() }
    }

    /// Everything that a power cut may leave.
    pub(crate) fn after_power_cut(&self) -> BTreeSet<Remains> {
        let mut all = BTreeSet::new();
        assert!(self.unsynced.len() < 12, "too much at once: {:?}", self.unsynced);
        for kept in 0..1_u32 << self.unsynced.len() {
            let mut names = self.on_disk.clone();
            for (index, change) in self.unsynced.iter().enumerate() {
                if kept & (1 << index) != 0 {
                    change.apply(&mut names);
                }
            }
            for part in [0, 1, 2] {
                let inodes = self.inodes.iter().map(|inode| {
                    let length = inode.content.len();
                    let kept = if inode.synced { length } else { length * part / 2 };
                    inode.content[..kept].to_vec()
                });
                all.insert(Remains { inodes: inodes.collect(), names: names.clone() });
            }
        }
        all
    }
}

impl Change {
    fn apply(&self, names: &mut Names) {
        match self {
            Self::Named { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            // A change of a name that is not on disk has nothing to change.
            Self::Renamed { from, to } => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Removed { name } => {
                names.remove(name);
            }
        }
    }
}

impl Remains {
    /// The same as a real directory.
    pub(crate) fn lay_out(&self, directory: &Path) {
        let mut first: BTreeMap<usize, &str> = BTreeMap::new();
        for (name, inode) in &self.names {
            let path = directory.join(name);
            match first.get(inode) {
                Some(other) => fs::hard_link(directory.join(other), path).unwrap(),
                None => {
                    fs::write(path, &self.inodes[*inode]).unwrap();
                    first.insert(*inode, name);
                }
            }
        }
    }
}
