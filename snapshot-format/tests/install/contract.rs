//! What is promised of a swap that nothing disturbs.

use crate::{
    place::{
        DATABASE, Place, backup_name, clock, content, epoch, incoming, made_backup, mark,
        new_instance, verified,
    },
    support::test,
};
use libtest_mimic::Trial;
use snapshot_format::{
    fencing::Epoch,
    install::{InstallError, Installed, Permit, Settled, VerifyError},
};
use std::{fs, io, num::NonZeroUsize, os::unix::fs::MetadataExt as _};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("the_new_database_is_in_place_and_the_old_one_is_its_backup", swap),
        test("the_first_database_of_a_new_instance_has_no_backup", first),
        test("the_newest_three_backups_are_kept", newest_three),
        test("a_clock_that_goes_back_costs_no_backup", clock_goes_back),
        test("several_swaps_of_one_process_follow_each_other", several),
        test("two_that_are_verified_at_once_are_installed_one_by_one", two_at_once),
        test("what_is_not_installed_is_removed", dropped),
        test("a_check_that_rejects_leaves_the_database", rejected),
        test("a_check_that_leaves_a_side_file_is_refused", check_leaves_side_file),
        test("a_check_may_put_another_file_in_its_place", check_replaces),
        test("nothing_is_no_database", nothing),
    ]
}

fn permit() -> Permit {
    Permit::Unfenced(epoch())
}

fn swap() {
    let place = Place::with_database();
    let database = place.settled();
    let old = fs::metadata(place.file(DATABASE)).unwrap().ino();
    let installed = verified(&database, &content("new")).install(permit(), Some(mark())).unwrap();

    assert_eq!(installed.backup, Some(place.file(&made_backup())));
    assert_eq!(place.read(DATABASE), Some(content("new")));
    assert_eq!(place.read(&made_backup()), Some(content("old")));
    assert_eq!(place.names(), [DATABASE, &made_backup()]);
    // Linked, not copied: as large as it may be, and with its mode and owner.
    let backup = fs::metadata(place.file(&made_backup())).unwrap();
    assert_eq!((backup.ino(), backup.nlink()), (old, 1));
    let backups = database.backups().unwrap();
    assert_eq!((backups.len(), backups[0].epoch), (1, epoch()));
    assert_eq!(backups[0].at.to_string(), "2026-10-12T09:58:41.000Z");
    drop(database);
    assert_eq!(place.options().settle().unwrap().1, Settled::Clean);
}

fn first() {
    let place = Place::empty();
    let (database, settled) = new_instance(place.path()).settle().unwrap();
    assert_eq!(settled, Settled::Clean);
    assert!(!database.exists().unwrap());
    let installed = verified(&database, &content("new")).install(permit(), None).unwrap();
    assert!(matches!(installed, Installed { backup: None, .. }));
    assert_eq!(place.names(), [DATABASE]);
    assert!(database.exists().unwrap());
}

fn newest_three() {
    let place = Place::with_backups();
    let foreign =
        ["app.db.bak", "app.db.bak-2026", "app.db.bak-20261012T095841.000Z-epoch07", "app.dbx"];
    for name in foreign {
        place.write(name, b"somebody's");
    }
    let database = place.settled();
    verified(&database, &content("new")).install(permit(), None).unwrap();
    let backups: Vec<_> =
        database.backups().unwrap().into_iter().map(|backup| backup.path).collect();
    assert_eq!(
        backups,
        [made_backup(), backup_name(3), backup_name(2)].map(|name| place.file(&name))
    );
    for name in foreign {
        assert_eq!(place.read(name), Some(b"somebody's".to_vec()), "{name}");
    }
    drop(database);

    let one = NonZeroUsize::MIN;
    let (database, _) = place.options().backups_kept(one).settle().unwrap();
    assert_eq!(database.backups().unwrap().len(), 3, "settling alone removes none");
    verified(&database, &content("newer")).install(permit(), None).unwrap();
    let backups = database.backups().unwrap();
    assert_eq!(backups.len(), 1);
    assert_eq!(fs::read(&backups[0].path).unwrap(), content("new"));
}

fn clock_goes_back() {
    let place = Place::with_database();
    let clock = clock();
    let (database, _) = place.options().clock(clock.clone()).settle().unwrap();
    let mut last = content("old");
    for swap in 0..5 {
        clock.jump_wall(-1000);
        let next = content(&format!("new{swap}"));
        let installed = verified(&database, &next).install(permit(), None).unwrap();
        let newest = &database.backups().unwrap()[0];
        assert_eq!(Some(&newest.path), installed.backup.as_ref());
        assert_eq!(fs::read(&newest.path).unwrap(), last);
        last = next;
    }
    let kept: Vec<_> =
        database.backups().unwrap().iter().map(|b| fs::read(&b.path).unwrap()).collect();
    assert_eq!(kept, [content("new3"), content("new2"), content("new1")]);
}

fn several() {
    let place = Place::with_database();
    let database = place.settled();
    for epoch in 1..=4 {
        let next = content(&format!("new{epoch}"));
        let permit = Permit::Unfenced(Epoch::new(epoch).unwrap());
        verified(&database, &next).install(permit, None).unwrap();
        assert_eq!(place.read(DATABASE), Some(next));
    }
    let epochs: Vec<_> = database.backups().unwrap().iter().map(|b| b.epoch.as_u64()).collect();
    assert_eq!(epochs, [4, 3, 2]);
}

fn two_at_once() {
    let place = Place::with_database();
    let database = place.settled();
    let (one, two) = (verified(&database, &content("one")), verified(&database, &content("two")));
    assert_ne!(one.path(), two.path());
    std::thread::scope(|scope| {
        scope.spawn(|| one.install(permit(), None).unwrap());
        scope.spawn(|| two.install(permit(), None).unwrap());
    });
    let now = place.read(DATABASE).unwrap();
    let (last, before) = if now == content("one") {
        (content("one"), content("two"))
    } else {
        (content("two"), content("one"))
    };
    assert_eq!(now, last);
    let backups = database.backups().unwrap();
    assert_eq!(fs::read(&backups[0].path).unwrap(), before);
    assert_eq!(fs::read(&backups[1].path).unwrap(), content("old"));
}

fn dropped() {
    let place = Place::with_database();
    let database = place.settled();
    drop(incoming(&database, b"half"));
    drop(verified(&database, b"whole"));
    assert_eq!(place.names(), [DATABASE]);
    assert_eq!(place.read(DATABASE), Some(content("old")));
}

fn rejected() {
    let place = Place::with_database();
    let database = place.settled();
    let error = incoming(&database, b"no database")
        .verify(|path| {
            assert_eq!(fs::read(path).unwrap(), b"no database", "complete when it is looked at");
            // What was opened and not closed is removed along.
            fs::write(format!("{}-wal", path.display()), b"frames").unwrap();
            Err::<(), _>("it is not one of ours")
        })
        .unwrap_err();
    assert!(matches!(&error, VerifyError::Rejected { source, .. }
        if source.to_string() == "it is not one of ours"));
    assert_eq!(place.names(), [DATABASE]);
    assert_eq!(place.read(DATABASE), Some(content("old")));
}

fn check_leaves_side_file() {
    let place = Place::with_database();
    let database = place.settled();
    for (suffix, bytes) in [("-wal", "frames"), ("-wal", ""), ("-shm", ""), ("-journal", "pages")] {
        let error = incoming(&database, &content("new"))
            .verify(|path| fs::write(format!("{}{suffix}", path.display()), bytes))
            .unwrap_err();
        let VerifyError::SideFile { path, size } = &error else { panic!("{error}") };
        assert!(path.to_str().unwrap().ends_with(suffix), "{}", path.display());
        assert_eq!(*size, bytes.len() as u64);
        assert!(error.to_string().contains("wal_checkpoint(TRUNCATE)"), "{error}");
        assert_eq!(place.names(), [DATABASE]);
    }
    drop(database);
    let (database, _) = place.options().side_files(["-log"]).settle().unwrap();
    let beside = |path: &std::path::Path, suffix: &str| format!("{}{suffix}", path.display());
    let error =
        incoming(&database, b"x").verify(|p| fs::write(beside(p, "-log"), "x")).unwrap_err();
    assert!(matches!(error, VerifyError::SideFile { .. }), "{error}");
}

fn check_replaces() {
    let place = Place::with_database();
    let database = place.settled();
    let (migrated, version) = incoming(&database, b"of an older version")
        .verify(|path| {
            let beside = path.with_extension("migrated");
            fs::write(&beside, content("new"))?;
            fs::rename(&beside, path)?;
            Ok::<_, io::Error>(3)
        })
        .unwrap();
    assert_eq!(version, 3, "what the check found out is handed on");
    migrated.install(permit(), None).unwrap();
    assert_eq!(place.read(DATABASE), Some(content("new")));

    let error = incoming(&database, b"x").verify(|path| fs::remove_file(path)).unwrap_err();
    assert!(matches!(error, VerifyError::Gone { .. }), "{error}");
}

fn nothing() {
    let place = Place::with_database();
    let database = place.settled();
    let error = database.incoming().unwrap().verify(|_| Ok::<_, io::Error>(())).unwrap_err();
    assert!(matches!(error, VerifyError::Empty { .. }), "{error}");

    // Taken away between the start and the swap.
    let ready = verified(&database, &content("new"));
    fs::remove_file(place.file(DATABASE)).unwrap();
    let error = ready.install(permit(), None).unwrap_err();
    assert!(matches!(error, InstallError::Missing { .. }), "{error}");
    assert_eq!(place.names(), Vec::<String>::new());
}
