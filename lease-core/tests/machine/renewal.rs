//! Renewing: what a renewal proves and for how long, its budget, the step-down (protocol, 2 and 1.3).

use crate::{rig::Rig, sightings::held};
use lease_core::{
    machine::{Reply, Request, Role},
    store::{StoreErrorKind, Version},
};
use std::{collections::HashSet, time::Duration};

#[test]
fn case_02_a_renewal_that_is_refused_without_a_doubt_is_lost_at_once() {
    // 404 and 412 on a conditional replace are one and the same: `Precondition`.
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", StoreErrorKind::Precondition);
    assert!(!rig.is_open());
    assert_eq!(rig.role(), Role::Standby);
    rig.read("read", held("b", 2, 1, "v2"));
    rig.expect(&["ended e1: taken over by b e2"]);
    rig.unchanged_until(12.0);
    rig.take("replace v2 e3 s1");
}

#[test]
fn case_21_a_renewal_counts_from_when_it_was_sent() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(3.5).answer(&renewal, Reply::Written(Version::new("v2")));
    assert_eq!(rig.deadline(), Some(10.0));
    rig.at(3.999);
    assert!(rig.waiting().is_empty());
    rig.at(4.0);
    rig.take("replace v2 e1 s3");
}

#[test]
fn case_21_an_answer_past_the_deadline_is_ignored() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(8.0).expect(&["ended e1: Expired"]);
    assert!(rig.was_forgotten(&renewal));
    rig.at(8.5).answer(&renewal, Reply::Written(Version::new("v2")));
    rig.expect(&[]);
    assert!(!rig.is_open());
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn case_21_an_answer_at_the_very_deadline_is_too_late_also_without_a_timer() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    // No timer ran: the answer is the first thing that happens at the deadline.
    rig.clock.advance(Duration::from_secs(6));
    rig.answer(&renewal, Reply::Written(Version::new("v2")));
    rig.expect(&["ended e1: Expired"]);
}

#[test]
fn case_22_a_renewal_that_hangs_stops_the_tenure_at_its_deadline() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(7.999);
    assert!(rig.is_open());
    rig.expect(&[]);
    rig.at(8.0);
    assert!(!rig.is_open());
    rig.expect(&["ended e1: Expired"]);
    rig.at(60.0).answer(&renewal, Reply::Written(Version::new("v2")));
    rig.expect(&[]);
}

#[test]
fn case_22_nothing_is_sent_at_or_past_the_deadline() {
    let mut rig = Rig::active();
    let mut last = 0.0;
    loop {
        for request in rig.waiting().into_iter().filter(|it| it.starts_with("replace")) {
            last = rig.now();
            rig.fails(&request, StoreErrorKind::InDoubt);
        }
        let Some(wake) = rig.wake().map(|wake| rig.seconds(wake)) else { break };
        if wake > 20.0 || rig.role() == Role::Standby {
            break;
        }
        rig.at(wake);
    }
    assert!(last < 8.0 && last > 7.7, "the last renewal was sent at {last}");
    rig.expect(&["ended e1: Expired"]);
}

#[test]
fn case_23_a_store_that_fails_for_a_while_costs_nothing() {
    let mut rig = Rig::active();
    rig.at(2.0);
    while rig.now() < 5.9 {
        let request = rig.waiting().remove(0);
        rig.fails(&request, StoreErrorKind::Unavailable);
        rig.at(rig.now() + 0.2);
    }
    let request = rig.waiting().remove(0);
    rig.written(&request, "v2");
    rig.expect(&[]);
    assert!(rig.is_open());
    assert_eq!(rig.deadline(), Some(6.0 + 8.0));
}

#[test]
fn case_23_proof_of_another_holder_stops_at_once() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", StoreErrorKind::Unavailable);
    rig.at(2.2);
    let renewal = rig.take("replace v1 e1 s3");
    rig.at(5.0).answer(&renewal, Reply::Failed(StoreErrorKind::Contended));
    // The one that was sent at 4.2 is on its way as well; a read tells.
    rig.read("read", held("b", 2, 1, "v2"));
    rig.expect(&["ended e1: taken over by b e2"]);
    assert!(!rig.is_open());
}

#[test]
fn case_25_after_a_suspend_the_first_check_fails_and_nothing_more_is_written() {
    let mut rig = Rig::active();
    rig.at(1.0);
    let hour = Duration::from_secs(3600);
    // A platform whose monotonic clock stood still: only the wall clock shows it.
    rig.clock.suspend(hour, Duration::from_secs(1));
    assert!(!rig.is_open(), "before any timer fires");
    rig.at(2.5).expect(&["ended e1: Suspended"]);
    assert!(rig.waiting().iter().all(|it| it == "read"), "{:?}", rig.waiting());
}

#[test]
fn case_25_a_clock_that_counts_in_suspend_shows_it_too() {
    let mut rig = Rig::active();
    rig.at(1.0);
    rig.clock.suspend(Duration::from_secs(3600), Duration::from_secs(3600));
    assert!(!rig.is_open());
    rig.with(|machine, now| machine.handle_timeout(now));
    rig.expect(&["ended e1: Suspended"]);
}

#[test]
fn a_renewal_has_half_of_what_is_left_as_its_budget() {
    let mut rig = Rig::active();
    rig.at(7.999);
    let times: Vec<f64> = rig.waiting_since().iter().map(|(_, at)| *at).collect();
    // 6 s left: 2 (at most R). 4 left: 2. 2 left: 1. 1 left: 1 (at least R/2), which is the deadline.
    assert_eq!(times, [2.0, 4.0, 6.0, 7.0]);
}

#[test]
fn a_renewal_that_failed_is_tried_again_after_a_tenth_of_r() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let renewal = rig.take("replace v1 e1 s2");
    rig.at(2.3).answer(&renewal, Reply::Failed(StoreErrorKind::InDoubt));
    rig.at(2.499);
    assert!(rig.waiting().is_empty());
    rig.at(2.5);
    rig.take("replace v1 e1 s3");
    assert_eq!(rig.deadline(), Some(8.0));
}

#[test]
fn an_old_renewal_that_fails_late_calls_for_no_third_beside_the_second() {
    for error in [StoreErrorKind::InDoubt, StoreErrorKind::Unavailable] {
        let mut rig = Rig::active();
        rig.at(2.0);
        let first = rig.take("replace v1 e1 s2");
        rig.at(4.0);
        let second = rig.take("replace v1 e1 s3");
        rig.answer(&first, Reply::Failed(error));
        rig.at(5.8);
        assert!(rig.waiting().is_empty(), "the second is within its budget");
        rig.answer(&second, Reply::Failed(error));
        rig.at(6.0);
        rig.take("replace v1 e1 s4");
    }
}

#[test]
fn an_answer_after_the_budget_counts_with_its_own_time_of_sending() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.take("replace v1 e1 s2");
    rig.at(6.5);
    let others = [rig.take("replace v1 e1 s3"), rig.take("replace v1 e1 s4")];
    rig.answer(&first, Reply::Written(Version::new("v2")));
    assert_eq!(rig.deadline(), Some(10.0));
    assert!(others.iter().all(|other| rig.was_forgotten(other)), "they can land no more");
    // It is overdue already.
    rig.take("replace v2 e1 s5");
    rig.answer(&others[0], Reply::Failed(StoreErrorKind::Precondition));
    rig.expect(&[]);
    assert_eq!(rig.role(), Role::Active);
}

#[test]
fn every_write_has_a_number_and_a_nonce_of_its_own() {
    let mut rig = Rig::active();
    let mut nonces = HashSet::new();
    for seq in 2..=20_u32 {
        rig.at(2.0 * f64::from(seq - 1));
        let version = rig.waiting().remove(0);
        let sent = rig.written(&version, &format!("v{seq}"));
        assert_eq!(sent.draft().seq, u64::from(seq));
        assert!(nonces.insert(sent.draft().nonce));
        let Request::Replace(_, condition) = &sent.request else { panic!("{:?}", sent.request) };
        assert_eq!(condition.tag(), format!("v{}", seq - 1));
    }
}

#[test]
fn a_wall_clock_set_back_neither_shortens_nor_lengthens_a_tenure() {
    let mut rig = Rig::active();
    rig.at(1.0).clock.jump_wall(-3 * 3600);
    rig.at(2.0).written("replace v1 e1 s2", "v2");
    rig.at(9.999);
    assert!(rig.is_open());
    rig.at(10.0);
    assert!(!rig.is_open());
    rig.expect(&["ended e1: Expired"]);
}

#[test]
fn a_store_that_refuses_renewals_for_good_ends_the_tenure() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", StoreErrorKind::Unsupported);
    rig.expect(&["ended e1: StoreRefused"]);
    assert!(!rig.is_open());
}
