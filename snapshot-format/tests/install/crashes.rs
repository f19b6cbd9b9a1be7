//! A process that is killed at every step, and one whose system calls fail from every step on.
//!
//! The steps are the system calls themselves, every one that concerns files: what a process has done
//! between two of them nobody else can see.

use crate::{
    child::ended,
    disk::Disk,
    place::{Before, Beginning, Place, content, mark, new_instance, settled_state},
    support::{Skip, skippable},
    trace::{self, Call, Fault},
};
use libtest_mimic::Trial;
use snapshot_format::install::Settled;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::Path,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        skippable("the_steps_of_a_swap_are_these", steps),
        skippable("a_swap_killed_at_every_step_leaves_old_or_new", killed),
        skippable("a_swap_whose_calls_fail_from_every_step_on_leaves_old_or_new", all_fail),
        skippable("a_swap_of_which_any_one_call_fails_tells_what_is_there", one_fails),
        skippable("settling_killed_or_failing_at_every_step_is_settled_by_the_next", || {
            settling(Beginning::with_database())
        }),
        skippable("settling_a_first_database_at_every_step_is_settled_by_the_next", || {
            settling(Beginning::of_a_new_instance())
        }),
    ]
}

/// The calls that change something, in order: what a crash can come between.
fn steps() -> Result<(), Skip> {
    let place = Place::with_backups();
    let (calls, code) = trace::record("install", place.path())?;
    assert_eq!(code, ended::WELL);
    let changes: Vec<String> = calls.iter().filter_map(|call| change(call, place.path())).collect();
    assert_eq!(
        changes,
        [
            // The incoming file, before the check and after it.
            "openat incoming",
            "write incoming",
            "fsync incoming",
            "write incoming",
            "fsync incoming",
            // What an earlier swap may have left is settled first: nothing.
            "fsync .",
            // The journal.
            "openat journal's temporary",
            "write journal's temporary",
            "fsync journal's temporary",
            "renameat2 journal's temporary, journal",
            "fsync .",
            // The old database's second name.
            "linkat database, backup",
            "fsync .",
            // The swap.
            "renameat incoming, database",
            "fsync .",
            // One backup too many.
            "unlinkat backup",
            "fsync .",
            // Done.
            "unlinkat journal",
            "fsync .",
        ]
    );
    Ok(())
}

fn change(call: &Call, directory: &Path) -> Option<String> {
    let roles = |names: &[String]| {
        let roles: Vec<_> = names.iter().map(|name| role(name)).collect();
        roles.join(", ")
    };
    let what = match call.name.as_str() {
        "fsync" | "write" => {
            let handle = call.handle()?;
            if handle == directory {
                ".".into()
            } else {
                role(handle.file_name()?.to_str()?).to_owned()
            }
        }
        "openat" if call.text.contains("O_CREAT") => roles(&call.strings()),
        "linkat" | "renameat" | "renameat2" | "rename" | "unlinkat" => roles(&call.strings()),
        "openat" | "close" | "statx" | "newfstatat" | "fstat" | "read" | "lseek" | "fcntl"
        | "getdents64" => return None,
        other => panic!("a call that this test does not know: {other}"),
    };
    Some(format!("{} {what}", call.name))
}

fn role(name: &str) -> &'static str {
    match name {
        "app.db" => "database",
        "app.db.replace.json" => "journal",
        "app.db.replace.lock" => "lock",
        _ if name.starts_with(".app.db.incoming-") => "incoming",
        _ if name.starts_with(".app.db.replace.json.") => "journal's temporary",
        _ if name.starts_with("app.db.bak-") => "backup",
        _ => panic!("{name}"),
    }
}

/// Runs `install` with a fault at each of its steps, in both places, and hands what is left, before
/// it is settled, to `look`, with how the child ended.
fn at_every_step(
    fault: Fault,
    mut look: impl FnMut(&Place, &Before, Option<i32>),
) -> Result<(), Skip> {
    for Beginning { what, make, before } in Beginning::both() {
        let whole = make();
        let (calls, code) = trace::record("install", whole.path())?;
        assert_eq!(code, ended::WELL);
        for at in 0..calls.len() {
            let place = make();
            let code = trace::run("install", place.path(), &fault.at(&calls, at));
            look(&place, &before, code);
        }
        println!("{} steps: {fault:?} at each, beginning with {what}", calls.len());
        // What there is at least: a trace that lost its middle proves nothing.
        assert!(calls.len() >= 30, "{}", calls.len());
    }
    Ok(())
}

/// Settles what a crash left; whether the new database is in place.
fn settled(directory: &Path, before: &Before) -> (bool, Settled) {
    let (database, settled) = new_instance(directory).settle().unwrap();
    let is_new = settled_state(directory, before);
    match &settled {
        Settled::Finished { snapshot, backup } => {
            assert!(is_new);
            assert_eq!(*snapshot, Some(mark()));
            assert_eq!(backup.is_some(), before.had_database);
        }
        Settled::Undone { .. } => assert!(!is_new),
        Settled::Clean => {}
        other => panic!("{other:?}"),
    }
    drop(database);
    let again = new_instance(directory).settle().unwrap().1;
    assert_eq!(again, Settled::Clean, "settled once and for all");
    assert_eq!(settled_state(directory, before), is_new);
    (is_new, settled)
}

fn killed() -> Result<(), Skip> {
    let mut seen = BTreeMap::<(bool, &str), u32>::new();
    at_every_step(Fault::Kill, |place, before, code| {
        assert_eq!(code, None, "it was killed");
        let (is_new, settled) = settled(place.path(), before);
        *seen.entry((is_new, kind(&settled))).or_default() += 1;
    })?;
    println!("new database in place, how it was settled: times: {seen:?}");
    // Otherwise no kill hit the moments that matter.
    for expected in [(false, "clean"), (false, "undone"), (true, "finished"), (true, "clean")] {
        assert!(seen.contains_key(&expected), "{expected:?}");
    }
    Ok(())
}

fn kind(settled: &Settled) -> &'static str {
    match settled {
        Settled::Clean => "clean",
        Settled::Finished { .. } => "finished",
        Settled::Undone { .. } => "undone",
        other => panic!("{other:?}"),
    }
}

fn all_fail() -> Result<(), Skip> {
    let mut seen = BTreeMap::<(Option<i32>, bool), u32>::new();
    at_every_step(Fault::AllFromHere, |place, before, code| {
        let unsettled = settled_already(place.path(), before);
        let (is_new, _) = settled(place.path(), before);
        match code.unwrap() {
            ended::WELL => assert!(is_new),
            ended::AS_IT_WAS => {
                assert!(!is_new);
                // It said that the database may be opened as it is.
                assert!(unsettled, "an alias, or a journal, remained");
            }
            ended::TO_SETTLE => {}
            other => panic!("{other}"),
        }
        *seen.entry((code, is_new)).or_default() += 1;
    })?;
    println!("exit code, new database in place: times: {seen:?}");
    for expected in [(ended::AS_IT_WAS, false), (ended::TO_SETTLE, false), (ended::TO_SETTLE, true)]
    {
        assert!(seen.contains_key(&(Some(expected.0), expected.1)), "{expected:?}");
    }
    Ok(())
}

/// Whether the database may be opened without being settled: one name, no journal.
fn settled_already(directory: &Path, before: &Before) -> bool {
    let database = fs::metadata(directory.join("app.db"));
    !directory.join("app.db.replace.json").exists()
        && database.map_or(!before.had_database, |file| file.nlink() == 1)
}

fn one_fails() -> Result<(), Skip> {
    let mut seen = BTreeMap::<i32, u32>::new();
    at_every_step(Fault::This, |place, before, code| {
        let code = code.unwrap();
        let may_open = settled_already(place.path(), before);
        let (is_new, settled) = settled(place.path(), before);
        match code {
            // A journal that could not be removed is settled on the next start.
            ended::WELL => assert!(is_new),
            ended::AS_IT_WAS | ended::SETTLED_OLD => assert!(!is_new && may_open),
            ended::SETTLED_NEW => assert!(is_new && may_open && settled == Settled::Clean),
            ended::TO_SETTLE => {}
            other => panic!("{other}"),
        }
        *seen.entry(code).or_default() += 1;
    })?;
    println!("exit code: times: {seen:?}");
    for expected in [ended::WELL, ended::AS_IT_WAS, ended::SETTLED_NEW] {
        assert!(seen.contains_key(&expected), "{expected}");
    }
    Ok(())
}

/// Every state that a killed swap can leave, each settled by a process that is killed, or whose calls
/// fail, at every step of that.
fn settling(beginning: Beginning) -> Result<(), Skip> {
    let Beginning { what, make, before } = beginning;

    let (calls, _) = trace::record("install", make().path())?;
    let (mut seen, mut runs) = (BTreeSet::new(), 0);
    for at in 0..calls.len() {
        let killed = make();
        trace::run("install", killed.path(), &Fault::Kill.at(&calls, at));
        if !seen.insert(state(killed.path())) {
            continue;
        }
        let left = Disk::of(killed.path()).as_seen();
        let (steps, _) = trace::record("settle", killed.path())?;
        for step in 0..steps.len() {
            for fault in [Fault::Kill, Fault::AllFromHere, Fault::This] {
                let place = Place::empty();
                left.lay_out(place.path());
                trace::run("settle", place.path(), &fault.at(&steps, step));
                settled(place.path(), &before);
                runs += 1;
            }
        }
    }
    println!("{runs} settlings of {} states that began with {what}", seen.len());
    assert!(seen.len() >= 6, "{seen:?}");
    Ok(())
}

/// What is in a directory, without the random part of names.
fn state(directory: &Path) -> Vec<(&'static str, String)> {
    let mut files: Vec<_> = crate::support::names(directory)
        .iter()
        .map(|name| {
            let path = directory.join(name);
            let (found, links) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().nlink());
            let whole = ["old", "new"].into_iter().find(|of| found == content(of));
            let what = whole.unwrap_or(if found.is_empty() { "empty" } else { "other" });
            (role(name), format!("{what}, {links} names"))
        })
        .collect();
    files.sort();
    files
}
