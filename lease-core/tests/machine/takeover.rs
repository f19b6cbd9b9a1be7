//! The standby: when it reads, how long it waits, what a failed takeover leads to (protocol, 2 and 4).

use crate::{
    rig::{ME, Rig, but, plain},
    sightings::{aged, found, garbage, held, judged, nth, released, secs, seen},
    world::{id, timing},
};
use lease_core::{
    auth::Verdict,
    machine::{Event, Facts, LeaseSeen, Past, Reply, Role, Sighting, WaitReason},
    store::{
        StoreErrorKind::{Contended, InDoubt, Precondition, Unavailable, Unsupported},
        Version,
    },
};
use std::time::Duration;

/// A record of "b" that says a ttl of so many seconds.
fn with_ttl(seconds: u64, epoch: u64, version: &str) -> Sighting {
    let facts = Facts::new(Some(id("b")), nth(epoch), 1, None, secs(seconds));
    found(facts, Verdict::Unsigned, version)
}

/// When the first acquisition is sent if nothing changes any more.
fn taken_at(rig: &mut Rig, limit: f64) -> Option<f64> {
    rig.unchanged_until(limit);
    let is_write = |(what, _): &&(String, f64)| !what.starts_with("read");
    rig.waiting_since().iter().find(is_write).map(|(_, at)| *at)
}

#[test]
fn a_takeover_is_due_w_after_the_answer_that_showed_the_version() {
    let mut rig = Rig::standby();
    let first = rig.take("read");
    // The answer took 0.7 s; O is when it was held. 10.7 is between two polls.
    rig.at(0.7).answer(&first, Reply::Read(held("b", 7, 1, "v1")));
    assert_eq!(taken_at(&mut rig, 12.0), Some(10.7));
}

#[test]
fn a_standby_reads_every_r_and_only_what_is_new() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(1.999);
    assert!(rig.waiting().is_empty());
    rig.at(2.0).read("read unless v1", Sighting::NotModified);
    rig.at(4.0).read("read unless v1", held("b", 7, 2, "v2"));
    rig.at(6.0);
    rig.take("read unless v2");
}

#[test]
fn a_failed_read_is_repeated_after_a_tenth_of_r() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(2.0).fails("read unless v1", Unavailable);
    rig.at(2.199);
    assert!(rig.waiting().is_empty());
    rig.at(2.2);
    // One that never answers has failed after R/2.
    let lost = rig.take("read unless v1");
    rig.at(3.399);
    assert!(rig.waiting().is_empty());
    rig.at(3.4);
    assert!(rig.was_forgotten(&lost));
    rig.take("read unless v1");
}

#[test]
fn one_read_without_an_answer_does_not_restart_the_wait() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(2.0);
    let lost = rig.take("read unless v1");
    rig.at(3.2).read("read unless v1", Sighting::NotModified);
    assert!(rig.was_forgotten(&lost));
    assert_eq!(taken_at(&mut rig, 16.0), Some(10.0));
}

#[test]
fn a_change_of_version_or_epoch_restarts_the_wait() {
    for change in [held("b", 7, 2, "v2"), held("b", 8, 1, "v1")] {
        let mut rig = Rig::watching(plain(), 7);
        rig.unchanged_until(3.9);
        rig.at(4.0).read("read unless v1", change);
        assert_eq!(taken_at(&mut rig, 15.0), Some(14.0));
    }
}

#[test]
fn reads_more_than_2r_apart_restart_the_wait() {
    for (next_shown, taken) in [(4.0, 10.0), (4.2, 14.2)] {
        let mut rig = Rig::watching(plain(), 7);
        rig.at(2.0);
        while rig.now() < next_shown - 0.1 {
            rig.fails("read unless v1", Unavailable);
            rig.at(rig.now() + 0.2);
        }
        assert_eq!(rig.now(), next_shown);
        rig.read("read unless v1", Sighting::NotModified);
        assert_eq!(taken_at(&mut rig, 16.0), Some(taken));
    }
}

#[test]
fn nothing_is_taken_on_a_sight_that_is_older_than_2r() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(5.9);
    // The last sight is of 4.0; W is over at 10.0.
    while rig.now() < 10.5 {
        for read in rig.waiting() {
            assert_eq!(read, "read unless v1", "at {}", rig.now());
            rig.fails(&read, Unavailable);
        }
        rig.at(rig.now() + 0.1);
    }
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn the_spread_is_later_only_and_less_than_a_tenth_of_r() {
    let mut delays = Vec::new();
    for seed in 0..200 {
        let config = but(|it| it.jitter_seed = Some(seed));
        let mut rig = Rig::watching(config, 7);
        delays.push(taken_at(&mut rig, 10.3).unwrap() - 10.0);
    }
    assert!(delays.iter().all(|delay| (0.0..0.2).contains(delay)), "{delays:?}");
    let max = delays.iter().copied().fold(0.0, f64::max);
    let min = delays.iter().copied().fold(1.0, f64::min);
    assert!(min < 0.02 && max > 0.18, "spread from {min} to {max}");
}

#[test]
fn case_28_a_standby_waits_for_the_larger_ttl_of_the_record() {
    let mut rig = Rig::standby();
    rig.read("read", with_ttl(30, 7, "v1"));
    rig.expect(&["ttl 30s"]);
    assert_eq!(taken_at(&mut rig, 31.0), Some(30.0));
    // It is told once for each tenure, not at each renewal.
    let mut rig = Rig::standby();
    rig.read("read", with_ttl(30, 7, "v1"));
    rig.at(2.0).read("read unless v1", with_ttl(30, 7, "v2"));
    rig.expect(&["ttl 30s"]);
    rig.at(4.0).read("read unless v2", with_ttl(30, 8, "v3"));
    rig.expect(&["ttl 30s"]);
}

#[test]
fn case_28_a_smaller_ttl_of_a_record_does_not_shorten_the_wait() {
    let mut rig = Rig::standby();
    rig.read("read", with_ttl(5, 7, "v1"));
    assert_eq!(taken_at(&mut rig, 11.0), Some(10.0));
}

#[test]
fn a_ttl_that_was_read_counts_for_its_own_length() {
    // Remembered from the record before; it was read at 0 and counts to 30.
    let mut rig = Rig::standby();
    rig.read("read", with_ttl(30, 7, "v1"));
    rig.at(2.0).read("read unless v1", with_ttl(10, 8, "v2"));
    let taken = taken_at(&mut rig, 40.0).unwrap();
    assert!((30.0..=32.0).contains(&taken), "taken at {taken}");

    // And from the history: as if it were read when the machine was made.
    let mut past = Past::default();
    past.largest_ttl = Some(secs(20));
    let mut rig = Rig::new(plain(), past);
    rig.at(0.9).read("read", held("b", 7, 1, "v1"));
    let taken = taken_at(&mut rig, 40.0).unwrap();
    assert!((20.0..=22.0).contains(&taken), "taken at {taken}");
}

#[test]
fn a_larger_ttl_is_noted_in_the_history() {
    let config = but(|it| it.has_history = true);
    let mut rig = Rig::new(config, Past::default());
    rig.read("read", with_ttl(30, 7, "v1"));
    let ttls: Vec<_> = rig.noted.iter().filter_map(|note| note.largest_ttl).collect();
    assert_eq!(ttls, [secs(30)]);
}

#[test]
fn case_28_the_wait_is_capped_at_the_largest_ttl_there_is() {
    let mut rig = Rig::standby();
    rig.read("read", with_ttl(86_400, 7, "v1"));
    assert_eq!(taken_at(&mut rig, 700.0), Some(600.0));
    for ttl in [Duration::ZERO, Duration::MAX] {
        let mut rig = Rig::standby();
        let facts = Facts::new(Some(id("b")), nth(7), 1, None, ttl);
        rig.read("read", found(facts, Verdict::Unsigned, "v1"));
        assert!(taken_at(&mut rig, 700.0).is_some(), "{ttl:?}");
    }
}

#[test]
fn whatever_it_tells_a_lease_is_waited_out_for_the_largest_ttl_of_the_cluster() {
    let config = but(|it| it.timing = timing(10.0, 2.0).with_max_cluster_ttl(secs(25)).unwrap());
    let untrusted = [garbage("v1"), judged(held("b", 7, 1, "v1"), Verdict::Forged), garbage("v1")];
    for sighting in untrusted {
        let mut rig = Rig::new(config.clone(), Past::default());
        rig.read("read", sighting);
        let now = rig.clock.clone();
        let waiting = rig.machine.waiting(fencing::Clock::reading(&now)).unwrap();
        assert_eq!(waiting.reason, WaitReason::UntrustedLease);
        assert_eq!(taken_at(&mut rig, 26.0), Some(25.0));
    }
    // A record that says its own ttl may be an older one, put back over that of the largest.
    let mut rig = Rig::new(config.clone(), Past::default());
    rig.read("read", held("b", 7, 1, "v1"));
    assert_eq!(taken_at(&mut rig, 26.0), Some(25.0));
    // Missing: created at once, and held back for as long.
    let mut rig = Rig::new(config, Past::default());
    rig.read("read", Sighting::Missing);
    rig.written("create e1 s1", "v1");
    rig.undisturbed_until(24.9);
    rig.expect(&["taking over e1 held back"]);
    rig.undisturbed_until(25.0);
    rig.expect(&["active e1"]);
}

#[test]
fn a_refused_takeover_reads_at_once_and_waits_anew() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    rig.fails("replace v1 e8 s1", Precondition);
    rig.read("read unless v1", Sighting::NotModified);
    assert_eq!(taken_at(&mut rig, 25.0), Some(20.0), "it came back");

    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    rig.fails("replace v1 e8 s1", Precondition);
    rig.read("read unless v1", held("b", 7, 2, "v2"));
    assert_eq!(taken_at(&mut rig, 25.0), Some(20.0));
}

#[test]
fn a_takeover_that_was_not_refused_is_tried_again_without_another_wait() {
    let outcomes = [
        (Contended, "replace v1 e8 s1"),
        (Unavailable, "replace v1 e8 s1"),
        (InDoubt, "replace v1 e9 s1"),
    ];
    for (error, next) in outcomes {
        let mut rig = Rig::watching(plain(), 7);
        rig.unchanged_until(10.0);
        rig.fails("replace v1 e8 s1", error);
        rig.at(10.199);
        assert!(rig.waiting().is_empty());
        rig.at(10.2).read("read unless v1", Sighting::NotModified);
        assert_eq!(rig.waiting_since(), [(next.to_owned(), 10.2)], "{error:?}");
    }
}

#[test]
fn a_takeover_that_was_refused_for_no_reason_is_tried_again_after_a_pause() {
    // A store that says "exists" to a create and "missing" to a read: no loop at its speed.
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    for turn in 1..=3 {
        let at = 0.2 * f64::from(turn);
        rig.fails("create e1 s1", Precondition);
        rig.read("read", Sighting::Missing);
        rig.at(at - 0.001);
        assert!(rig.waiting().is_empty());
        rig.at(at);
    }
    // What is new needs none.
    rig.fails("create e1 s1", Precondition);
    rig.read("read", aged(released(7, "v1"), 10));
    rig.take("replace v1 e8 s1");
}

#[test]
fn case_31_ownership_is_the_whole_instance_id() {
    for other in ["a-1", "A", "aa", "s-10"] {
        let mut rig = Rig::standby();
        rig.read("read", held(other, 7, 1, "v1"));
        rig.expect(&[]);
        let holder = id(other);
        assert_eq!(seen(&rig.events), [&LeaseSeen::Held { holder, epoch: nth(7) }]);
        assert_eq!(taken_at(&mut rig, 11.0), Some(10.0));
    }
}

#[test]
fn case_49_another_instance_with_ones_own_id_is_foreign_and_reported() {
    let mut rig = Rig::standby();
    rig.read("read", held(ME, 7, 1, "v1"));
    rig.expect(&["identity shared e7"]);
    rig.at(2.0).read("read unless v1", held(ME, 7, 2, "v2"));
    rig.expect(&["identity shared e7"]);
    assert_eq!(taken_at(&mut rig, 13.0), Some(12.0));
}

#[test]
fn what_an_earlier_process_of_this_instance_left_behind_is_no_clone() {
    let mut past = Past::default();
    past.last_epoch = Some(nth(7));
    let mut rig = Rig::new(plain(), past);
    rig.read("read", held(ME, 7, 41, "v1"));
    rig.expect(&[]);
    // But one that is being renewed has somebody who renews it.
    rig.at(2.0).read("read unless v1", held(ME, 7, 42, "v2"));
    rig.expect(&["identity shared e7"]);
}

#[test]
fn an_own_write_of_long_ago_is_no_other_instance() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.fails("replace v1 e1 s2", InDoubt);
    for seq in 3..=31 {
        rig.at(rig.now() + 0.2).fails(&format!("replace v1 e1 s{seq}"), InDoubt);
    }
    rig.at(8.0).expect(&["ended e1: Expired"]);
    // The first of thirty had landed.
    rig.read("read", first.landed("v2"));
    rig.expect(&[]);
    // A clone is ahead of it.
    rig.at(10.0).read("read unless v2", held(ME, 2, 1, "v3"));
    rig.expect(&["identity shared e2"]);
}

#[test]
fn nobody_takes_what_nobody_wants() {
    let mut rig = Rig::watching(plain(), 7);
    rig.with(|machine, now| machine.want(false, now));
    assert_eq!(taken_at(&mut rig, 30.0), None);
    rig.with(|machine, now| machine.want(true, now));
    rig.take("replace v1 e8 s1");
}

#[test]
fn a_store_that_cannot_do_conditional_writes_is_refused_after_one() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    rig.fails("create e1 s1", Unsupported);
    rig.expect(&["refused"]);
    assert_eq!(rig.role(), Role::Refused);
    rig.at(100.0);
    assert!(rig.waiting().is_empty());
    assert_eq!(rig.wake(), None);
}

#[test]
fn an_answer_that_nobody_waits_for_changes_nothing() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(2.0);
    let old = rig.take("read unless v1");
    rig.at(4.0);
    let before = rig.machine.clone();
    rig.answer(&old, Reply::Read(Sighting::Missing));
    rig.answer(&old, Reply::Failed(InDoubt));
    rig.answer(&old, Reply::Written(Version::new("v9")));
    assert_eq!(rig.machine, before);
}

#[test]
fn a_poll_on_its_way_is_forgotten_when_a_takeover_is_sent() {
    let mut rig = Rig::standby();
    let first = rig.take("read");
    rig.at(0.9).answer(&first, Reply::Read(held("b", 7, 1, "v1")));
    rig.unchanged_until(9.9);
    rig.at(10.5);
    let poll = rig.take("read unless v1");
    rig.at(10.9);
    rig.take("replace v1 e8 s1");
    assert!(rig.was_forgotten(&poll));
    rig.answer(&poll, Reply::Read(held("b", 7, 2, "v2")));
    assert!(rig.waiting().is_empty());
}

#[test]
fn a_standby_says_once_what_it_sees() {
    let mut rig = Rig::watching(plain(), 7);
    rig.at(2.0).read("read unless v1", held("b", 7, 2, "v2"));
    rig.at(4.0).read("read unless v2", held("c", 8, 1, "v3"));
    rig.at(6.0).read("read unless v3", Sighting::Missing);
    let told = rig.events.iter().filter(|event| matches!(event, Event::LeaseSeen { .. })).count();
    assert_eq!(told, 3);
}

#[test]
fn the_same_inputs_give_equal_machines() {
    use std::hash::{BuildHasher as _, RandomState};
    let config = but(|it| it.jitter_seed = Some(7));
    let script = |rig: &mut Rig| {
        rig.unchanged_until(10.3);
        rig.fails("replace v1 e8 s1", InDoubt);
        rig.undisturbed_until(25.0);
    };
    let mut first = Rig::watching(config.clone(), 7);
    let mut second = Rig::watching(config, 7);
    script(&mut first);
    script(&mut second);
    let state = RandomState::new();
    assert_eq!(first.machine, second.machine);
    assert_eq!(state.hash_one(&first.machine), state.hash_one(&second.machine));
    assert_eq!(first.events, second.events);
    let copy = first.machine.clone();
    first.at(27.0);
    assert_ne!(first.machine, copy);
}
