//! Power cuts: what was not synced may be gone, whatever was done after it.
//!
//! A kill loses nothing that was asked of the kernel, so it cannot tell whether a directory was
//! synced. Here the calls of a real swap are played on a [`Disk`] that forgets; what it may leave
//! after each call is laid out and settled by the real code.

use crate::{
    child::ended,
    disk::{Disk, Remains},
    place::{Before, Beginning, new_instance, settled_state},
    support::{Skip, skippable},
    trace::{self, Call},
};
use libtest_mimic::Trial;
use std::{collections::BTreeMap, path::Path};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        skippable("a_power_cut_at_every_step_leaves_old_or_new", power_cuts),
        skippable("what_is_settled_after_a_kill_survives_a_power_cut", kill_then_power_cut),
    ]
}

/// The disk before the first call and after each one.
fn after_each(mut disk: Disk, calls: &[Call], directory: &Path) -> Vec<Disk> {
    let mut states = vec![disk.clone()];
    for call in calls {
        disk.apply(call, directory);
        states.push(disk.clone());
    }
    states
}

/// Lays out what is left, settles it, and tells whether the new database is in place.
fn settled(remains: &Remains, before: &Before) -> bool {
    let scratch = tempfile::tempdir().unwrap();
    remains.lay_out(scratch.path());
    new_instance(scratch.path()).settle().unwrap();
    settled_state(scratch.path(), before)
}

fn power_cuts() -> Result<(), Skip> {
    for Beginning { what, make, before } in Beginning::both() {
        let place = make();
        new_instance(place.path()).settle().unwrap();
        let disk = Disk::of(place.path());
        let (calls, code) = trace::record("install", place.path())?;
        assert_eq!(code, ended::WELL);
        let states = after_each(disk, &calls, place.path());

        let mut outcomes: BTreeMap<Remains, bool> = BTreeMap::new();
        for disk in &states {
            for remains in disk.after_power_cut() {
                outcomes.entry(remains).or_insert_with_key(|remains| settled(remains, &before));
            }
        }
        let new = outcomes.values().filter(|is_new| **is_new).count();
        println!("{} states after a power cut, {new} of them new; {what}", outcomes.len());
        assert!(new > 1 && outcomes.len() - new > 8, "{new} of {}", outcomes.len());
        // What was reported as installed stays installed.
        for remains in states.last().unwrap().after_power_cut() {
            assert!(outcomes[&remains], "installed, and taken back: {remains:?}");
        }
    }
    Ok(())
}

fn kill_then_power_cut() -> Result<(), Skip> {
    for Beginning { what, make, before } in Beginning::both() {
        let place = make();
        new_instance(place.path()).settle().unwrap();
        let disk = Disk::of(place.path());
        let (calls, _) = trace::record("install", place.path())?;
        let mut states = after_each(disk, &calls, place.path());
        states.sort();
        states.dedup();

        let mut cuts = 0;
        for disk in &states {
            // Killed here. The next process settles what it sees, and then the power goes.
            let scratch = tempfile::tempdir().unwrap();
            disk.as_seen().lay_out(scratch.path());
            let (calls, code) = trace::record("settle", scratch.path())?;
            assert_eq!(code, ended::WELL);
            let is_new = settled_state(scratch.path(), &before);
            let settling = after_each(disk.clone(), &calls, scratch.path());
            for remains in settling.iter().flat_map(Disk::after_power_cut) {
                settled(&remains, &before);
                cuts += 1;
            }
            for remains in settling.last().unwrap().after_power_cut() {
                assert_eq!(settled(&remains, &before), is_new, "settled otherwise: {remains:?}");
            }
        }
        println!("{cuts} power cuts while {} killed swaps were settled; {what}", states.len());
    }
    Ok(())
}
