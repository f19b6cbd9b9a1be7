//! What is missing, damaged, planted or taken away.

use crate::{
    place::{
        DATABASE, Place, backup_name, content, epoch, made_backup, mark, new_instance, verified,
    },
    support::{Mount, Skip, skippable, test},
};
use libtest_mimic::Trial;
use snapshot_format::install::{
    DatabaseFile, InstallError, Missing, Permit, SettleError, Settled, VerifyError,
};
use std::{fs, io::Write as _, os::unix::fs::symlink, path::Path};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_missing_database_is_an_error_never_an_empty_start", missing),
        test("an_empty_file_in_its_place_is_an_error", empty),
        test("a_new_instance_with_backups_is_none", new_with_backups),
        test("a_database_that_was_removed_before_the_rename_is_put_back", removed_before),
        test("a_database_that_was_removed_after_the_rename_is_not_rolled_back", removed_after),
        test("an_absence_that_the_journal_explains_is_none", explained),
        test("a_last_copy_under_the_backup_name_is_not_removed", last_copy),
        test("a_damaged_journal_is_an_error_and_changes_nothing", damaged_journal),
        test("a_journal_of_a_later_format_is_told_from_damage", later_journal),
        test("case_18_only_a_regular_file_is_a_database_a_journal_or_a_backup", planted),
        test("what_earlier_processes_left_is_swept", swept),
        test("a_path_that_names_no_file_is_refused", no_name),
        skippable("case_17_a_full_disk_leaves_the_database_as_it_is", full_disk),
    ]
}

const JOURNAL: &str = "app.db.replace.json";
const INCOMING: &str = ".app.db.incoming-0f1e2d3c4b5a6978";

fn journal(with_backup: bool) -> String {
    let backup = if with_backup { r#","replaced_at":"2026-10-12T09:58:41.000Z""# } else { "" };
    format!(
        r#"{{"format":1,"incoming":"0f1e2d3c4b5a6978","epoch":7{backup},"snapshot_epoch":6,"snapshot_at":"2026-10-12T09:51:07.002Z"}}"#
    )
}

fn settle_error(place: &Place) -> SettleError {
    let before = place.names();
    let error = place.options().settle().unwrap_err();
    assert_eq!(place.names(), before, "nothing was changed");
    error
}

fn missing() {
    let place = Place::empty();
    let error = settle_error(&place);
    assert!(matches!(error, SettleError::Missing { is_empty: false, newest_backup: None, .. }));
    place.write(&backup_name(1), &content("older1"));
    place.write(&backup_name(2), &content("older2"));
    let error = settle_error(&place);
    assert!(error.to_string().contains(&backup_name(2)), "{error}");
    assert!(error.to_string().contains("Mount what belongs there"), "{error}");
}

fn empty() {
    let place = Place::empty();
    place.write(DATABASE, b"");
    let error = settle_error(&place);
    assert!(matches!(error, SettleError::Missing { is_empty: true, .. }), "{error}");
    // A new instance may have created it and been killed.
    assert!(new_instance(place.path()).settle().unwrap().0.exists().unwrap());
}

fn new_with_backups() {
    let place = Place::empty();
    place.write(&backup_name(1), &content("older1"));
    let error = new_instance(place.path()).settle().unwrap_err();
    assert!(matches!(error, SettleError::Missing { newest_backup: Some(_), .. }), "{error}");
}

fn removed_before() {
    let place = Place::empty();
    place.write(JOURNAL, journal(true).as_bytes());
    place.write(INCOMING, &content("new"));
    place.write(&made_backup(), &content("old"));
    let (_, settled) = place.options().settle().unwrap();
    assert_eq!(settled, Settled::Undone { snapshot: Some(mark()) });
    assert_eq!(place.read(DATABASE), Some(content("old")));
    assert_eq!(place.names(), [DATABASE]);
}

fn removed_after() {
    let place = Place::empty();
    place.write(JOURNAL, journal(true).as_bytes());
    place.write(&made_backup(), &content("old"));
    let error = settle_error(&place);
    assert!(matches!(error, SettleError::Missing { .. }), "{error}");
    // Also for one who says that it is new.
    let error = new_instance(place.path()).settle().unwrap_err();
    assert!(matches!(error, SettleError::Missing { .. }), "{error}");
    // With nothing left of it but what was to come: that was not in place yet, so it is not taken.
    let place = Place::empty();
    place.write(JOURNAL, journal(true).as_bytes());
    place.write(INCOMING, &content("new"));
    let error = settle_error(&place);
    assert!(matches!(error, SettleError::Missing { .. }), "{error}");
}

fn explained() {
    let place = Place::empty();
    place.write(JOURNAL, journal(false).as_bytes());
    place.write(INCOMING, &content("new"));
    let (database, settled) = place.options().settle().unwrap();
    assert_eq!(settled, Settled::Undone { snapshot: Some(mark()) });
    assert!(!database.exists().unwrap());
    assert_eq!(place.names(), Vec::<String>::new());
    drop(database);
    settle_error(&place);
}

fn last_copy() {
    let place = Place::with_database();
    place.write(JOURNAL, journal(true).as_bytes());
    place.write(INCOMING, &content("new"));
    // Not the same file: somebody replaced the database since it was linked.
    place.write(&made_backup(), &content("older"));
    place.options().settle().unwrap();
    assert_eq!(place.read(DATABASE), Some(content("old")));
    assert_eq!(place.read(&made_backup()), Some(content("older")));
}

fn damaged_journal() {
    let whole = journal(true);
    let oversize = format!("{whole}{}", " ".repeat(5000));
    for text in ["", "{}", "null", &whole[..40], &whole.replace("epoch", "epok"), &oversize] {
        let place = Place::with_database();
        place.write(JOURNAL, text.as_bytes());
        place.write(INCOMING, &content("new"));
        place.write(&made_backup(), &content("old"));
        let error = settle_error(&place);
        assert!(matches!(error, SettleError::Journal { .. }), "{error}");
        assert!(error.to_string().contains("then remove the journal"), "{error}");
        assert_eq!(place.read(DATABASE), Some(content("old")));
    }
}

fn later_journal() {
    let place = Place::with_database();
    let later = journal(true).replace("\"format\":1", "\"format\":2,\"step\":[3]");
    place.write(JOURNAL, later.as_bytes());
    let error = settle_error(&place);
    assert!(matches!(error, SettleError::TooNew { format: 2, .. }), "{error}");
}

fn planted() {
    let victim = Place::empty();
    victim.write("victim", b"precious");
    let plant = |at: &Path| symlink(victim.file("victim"), at).unwrap();

    let place = Place::empty();
    plant(&place.file(DATABASE));
    assert!(matches!(settle_error(&place), SettleError::Read(_)));
    let place = Place::empty();
    fs::create_dir(place.file(DATABASE)).unwrap();
    assert!(matches!(settle_error(&place), SettleError::Read(_)));
    let place = Place::with_database();
    plant(&place.file(JOURNAL));
    assert!(matches!(settle_error(&place), SettleError::Read(_)));
    let place = Place::with_database();
    plant(&place.file("app.db.replace.lock"));
    assert!(matches!(place.options().settle().unwrap_err(), SettleError::Lock(_)));
    for name in [INCOMING.to_owned(), made_backup()] {
        let place = Place::with_database();
        place.write(JOURNAL, journal(true).as_bytes());
        plant(&place.file(&name));
        assert!(matches!(settle_error(&place), SettleError::Read(_)), "{name}");
    }

    // After the start: the incoming file, the database, the backup's name.
    let place = Place::with_database();
    let database = place.settled();
    let error = database
        .incoming()
        .unwrap()
        .verify(|path| {
            fs::remove_file(path)?;
            symlink(victim.file("victim"), path)
        })
        .unwrap_err();
    assert!(matches!(error, VerifyError::Read(_)), "{error}");
    plant(&place.file(&made_backup()));
    let ready = verified(&database, &content("new"));
    let installed = ready.install(Permit::Unfenced(epoch()), None).unwrap();
    assert_ne!(
        installed.backup,
        Some(place.file(&made_backup())),
        "a name that is taken is not used"
    );
    fs::remove_file(place.file(DATABASE)).unwrap();
    plant(&place.file(DATABASE));
    let error = verified(&database, b"x").install(Permit::Unfenced(epoch()), None).unwrap_err();
    assert!(matches!(error, InstallError::Read(_)), "{error}");
    assert_eq!(victim.read("victim"), Some(b"precious".to_vec()));
}

fn swept() {
    let place = Place::with_database();
    let ours = [
        INCOMING.to_owned(),
        format!("{INCOMING}-wal"),
        format!("{INCOMING}-shm"),
        format!(".{JOURNAL}.0f1e2d3c4b5a6978.tmp"),
    ];
    let others =
        [".app.db.incoming-", ".app.db.incoming-xyz", ".other.db.incoming-0f1e2d3c4b5a6978"];
    for name in ours.iter().map(String::as_str).chain(others) {
        place.write(name, b"left");
    }
    place.settled();
    assert_eq!(place.names(), [others[0], others[1], others[2], DATABASE]);
}

fn no_name() {
    for path in ["/", ".."] {
        let error = DatabaseFile::options(path).missing(Missing::Accept).settle().unwrap_err();
        assert!(matches!(error, SettleError::NoName { .. }), "{error}");
    }
    let error = DatabaseFile::options("/nowhere/at/all/app.db").settle().unwrap_err();
    assert!(error.to_string().contains("mount what belongs there"), "{error}");
}

fn full_disk() -> Result<(), Skip> {
    let mount = Mount::tmpfs("size=128k")?;
    let path = mount.path().join(DATABASE);
    fs::write(&path, content("old")).unwrap();
    let (database, _) = DatabaseFile::options(&path).settle().unwrap();
    let ready = verified(&database, &content("new"));
    // Not a byte is left for the journal.
    let mut filler = fs::File::create(mount.path().join("filler")).unwrap();
    while filler.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    let error = ready.install(Permit::Unfenced(epoch()), None).unwrap_err();
    assert!(error.left_it_as_it_was());
    assert!(matches!(error, InstallError::NotReplaced { .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), content("old"));
    assert_eq!(crate::support::names(mount.path()), [DATABASE, "app.db.replace.lock", "filler"]);

    drop(filler);
    fs::remove_file(mount.path().join("filler")).unwrap();
    verified(&database, &content("new")).install(Permit::Unfenced(epoch()), None).unwrap();
    Ok(())
}
