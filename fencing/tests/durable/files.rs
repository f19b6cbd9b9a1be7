//! What is planted, full, read-only or raced for.

use crate::support::{Mount, Skip, names, skippable, test};
use fencing::durable::{
    self, Content, Directory, FileKind, LockError, LockFile, ReadError, Step, WriteError,
};
use libtest_mimic::Trial;
use std::{
    fs, io,
    os::unix::{
        fs::{MetadataExt as _, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Command,
    sync::Barrier,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("case_16_only_not_found_is_none", only_not_found_is_none),
        test("case_18_a_planted_symlink_is_not_followed", symlinks_are_not_followed),
        test("case_18_fifo_directory_socket_and_device_are_refused", only_regular_files),
        test("case_18_no_symlink_below_an_open_directory", no_symlink_below_a_directory),
        test("case_17_stale_temporaries_are_ignored_and_swept", stale_temporaries),
        test("case_19_names_do_not_leave_the_directory", names_stay_in_the_directory),
        skippable("case_17_a_full_disk_leaves_the_target_unchanged", full_disk),
        skippable("a_read_only_file_system_is_not_written", read_only),
        test("one_of_many_creates_wins_and_is_whole", one_create_wins),
        test("a_veto_leaves_the_target_unchanged", veto),
        test("a_path_without_a_name_is_refused", no_name),
        test("the_boot_has_an_id", boot_id),
    ]
}

fn only_not_found_is_none() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(durable::read_bounded(&file, 9).unwrap(), Some(Content::Whole(Vec::new())));
    assert_eq!(durable::read_bounded(&scratch.path().join("none"), 9).unwrap(), None);
    assert_eq!(durable::read_bounded(&scratch.path().join("none/none"), 9).unwrap(), None);
    let under_a_file = durable::read_bounded(&file.join("x"), 9).unwrap_err();
    assert_eq!(under_a_file.io().unwrap().kind(), io::ErrorKind::NotADirectory);
    let long = durable::read_bounded(&scratch.path().join("x".repeat(300)), 9).unwrap_err();
    assert!(long.to_string().contains("opening it failed; choose a shorter name"), "{long}");
}

fn symlinks_are_not_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let (victim, planted) = (scratch.path().join("victim"), scratch.path().join("planted"));
    fs::write(&victim, b"precious").unwrap();
    symlink(&victim, &planted).unwrap();
    let state = || {
        let meta = fs::metadata(&victim).unwrap();
        (fs::read(&victim).unwrap(), meta.mode(), meta.mtime(), meta.mtime_nsec(), meta.ino())
    };
    let before = state();

    let error = durable::read_bounded(&planted, 100).unwrap_err();
    assert!(matches!(error, ReadError::NotRegular { found: FileKind::Symlink, .. }), "{error}");
    for lock in [LockFile::acquire(&planted).map(Some), LockFile::try_acquire(&planted)] {
        let error = lock.unwrap_err();
        assert!(matches!(error, LockError::NotRegular { found: FileKind::Symlink, .. }), "{error}");
    }
    let error = durable::create_new(&planted, b"mine").unwrap_err();
    assert!(matches!(error, WriteError::AlreadyExists { .. }), "{error}");
    assert_eq!(state(), before);

    // A dangling one would be created through if it were followed.
    let (dangling, nowhere) = (scratch.path().join("dangling"), scratch.path().join("nowhere"));
    symlink(&nowhere, &dangling).unwrap();
    assert!(durable::read_bounded(&dangling, 100).is_err(), "not taken for absent");
    assert!(LockFile::acquire(&dangling).is_err());
    assert!(durable::create_new(&dangling, b"mine").is_err());
    assert!(!nowhere.exists());

    durable::replace(&planted, b"mine").unwrap();
    assert_eq!(state(), before, "the link was replaced, not its target");
    assert_eq!(fs::read(&planted).unwrap(), b"mine");
}

fn only_regular_files() {
    let scratch = tempfile::tempdir().unwrap();
    let fifo = scratch.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = scratch.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let directory = scratch.path().join("directory");
    fs::create_dir(&directory).unwrap();
    let planted = [
        (fifo.as_path(), FileKind::Fifo),
        (&socket, FileKind::Socket),
        (&directory, FileKind::Directory),
        (Path::new("/dev/null"), FileKind::Device),
    ];
    // One that blocked would hang here for ever.
    for (path, kind) in planted {
        match durable::read_bounded(path, 100) {
            Err(ReadError::NotRegular { found, .. }) => assert_eq!(found, kind),
            other => panic!("{}: {other:?}", path.display()),
        }
        match LockFile::acquire(path) {
            Err(LockError::NotRegular { found, .. }) => assert_eq!(found, kind),
            other => panic!("{}: {other:?}", path.display()),
        }
    }
    let error = durable::replace(&directory, b"x").unwrap_err();
    assert!(matches!(error, WriteError::NotWritten { step: Step::Rename, .. }), "{error}");
    assert_eq!(names(scratch.path()), ["directory", "fifo", "socket"]);
}

fn no_symlink_below_a_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    symlink(outside.path(), scratch.path().join("link")).unwrap();
    fs::write(scratch.path().join("file"), b"").unwrap();
    let root = Directory::open(scratch.path()).unwrap();
    for (name, kind) in [("link", FileKind::Symlink), ("file", FileKind::Regular)] {
        for result in
            [root.subdirectory(name.as_ref()), root.ensure_subdirectory(name.as_ref()).map(Some)]
        {
            let error = result.unwrap_err();
            assert!(
                matches!(error, ReadError::NotRegular { found, .. } if found == kind),
                "{name}: {error:?}"
            );
        }
    }
    assert!(root.subdirectory("none".as_ref()).unwrap().is_none());
    assert!(Directory::open(&scratch.path().join("link")).is_ok(), "that path is the operator's");
}

fn stale_temporaries() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("state");
    for stale in [".state.0123456789abcdef.tmp", ".state.tmp", ".other.0123456789abcdef.tmp"] {
        fs::write(scratch.path().join(stale), b"half").unwrap();
    }
    assert_eq!(durable::read_bounded(&path, 100).unwrap(), None);
    durable::create_new(&path, b"one").unwrap();
    durable::replace(&path, b"two").unwrap();
    let directory = Directory::open(scratch.path()).unwrap();
    assert_eq!(directory.sweep_temporaries("state".as_ref()).unwrap(), 1);
    assert_eq!(names(scratch.path()), [".other.0123456789abcdef.tmp", ".state.tmp", "state"]);
    assert_eq!(fs::read(&path).unwrap(), b"two");
}

fn names_stay_in_the_directory() {
    let scratch = tempfile::tempdir().unwrap();
    let inner = scratch.path().join("inner");
    fs::create_dir(&inner).unwrap();
    fs::write(scratch.path().join("outside"), b"").unwrap();
    let directory = Directory::open(&inner).unwrap();
    for bad in ["../outside", "..", ".", "", "a/b", "/abs"] {
        let name = bad.as_ref();
        assert!(directory.read_bounded(name, 9).is_err(), "{bad:?}");
        assert!(directory.kind_of(name).is_err(), "{bad:?}");
        assert!(directory.replace(name, b"", || Ok(())).is_err(), "{bad:?}");
        assert!(directory.create_new(name, b"", || Ok(())).is_err(), "{bad:?}");
        assert!(directory.lock(name).is_err(), "{bad:?}");
        assert!(directory.subdirectory(name).is_err(), "{bad:?}");
        assert!(directory.ensure_subdirectory(name).is_err(), "{bad:?}");
        assert!(directory.sweep_temporaries(name).is_err(), "{bad:?}");
    }
    assert_eq!((names(scratch.path()).len(), names(&inner).len()), (2, 0));
}

fn full_disk() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=16k")?;
    let path = mount.path().join("state");
    durable::replace(&path, b"old").unwrap();
    fs::write(mount.path().join("filler"), vec![1; 8 * 1024]).unwrap();
    for write in [durable::replace, |path: &Path, content: &[u8]| {
        durable::create_new(&path.with_file_name("new"), content)
    }] {
        // One page is left: the write gets stuck in the middle.
        let error = write(&path, &[7; 6000]).unwrap_err();
        let WriteError::NotWritten { step: Step::Write, source, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert!(error.to_string().ends_with("make room on the file system"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(mount.path()), ["filler", "state"]);
    }
    Ok(())
}

fn read_only() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=16k")?;
    let path = mount.path().join("state");
    durable::replace(&path, b"old").unwrap();
    mount.remount("ro");
    let error = durable::replace(&path, b"new").unwrap_err();
    assert!(
        matches!(error, WriteError::NotWritten { step: Step::CreateTemporary, .. }),
        "{error:?}"
    );
    assert_eq!(durable::read_bounded(&path, 9).unwrap(), Some(Content::Whole(b"old".to_vec())));
    assert!(matches!(
        LockFile::acquire(&mount.path().join("lock")),
        Err(LockError::Io { step: Step::Open, .. })
    ));
    Ok(())
}

fn one_create_wins() {
    for _ in 0..50 {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("state");
        let barrier = Barrier::new(8);
        let created: Vec<bool> = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..8_u8)
                .map(|i| {
                    let (path, barrier) = (&path, &barrier);
                    scope.spawn(move || {
                        barrier.wait();
                        match durable::create_new(path, &[i; 5000]) {
                            Ok(()) => true,
                            Err(WriteError::AlreadyExists { .. }) => false,
                            Err(other) => panic!("{other:?}"),
                        }
                    })
                })
                .collect();
            tries.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(created.iter().filter(|won| **won).count(), 1);
        let winner = created.iter().position(|won| *won).unwrap() as u8;
        assert_eq!(fs::read(&path).unwrap(), [winner; 5000]);
        assert_eq!(names(scratch.path()), ["state"]);
    }
}

fn veto() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = Directory::open(scratch.path()).unwrap();
    let refuse = || Err(io::Error::other("the caller went away"));
    let new = directory.create_new("state".as_ref(), b"new", refuse);
    assert!(matches!(new, Err(WriteError::NotWritten { step: Step::BeforeRename, .. })));
    assert!(names(scratch.path()).is_empty());
    directory.replace("state".as_ref(), b"old", || Ok(())).unwrap();
    let replaced = directory.replace("state".as_ref(), b"new", refuse);
    assert!(matches!(replaced, Err(WriteError::NotWritten { step: Step::BeforeRename, .. })));
    assert_eq!(fs::read(scratch.path().join("state")).unwrap(), b"old");
    assert_eq!(names(scratch.path()), ["state"]);
}

fn no_name() {
    for path in ["/", "", "..", "a/.."] {
        let path = Path::new(path);
        let error = durable::replace(path, b"").unwrap_err();
        assert!(
            matches!(error, WriteError::NotWritten { step: Step::OpenDirectory, .. }),
            "{error:?}"
        );
        assert!(matches!(LockFile::acquire(path), Err(LockError::Io { .. })));
    }
}

fn boot_id() {
    if cfg!(target_os = "linux") {
        let id = durable::boot_id().unwrap();
        assert_eq!(id.len(), 36);
        assert_eq!(durable::boot_id(), Some(id));
    }
}
