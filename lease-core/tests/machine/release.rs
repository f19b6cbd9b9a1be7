//! Releasing, and taking what was released (protocol, 4).

use crate::{
    rig::{ME, Rig, but, plain},
    sightings::{aged, found, held, judged, nth, released, secs},
    world::id,
};
use lease_core::{
    auth::Verdict,
    machine::{Facts, Past, Predecessor, Reply, Role, Sighting, TrustRelease, WaitReason, Waiting},
    record::{Nonce, TenureMark, TenureTag},
    store::{
        StoreErrorKind::{Contended, InDoubt, Precondition, Unavailable},
        Version,
    },
};

fn waiting(rig: &Rig) -> Option<WaitReason> {
    let now = fencing::Clock::reading(&rig.clock);
    rig.machine.waiting(now).map(|Waiting { reason, .. }| reason)
}

/// A rig that released epoch 1 at 1.0 as "v2", and has read that.
fn has_released(keeps_out: bool) -> Rig {
    let config = but(|it| it.keep_out_after_release = keeps_out);
    let mut rig = Rig::active_with(config);
    rig.at(1.0).with(|machine, now| machine.release(now));
    let sent = rig.written("release v1 e1 s2", "v2");
    rig.read("read", sent.landed("v2"));
    rig
}

#[test]
fn case_12_a_release_is_one_conditional_write_that_keeps_the_epoch() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    assert!(!rig.is_open(), "the fence shuts first");
    assert_eq!(rig.role(), Role::Releasing);
    let sent = rig.written("release v1 e1 s2", "v2");
    assert!(!sent.draft().held);
    rig.expect(&["ended e1: Released"]);
    rig.read("read", sent.landed("v2"));
    rig.unchanged_until(5.0);
    rig.take("replace v2 e2 s1");
}

#[test]
fn case_12_a_release_that_is_refused_was_lost_before() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    rig.fails("release v1 e1 s2", Precondition);
    rig.read("read", held("b", 2, 1, "v2"));
    rig.expect(&["ended e1: taken over by b e2"]);
    rig.unchanged_until(5.0);
    assert!(rig.waiting().is_empty(), "no second write");
}

#[test]
fn whoever_released_keeps_out_for_2r_unless_it_asks_not_to() {
    let mut rig = has_released(true);
    assert_eq!(waiting(&rig), Some(WaitReason::KeepOutAfterRelease));
    rig.unchanged_until(4.999);
    assert!(rig.waiting().is_empty());
    rig.at(5.0);
    rig.take("replace v2 e2 s1");
    let mut rig = has_released(false);
    rig.written("replace v2 e2 s1", "v3");
    rig.expect(&["ended e1: Released", "taking over e2", "active e2"]);
}

#[test]
fn a_release_waits_for_a_renewal_within_its_budget() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(2.5).with(|machine, now| machine.release(now));
    assert!(rig.waiting().is_empty());
    rig.at(3.0).answer(&renewal, Reply::Written(Version::new("v2")));
    rig.written("release v2 e1 s3", "v3");
    rig.expect(&["ended e1: Released"]);
}

#[test]
fn a_release_refused_over_a_renewal_in_doubt_is_sent_once_more() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.1).with(|machine, now| machine.release(now));
    let first = rig.fails("release v1 e1 s3", Precondition);
    rig.expect(&[]);
    rig.read("read", renewal.landed("v2"));
    let second = rig.written("release v2 e1 s4", "v3");
    assert_ne!(first.draft().nonce, second.draft().nonce);
    rig.expect(&["ended e1: Released"]);
}

#[test]
fn a_release_that_waits_for_a_read_is_not_in_doubt() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.1).with(|machine, now| machine.release(now));
    rig.fails("release v1 e1 s3", Precondition);
    while rig.now() < 4.9 {
        rig.fails("read", Unavailable);
        rig.at(rig.now() + 0.2);
    }
    rig.read("read", renewal.landed("v2"));
    rig.written("release v2 e1 s4", "v3");
    rig.expect(&["ended e1: Released"]);
}

#[test]
fn a_renewal_that_lands_beside_a_release_sends_the_release_again() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(2.5).with(|machine, now| machine.release(now));
    rig.at(4.0);
    let release = rig.take("release v1 e1 s3");
    rig.at(4.1).answer(&renewal, Reply::Written(Version::new("v2")));
    assert!(rig.was_forgotten(&release), "its condition can hold no more");
    rig.written("release v2 e1 s4", "v3");
    rig.expect(&["ended e1: Released"]);
}

#[test]
fn a_renewal_that_fails_beside_a_release_tells_nothing() {
    for error in [Precondition, Contended] {
        let mut rig = Rig::active();
        rig.at(2.0);
        let renewal = rig.take("replace v1 e1 s2");
        rig.at(3.0).with(|machine, now| machine.release(now));
        rig.at(4.0);
        let release = rig.take("release v1 e1 s3");
        // The release has landed; its answer is the slower one.
        rig.answer(&renewal, Reply::Failed(error));
        rig.expect(&[]);
        rig.answer(&release, Reply::Written(Version::new("v2")));
        rig.expect(&["ended e1: Released"]);
    }
}

#[test]
fn a_release_refused_after_every_renewal_was_is_lost() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(3.0).with(|machine, now| machine.release(now));
    rig.at(4.0);
    let release = rig.take("release v1 e1 s3");
    rig.answer(&renewal, Reply::Failed(Precondition));
    rig.answer(&release, Reply::Failed(Precondition));
    rig.read("read", held("b", 2, 1, "v2"));
    rig.expect(&["ended e1: taken over by b e2"]);
}

#[test]
fn a_release_in_doubt_is_left_alone() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    rig.fails("release v1 e1 s2", InDoubt);
    rig.expect(&["ended e1: ReleaseInDoubt"]);
    assert_eq!(rig.waiting(), ["read"]);
    // One that is not answered within R is no different.
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    rig.at(2.999).expect(&[]);
    rig.at(3.0).expect(&["ended e1: ReleaseInDoubt"]);
}

#[test]
fn a_tenure_dropped_while_its_release_is_in_flight_is_a_release_in_doubt() {
    let mut rig = Rig::active();
    rig.with(|machine, now| machine.release(now));
    rig.take("release v1 e1 s2");
    rig.with(|machine, now| machine.drop_tenure(false, now));
    rig.expect(&["ended e1: ReleaseInDoubt"]);
}

#[test]
fn a_release_that_was_certainly_not_written_is_tried_again() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    rig.fails("release v1 e1 s2", Unavailable);
    rig.at(1.2).fails("release v1 e1 s3", Contended);
    rig.read("read", held(ME, 1, 1, "v1"));
    rig.at(1.4).written("release v1 e1 s4", "v2");
    rig.expect(&["ended e1: Released"]);
}

#[test]
fn a_release_that_no_store_takes_ends_at_the_deadline() {
    let mut rig = Rig::active();
    rig.at(1.0).with(|machine, now| machine.release(now));
    while rig.role() == Role::Releasing {
        for request in rig.waiting() {
            rig.fails(&request, Unavailable);
        }
        let wake = rig.wake().map(|wake| rig.seconds(wake)).unwrap();
        rig.at(wake);
    }
    assert_eq!(rig.now(), 8.0);
    rig.expect(&["ended e1: Dropped"]);
}

#[test]
fn nothing_is_renewed_once_the_lease_is_given_back() {
    let mut rig = Rig::active();
    rig.at(1.9).with(|machine, now| machine.release(now));
    rig.take("release v1 e1 s2");
    rig.at(3.8);
    assert!(rig.waiting().is_empty());
}

#[test]
fn the_history_knows_a_release_before_the_store_does() {
    let config = but(|it| it.has_history = true);
    let mut rig = Rig::active_with(config);
    rig.history_hangs = true;
    rig.at(1.0).with(|machine, now| machine.release(now));
    assert!(rig.waiting().is_empty());
    let (id, note) = rig.notes.remove(0);
    rig.with(|machine, now| machine.handle_persisted(id, false, now));
    let sent = rig.take("release v1 e1 s2");
    assert_eq!(note.release, Some(sent.draft().nonce));
}

// ---- what was released ----

/// How the lease is taken that this read, at 2.0, shows to a standby which saw epoch 7 held at 0.
fn taken_after(first: Sighting, shown: Sighting) -> Rig {
    let mut rig = Rig::standby();
    rig.read("read", first);
    rig.at(2.0).read("read unless v1", shown);
    rig
}

#[test]
fn a_release_is_trusted_if_the_read_before_showed_its_epoch_held() {
    let mut rig = taken_after(held("b", 7, 1, "v1"), released(7, "v2"));
    rig.written("replace v2 e8 s1", "v3");
    rig.expect(&["taking over e8", "active e8"]);
    assert!(!rig.events.iter().any(|it| format!("{it:?}").contains("Untrusted")));
}

#[test]
fn a_release_is_not_trusted_without_evidence() {
    let mut rig = Rig::standby();
    rig.read("read", released(7, "v1"));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8 held back"]);
    rig.undisturbed_until(9.999);
    assert!(!rig.is_open());
    rig.undisturbed_until(10.0);
    rig.expect(&["active e8"]);
    // Of another epoch than was held.
    let mut rig = taken_after(held("b", 7, 1, "v1"), released(8, "v2"));
    rig.written("replace v2 e9 s1", "v3");
    rig.expect(&["taking over e9 held back"]);
    // Held, but more than 2R ago.
    let mut rig = Rig::watching(plain(), 7);
    rig.at(4.1).read("read unless v1", released(7, "v2"));
    rig.written("replace v2 e8 s1", "v3");
    rig.expect(&["taking over e8 held back"]);
}

#[test]
fn a_release_that_came_back_is_not_trusted() {
    let mut rig = taken_after(held("b", 7, 1, "v1"), released(7, "v2"));
    // Somebody took it, and then the release was put back.
    rig.fails("replace v2 e8 s1", Precondition);
    rig.read("read unless v2", Sighting::NotModified);
    rig.undisturbed_until(2.3);
    rig.expect(&["taking over e8 held back"]);
}

#[test]
fn a_release_stays_trusted_over_a_takeover_that_was_not_refused() {
    let mut rig = taken_after(held("b", 7, 1, "v1"), released(7, "v2"));
    rig.fails("replace v2 e8 s1", Unavailable);
    rig.at(2.2).read("read unless v2", Sighting::NotModified);
    rig.undisturbed_until(2.2);
    rig.expect(&["taking over e8", "active e8"]);
}

#[test]
fn a_release_that_is_old_by_the_stores_clock_is_trusted() {
    let mut rig = Rig::standby();
    rig.read("read", aged(released(7, "v1"), 10));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8", "active e8"]);
    // Nine seconds old: what is left of W is waited for.
    let mut rig = Rig::standby();
    rig.read("read", aged(released(7, "v1"), 9));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8 held back"]);
    rig.undisturbed_until(1.0);
    rig.expect(&["active e8"]);
}

#[test]
fn an_own_release_is_known_from_the_history() {
    let mut past = Past::default();
    past.last_release = Some(Nonce::from_bytes([0xcc; 16]));
    let mut rig = Rig::new(plain(), past);
    rig.read("read", released(7, "v1"));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8", "active e8"]);
}

#[test]
fn a_release_is_always_trusted_if_the_operator_says_so() {
    let config = but(|it| it.trust_release = TrustRelease::Always);
    let mut rig = Rig::new(config, Past::default());
    rig.read("read", released(7, "v1"));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8", "active e8"]);
}

#[test]
fn case_48_a_release_of_an_older_epoch_is_waited_out() {
    let mut rig = taken_after(held("b", 8, 1, "v1"), released(7, "v2"));
    rig.unchanged_until(11.999);
    assert!(rig.waiting().is_empty());
    rig.at(12.0);
    rig.written("replace v2 e9 s1", "v3");
    rig.expect(&["taking over e9", "active e9"]);
}

#[test]
fn case_48_a_release_that_cannot_be_believed_is_waited_out() {
    let mut rig = taken_after(held("b", 7, 1, "v1"), judged(released(7, "v2"), Verdict::Forged));
    rig.unchanged_until(11.999);
    assert!(rig.waiting().is_empty());
    rig.at(12.0);
    rig.take("replace v2 e8 s1");
}

// ---- reclaim ----

fn own_past(last: u64, reclaimable: Option<u64>) -> Past {
    let mut past = Past::default();
    past.last_epoch = Some(nth(last));
    let tag = TenureTag::from_bytes([0xbb; 8]);
    past.reclaimable = reclaimable.map(|epoch| TenureMark { epoch: nth(epoch), tag });
    past
}

/// What a clone that was given the same epoch would write.
fn held_by_a_clone(epoch: u64) -> Sighting {
    let nonce = Some(Nonce::from_bytes([0xdd; 16]));
    let facts = Facts::new(Some(id(ME)), nth(epoch), 41, nonce, secs(10));
    found(facts, Verdict::Unsigned, "v1")
}

#[test]
fn an_own_lease_is_reclaimed_at_once_under_a_new_epoch() {
    let mut rig = Rig::new(plain(), own_past(7, Some(7)));
    rig.read("read", held(ME, 7, 41, "v1"));
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8", "active e8"]);
    let epoch = nth(7);
    let is_told = rig.events.iter().any(|event| {
        matches!(event, lease_core::machine::Event::TakingOver {
            predecessor: Predecessor::Reclaimed { epoch: it }, ..
        } if *it == epoch)
    });
    assert!(is_told);
}

#[test]
fn only_an_epoch_that_the_history_shows_as_opened_is_reclaimed() {
    let foreign = Facts::new(Some(id("b")), nth(7), 1, None, secs(10));
    let cases = [
        (own_past(7, None), held(ME, 7, 41, "v1")),
        (own_past(7, Some(6)), held(ME, 7, 41, "v1")),
        (own_past(7, Some(7)), held(ME, 8, 1, "v1")),
        (own_past(7, Some(7)), found(foreign, Verdict::Unsigned, "v1")),
        (own_past(7, Some(7)), held_by_a_clone(7)),
        (own_past(7, Some(7)), judged(held(ME, 7, 41, "v1"), Verdict::Forged)),
    ];
    for (past, shown) in cases {
        let mut rig = Rig::new(plain(), past.clone());
        rig.read("read", shown.clone());
        rig.unchanged_until(9.999);
        assert!(rig.waiting().is_empty(), "{past:?} {shown:?}");
    }
}

#[test]
fn only_the_first_tenure_of_a_process_reclaims() {
    let mut rig = Rig::new(plain(), own_past(7, Some(7)));
    rig.read("read", held(ME, 7, 41, "v1"));
    rig.written("replace v1 e8 s1", "v2");
    rig.at(2.0).fails("replace v2 e8 s2", Precondition);
    rig.read("read", held(ME, 7, 41, "v1"));
    rig.unchanged_until(11.9);
    assert!(rig.waiting().is_empty(), "{:?}", rig.waiting());
}
