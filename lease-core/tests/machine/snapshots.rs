//! The snapshot that a lease names, and what a takeover inherits.

use crate::{
    rig::{Rig, Sent, but, plain},
    sightings::{garbage, held, judged, nth},
};
use lease_core::{
    auth::Verdict,
    machine::{Past, Reply, Role, Sighting},
    record::{Label, SnapshotMark},
    store::{StoreErrorKind, Version},
};
use std::sync::Arc;

fn mark(second: u32) -> Option<SnapshotMark> {
    let at = Label::new(&format!("2026-10-12T09:58:{second:02}.517Z")).unwrap();
    Some(SnapshotMark { epoch: nth(7), at })
}

fn naming(sighting: Sighting, second: u32) -> Sighting {
    let Sighting::Found { version, verdict, facts: Some(facts), age } = sighting else {
        panic!("{sighting:?}")
    };
    let mut facts = (*facts).clone();
    facts.last_snapshot = mark(second);
    Sighting::Found { version, verdict, facts: Some(Arc::new(facts)), age }
}

fn name(rig: &mut Rig, second: u32) {
    rig.with(|machine, now| machine.name_snapshot(mark(second).unwrap(), now));
}

fn named(sent: &Sent) -> Option<SnapshotMark> {
    sent.draft().last_snapshot.clone()
}

#[test]
fn a_snapshot_is_named_at_once_and_never_an_older_one() {
    let mut rig = Rig::active();
    rig.at(0.5);
    name(&mut rig, 30);
    assert_eq!(named(&rig.written("replace v1 e1 s2", "v2")), mark(30));
    // Then renewed in its own time, naming it.
    assert!(rig.waiting().is_empty());
    rig.at(2.5);
    assert_eq!(named(&rig.written("replace v2 e1 s3", "v3")), mark(30));
    for older in [29, 30] {
        name(&mut rig, older);
        assert!(rig.waiting().is_empty(), "no news");
    }
    name(&mut rig, 31);
    assert_eq!(named(&rig.take("replace v3 e1 s4")), mark(31));
}

#[test]
fn what_is_named_while_a_renewal_is_under_way_follows_it_at_once() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    name(&mut rig, 30);
    assert!(rig.waiting().is_empty(), "one on the same version would be refused");
    rig.at(2.1).answer(&renewal, Reply::Written(Version::new("v2")));
    assert_eq!(named(&rig.take("replace v2 e1 s3")), mark(30));
}

#[test]
fn what_is_named_in_a_renewal_that_lost_to_an_earlier_one_is_named_again() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let early = rig.take("replace v1 e1 s2");
    name(&mut rig, 30);
    // Past its budget another is sent; then the first turns out to have landed.
    rig.at(4.0);
    let late = rig.take("replace v1 e1 s3");
    assert_eq!((named(&early), named(&late)), (None, mark(30)));
    rig.at(4.1).answer(&early, Reply::Written(Version::new("v2")));
    assert_eq!(named(&rig.take("replace v2 e1 s4")), mark(30));
}

#[test]
fn a_renewal_that_fails_names_it_with_the_next_try() {
    let mut rig = Rig::active();
    rig.at(0.5);
    name(&mut rig, 30);
    rig.fails("replace v1 e1 s2", StoreErrorKind::Unavailable);
    rig.at(0.7);
    assert_eq!(named(&rig.take("replace v1 e1 s3")), mark(30));
}

#[test]
fn a_takeover_hands_on_what_was_named_and_names_what_it_restored_even_if_older() {
    let mut rig = Rig::new(plain(), Past::default());
    rig.confirms = false;
    rig.read("read", naming(held("b", 7, 1, "v1"), 40));
    rig.unchanged_until(10.0);
    assert_eq!(named(&rig.written("replace v1 e8 s1", "v2")), mark(40));
    // An operator has forced the takeover from an older one.
    name(&mut rig, 20);
    assert_eq!(named(&rig.written("replace v2 e8 s2", "v3")), mark(20));
    rig.with(|machine, now| machine.confirm(now));
    assert_eq!(rig.role(), Role::Active);
    name(&mut rig, 19);
    assert!(rig.waiting().is_empty());
}

#[test]
fn a_release_names_the_last_one() {
    let mut rig = Rig::active();
    rig.at(0.5);
    rig.with(|machine, now| {
        machine.name_snapshot(mark(30).unwrap(), now);
        machine.release(now);
    });
    assert_eq!(named(&rig.take("release v1 e1 s2")), mark(30));
    assert!(rig.waiting().is_empty());
}

#[test]
fn a_takeover_tells_what_it_found_without_its_own_write() {
    let config = but(|it| it.has_secret = true);
    // Nothing, nowhere.
    let mut rig = Rig::new(config.clone(), Past::default());
    rig.read("read", Sighting::Missing);
    rig.written("create e1 s1", "v1");
    rig.with(|machine, _| {
        let inherited = machine.inherited().unwrap();
        assert_eq!(*inherited, lease_core::machine::Inherited::default());
    });

    // An authentic lease that was deleted from under this standby.
    let mut rig = Rig::new(config.clone(), Past::default());
    rig.read("read", judged(held("b", 7, 1, "v1"), Verdict::Authentic));
    rig.at(2.0).read("read unless v1", Sighting::Missing);
    rig.written("create e8 s1", "v2");
    rig.with(|machine, _| {
        let inherited = machine.inherited().unwrap();
        assert_eq!((inherited.verdict, inherited.epoch), (None, None));
        assert!(inherited.seen_authenticated && inherited.knew_the_cluster);
    });

    // A lease that names a snapshot, and one that is garbage.
    let found = naming(judged(held("b", 7, 1, "v1"), Verdict::Authentic), 40);
    for (sighting, verdict, epoch, last) in [
        (found, Verdict::Authentic, Some(nth(7)), mark(40)),
        (garbage("v1"), Verdict::Unreadable, None, None),
    ] {
        let mut rig = Rig::new(config.clone(), Past::default());
        rig.confirms = false;
        rig.read("read", sighting);
        rig.unchanged_until(10.0);
        let taken = rig.waiting().remove(0);
        rig.written(&taken, "v2");
        rig.with(|machine, _| {
            let inherited = machine.inherited().unwrap();
            assert_eq!(inherited.verdict, Some(verdict));
            assert_eq!((inherited.epoch, inherited.last_snapshot.clone()), (epoch, last.clone()));
        });
    }
}
