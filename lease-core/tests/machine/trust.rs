//! Whom a machine believes while it has a secret (protocol, 6).

use crate::{
    rig::{Rig, but},
    sightings::{garbage, held, judged, nth},
};
use lease_core::{
    auth::Verdict,
    machine::{Config, Past, Sighting},
    record::{Label, SnapshotMark},
};
use std::sync::Arc;

fn with_secret() -> Config {
    but(|it| it.has_secret = true)
}

fn authentic(epoch: u64, version: &str) -> Sighting {
    judged(held("b", epoch, 1, version), Verdict::Authentic)
}

#[test]
fn a_lease_from_one_that_is_not_trusted_stays_unsigned_until_it_is_confirmed() {
    let mut rig = Rig::new(with_secret(), Past::default());
    rig.confirms = false;
    rig.read("read", garbage("v1"));
    rig.unchanged_until(10.0);
    let taken = rig.written("replace v1 e1 s1", "v2");
    assert!(!taken.draft().sign);
    rig.at(12.0);
    assert!(!rig.written("replace v2 e1 s2", "v3").draft().sign);
    rig.with(|machine, now| machine.confirm(now));
    rig.at(14.0);
    assert!(rig.take("replace v3 e1 s3").draft().sign);
}

#[test]
fn unsigned_records_are_trusted_on_first_use_only() {
    // First use.
    let mut rig = Rig::watching(with_secret(), 7);
    rig.unchanged_until(10.0);
    assert!(rig.take("replace v1 e8 s1").draft().sign);
    // Not after an authentic one, in this process or before; then its number does not count either.
    let mut rig = Rig::new(with_secret(), Past::default());
    rig.read("read", authentic(7, "v1"));
    rig.at(2.0).read("read unless v1", held("mallory", 900, 1, "v2"));
    rig.unchanged_until(12.0);
    assert!(!rig.take("replace v2 e8 s1").draft().sign);
    let mut past = Past::default();
    past.seen_authenticated = true;
    let mut rig = Rig::new(with_secret(), past);
    rig.read("read", held("mallory", 900, 1, "v1"));
    rig.unchanged_until(10.0);
    assert!(!rig.take("replace v1 e1 s1").draft().sign);
}

#[test]
fn snapshots_that_prove_an_epoch_end_the_trust_on_first_use() {
    let config = but(|it| (it.has_secret, it.has_floor, it.has_history) = (true, true, true));
    for (floor, is_trusted) in [(None, true), (Some(nth(5)), false)] {
        let mut rig = Rig::watching(config.clone(), 7);
        let id = rig.floors.remove(0);
        rig.with(|machine, now| machine.handle_floor(id, Ok(floor), now));
        rig.unchanged_until(10.0);
        assert_eq!(rig.take("replace v1 e8 s1").draft().sign, is_trusted);
        let is_noted = rig.noted.iter().any(|note| note.seen_authenticated);
        assert_eq!(is_noted, !is_trusted);
    }
}

#[test]
fn an_authentic_lease_is_noted_in_the_history_once() {
    let config = but(|it| (it.has_secret, it.has_history) = (true, true));
    let mut rig = Rig::new(config, Past::default());
    rig.read("read", authentic(7, "v1"));
    rig.at(2.0).read("read unless v1", authentic(8, "v2"));
    let noted = rig.noted.iter().filter(|note| note.seen_authenticated).count();
    assert_eq!(noted, 1);
}

#[test]
fn marks_that_could_not_be_written_are_written_later() {
    let config = but(|it| (it.has_secret, it.has_history) = (true, true));
    let mut rig = Rig::new(config, Past::default());
    rig.history_works = false;
    rig.read("read", authentic(7, "v1"));
    rig.unchanged_until(1.9);
    assert_eq!(rig.noted.len(), 1);
    rig.history_works = true;
    rig.unchanged_until(30.0);
    assert_eq!(rig.noted.iter().filter(|note| note.seen_authenticated).count(), 2);
}

fn naming(sighting: Sighting, second: u32) -> Sighting {
    let Sighting::Found { version, verdict, facts: Some(facts), age } = sighting else {
        panic!("{sighting:?}")
    };
    let mut facts = (*facts).clone();
    facts.last_snapshot = mark(second);
    Sighting::Found { version, verdict, facts: Some(Arc::new(facts)), age }
}

fn mark(second: u32) -> Option<SnapshotMark> {
    let at = Label::new(&format!("2026-10-12T09:58:{second:02}.517Z")).unwrap();
    Some(SnapshotMark { epoch: nth(7), at })
}

#[test]
fn the_newest_snapshot_that_an_authentic_lease_names_is_noted_once() {
    let config = but(|it| (it.has_secret, it.has_history) = (true, true));
    let mut rig = Rig::new(config.clone(), Past::default());
    rig.read("read", naming(held("b", 7, 1, "v1"), 50));
    rig.at(2.0).read("read unless v1", naming(authentic(7, "v2"), 10));
    rig.at(4.0).read("read unless v2", naming(authentic(7, "v3"), 10));
    rig.at(6.0).read("read unless v3", naming(judged(held("b", 7, 9, "v4"), Verdict::Forged), 55));
    rig.at(8.0).read("read unless v4", naming(authentic(7, "v5"), 9));
    rig.at(10.0).read("read unless v5", naming(authentic(7, "v6"), 11));
    let noted = |rig: &Rig| {
        let marks = rig.noted.iter().filter_map(|note| note.newest_named_snapshot.clone());
        marks.map(Some).collect::<Vec<_>>()
    };
    // Not of an unsigned one, nor of a forged one, nor what is not newer.
    assert_eq!(noted(&rig), [mark(10), mark(11)]);

    let mut past = Past::default();
    past.newest_named_snapshot = mark(10);
    let mut rig = Rig::new(config, past);
    rig.read("read", naming(authentic(7, "v1"), 10));
    assert_eq!(noted(&rig), []);
    rig.at(2.0).read("read unless v1", naming(authentic(7, "v2"), 11));
    assert_eq!(noted(&rig), [mark(11)]);
}
