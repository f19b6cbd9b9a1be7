//! Doubt: what became of a write whose answer never came, or said that it was not done (protocol, 3).

use crate::{
    rig::{ME, Rig, but, plain},
    sightings::{garbage, held, judged},
};
use lease_core::{
    auth::Verdict,
    machine::{Past, Reply, Role, Sighting},
    store::{
        StoreErrorKind::{Contended, InDoubt, Precondition, Unavailable},
        Version,
    },
};

#[test]
fn case_01_a_conflict_on_a_create_is_no_lost_race() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    rig.fails("create e1 s1", Contended);
    rig.at(0.199);
    assert!(rig.waiting().is_empty());
    rig.at(0.2).read("read", Sighting::Missing);
    rig.written("create e1 s1", "v1");
    rig.expect(&["taking over e1 held back"]);
}

#[test]
fn case_01_after_a_conflict_on_a_create_another_may_hold_it() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    rig.fails("create e1 s1", Contended);
    rig.at(0.2).read("read", held("b", 1, 1, "v1"));
    rig.unchanged_until(10.1);
    rig.expect(&[]);
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn case_01_a_conflict_on_a_renewal_is_read_and_tried_again() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", Contended);
    rig.read("read", held(ME, 1, 1, "v1"));
    assert_eq!(rig.deadline(), Some(8.0));
    rig.at(2.2).written("replace v1 e1 s3", "v2");
    assert_eq!(rig.deadline(), Some(10.2));
    rig.expect(&[]);
}

#[test]
fn case_01_a_conflict_with_another_holder_is_lost_at_once() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", Contended);
    rig.read("read", held("b", 2, 1, "v2"));
    rig.expect(&["ended e1: taken over by b e2"]);
    assert!(!rig.is_open());
}

#[test]
fn a_conflict_with_an_own_write_in_doubt_adopts_it() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let landed = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2).fails("replace v1 e1 s3", Contended);
    rig.read("read", landed.landed("v2"));
    assert_eq!(rig.deadline(), Some(10.0));
    rig.at(4.0);
    rig.take("replace v2 e1 s4");
}

#[test]
fn case_08_a_reply_that_was_lost_is_found_and_counts_from_its_own_sending() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.take("replace v1 e1 s2");
    rig.at(2.3).answer(&first, Reply::Failed(InDoubt));
    rig.at(2.5).fails("replace v1 e1 s3", Precondition);
    rig.read("read", first.landed("v2"));
    assert_eq!(rig.role(), Role::Active);
    assert!(rig.is_open());
    assert_eq!(rig.deadline(), Some(10.0));
    rig.expect(&[]);
}

#[test]
fn case_08_what_is_found_instead_of_an_own_write_is_a_loss() {
    let found = [
        (held("b", 2, 1, "v9"), "ended e1: taken over by b e2"),
        (held(ME, 1, 1, "v1"), "ended e1: Lost"),
        (held(ME, 1, 2, "v9"), "ended e1: Lost"),
        (Sighting::Missing, "ended e1: Deleted"),
        (garbage("v9"), "ended e1: Replaced { verdict: Unreadable }"),
    ];
    for (sighting, ended) in found {
        let mut rig = Rig::active();
        rig.at(2.0).fails("replace v1 e1 s2", InDoubt);
        rig.at(2.2).fails("replace v1 e1 s3", Precondition);
        rig.read("read", sighting);
        rig.expect(&[ended]);
        assert!(!rig.is_open());
    }
}

#[test]
fn a_read_that_resolves_a_doubt_is_repeated_to_the_deadline_which_stays() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2).fails("replace v1 e1 s3", Precondition);
    let mut reads = 0;
    while rig.role() == Role::Active {
        for read in rig.waiting() {
            assert_eq!(read, "read", "it is never conditional, and no renewal goes beside it");
            // "Not modified" tells nothing here.
            match reads % 2 {
                0 => drop(rig.fails(&read, Unavailable)),
                _ => rig.read(&read, Sighting::NotModified),
            }
            reads += 1;
        }
        let wake = rig.wake().map(|wake| rig.seconds(wake)).unwrap();
        rig.at(wake);
    }
    assert_eq!(rig.now(), 8.0);
    assert_eq!(reads, 29, "from 2.2 on, every 0.2 s");
    rig.expect(&["ended e1: Expired"]);
}

#[test]
fn a_read_that_never_answers_is_sent_again_after_r() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let landed = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2).fails("replace v1 e1 s3", Precondition);
    let lost = rig.take("read");
    rig.at(4.2);
    assert!(rig.was_forgotten(&lost));
    rig.read("read", landed.landed("v2"));
    assert_eq!(rig.deadline(), Some(10.0));
}

#[test]
fn of_several_renewals_in_flight_one_that_is_refused_calls_for_a_read() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.take("replace v1 e1 s2");
    rig.at(4.0);
    rig.fails("replace v1 e1 s3", Precondition);
    assert_eq!(rig.role(), Role::Active, "the first may be what landed");
    rig.read("read", first.landed("v2"));
    assert_eq!(rig.deadline(), Some(10.0));
    assert!(rig.was_forgotten(&first));
}

#[test]
fn once_every_renewal_in_flight_is_refused_it_is_lost_without_a_read() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.take("replace v1 e1 s2");
    rig.at(4.0);
    let second = rig.take("replace v1 e1 s3");
    rig.answer(&second, Reply::Failed(Precondition));
    rig.answer(&first, Reply::Failed(Precondition));
    assert_eq!(rig.role(), Role::Standby);
    assert!(!rig.is_open());
}

#[test]
fn a_refusal_is_a_loss_once_nothing_else_can_have_landed() {
    for error in [Contended, Unavailable] {
        let mut rig = Rig::active();
        rig.at(2.0);
        let first = rig.take("replace v1 e1 s2");
        rig.at(4.0);
        let second = rig.take("replace v1 e1 s3");
        rig.answer(&first, Reply::Failed(Precondition));
        assert_eq!(rig.role(), Role::Active, "the second may be what landed");
        rig.answer(&second, Reply::Failed(error));
        assert_eq!(rig.role(), Role::Standby, "{error:?}");
        assert!(!rig.is_open());
    }
}

#[test]
fn a_refusal_is_not_softened_by_a_later_conflict() {
    let mut rig = Rig::active();
    rig.at(2.0);
    rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2);
    let second = rig.take("replace v1 e1 s3");
    rig.at(4.2);
    let third = rig.take("replace v1 e1 s4");
    rig.answer(&second, Reply::Failed(Precondition));
    rig.answer(&third, Reply::Failed(Contended));
    // The last certain version would be a reason to try again after a conflict alone.
    rig.read("read", held(ME, 1, 1, "v1"));
    rig.expect(&["ended e1: Lost"]);
}

#[test]
fn an_adopted_write_settles_every_doubt() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2).fails("replace v1 e1 s3", Precondition);
    rig.read("read", first.landed("v2"));
    rig.at(4.0).fails("replace v2 e1 s4", Precondition);
    assert_eq!(rig.role(), Role::Standby, "nothing is in doubt any more: somebody else wrote");
}

#[test]
fn a_certain_write_settles_every_doubt() {
    let mut rig = Rig::active();
    rig.at(2.0).fails("replace v1 e1 s2", InDoubt);
    rig.at(2.2).written("replace v1 e1 s3", "v2");
    rig.at(4.2).fails("replace v2 e1 s4", Precondition);
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn a_read_that_was_sent_before_the_refusal_is_not_used() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let first = rig.take("replace v1 e1 s2");
    rig.at(4.0).fails("replace v1 e1 s3", Contended);
    let early = rig.take("read");
    rig.at(4.1).answer(&first, Reply::Failed(InDoubt));
    // Nothing may be concluded from what was read before the next answer.
    rig.at(4.2);
    rig.answer(&early, Reply::Read(held(ME, 1, 1, "v1")));
    rig.at(4.4);
    let third = rig.take("replace v1 e1 s4");
    rig.answer(&third, Reply::Failed(Precondition));
    rig.read("read", first.landed("v2"));
    assert_eq!(rig.role(), Role::Active);
}

#[test]
fn the_doubts_of_a_tenure_end_with_it() {
    let mut rig = Rig::active();
    rig.at(2.0);
    let landed = rig.fails("replace v1 e1 s2", InDoubt);
    rig.at(8.0).expect(&["ended e1: Expired"]);
    for request in rig.waiting().into_iter().filter(|it| it != "read") {
        rig.take(&request);
    }
    rig.read("read", landed.landed("v2"));
    assert_eq!(rig.role(), Role::Standby, "an ended epoch is never entered again");
    rig.unchanged_until(17.9);
    assert_eq!(rig.role(), Role::Standby);
    rig.unchanged_until(18.0);
    rig.take("replace v2 e2 s1");
}

// ---- acquisitions ----

#[test]
fn an_acquisition_takes_at_most_r_and_is_in_doubt_then() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.take("replace v1 e8 s1");
    rig.at(11.999);
    assert!(rig.waiting().is_empty());
    rig.at(12.0);
    assert!(rig.was_forgotten(&acquisition));
    rig.take("read unless v1");
    rig.answer(&acquisition, Reply::Written(Version::new("v2")));
    assert_eq!(rig.role(), Role::Standby, "an answer that was forgotten counts for nothing");
}

#[test]
fn an_acquisition_in_doubt_is_adopted_with_its_own_time_of_sending() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.fails("replace v1 e8 s1", InDoubt);
    rig.at(10.2).read("read unless v1", acquisition.landed("v2"));
    rig.expect(&["taking over e8", "active e8"]);
    assert_eq!(rig.deadline(), Some(18.0));
    rig.at(12.0);
    rig.take("replace v2 e8 s2");
}

#[test]
fn an_acquisition_in_doubt_is_not_adopted_at_its_own_deadline() {
    for (read_at, is_adopted) in [(17.9, true), (18.0, false)] {
        let mut rig = Rig::watching(plain(), 7);
        rig.unchanged_until(10.0);
        let acquisition = rig.fails("replace v1 e8 s1", InDoubt);
        rig.at(10.2);
        while rig.now() < read_at - 0.15 {
            rig.fails("read unless v1", Unavailable);
            rig.at(rig.now() + 0.2);
        }
        rig.at(read_at).read("read unless v1", acquisition.landed("v2"));
        assert_eq!(rig.role() == Role::Active, is_adopted, "{read_at}");
        rig.expect(if is_adopted { &["taking over e8", "active e8"] } else { &[] });
    }
}

#[test]
fn an_acquisition_in_doubt_is_adopted_only_if_it_is_still_wanted() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.fails("replace v1 e8 s1", InDoubt);
    rig.with(|machine, now| machine.want(false, now));
    rig.at(10.2).read("read unless v1", acquisition.landed("v2"));
    rig.expect(&[]);
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn an_acquisition_in_doubt_is_not_adopted_once_stopped() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    let acquisition = rig.take("replace v1 e8 s1");
    rig.with(|machine, now| machine.stop(now));
    assert_eq!(rig.role(), Role::Stopped);
    rig.answer(&acquisition, Reply::Written(Version::new("v2")));
    rig.expect(&[]);
    assert_eq!(rig.role(), Role::Stopped);
    assert_eq!(rig.wake(), None);
}

#[test]
fn the_number_of_an_acquisition_in_doubt_is_not_used_again() {
    let mut rig = Rig::new(plain(), Past::default());
    rig.read("read", Sighting::Missing);
    rig.fails("create e1 s1", InDoubt);
    rig.at(0.2).read("read", Sighting::Missing);
    rig.take("create e2 s1");
}

#[test]
fn case_49_what_a_clone_wrote_is_not_ones_own() {
    let mut rig = Rig::watching(plain(), 7);
    rig.unchanged_until(10.0);
    rig.fails("replace v1 e8 s1", InDoubt);
    // The same holder, epoch and number, and another nonce.
    rig.at(10.2).read("read unless v1", held(ME, 8, 1, "v2"));
    rig.expect(&["identity shared e8"]);
    assert_eq!(rig.role(), Role::Standby);
}

#[test]
fn a_copy_of_an_own_write_that_cannot_be_believed_is_not_adopted() {
    for (verdict, role) in [
        (Verdict::Authentic, Role::Active),
        (Verdict::Forged, Role::Standby),
        // Its mac was taken off.
        (Verdict::Unsigned, Role::Standby),
    ] {
        let mut rig = Rig::active_with(but(|it| it.has_secret = true));
        rig.at(2.0);
        let first = rig.fails("replace v1 e1 s2", InDoubt);
        rig.at(2.2).fails("replace v1 e1 s3", Precondition);
        rig.read("read", judged(first.landed("v2"), verdict));
        assert_eq!(rig.role(), role, "{verdict:?}");
    }
}

#[test]
fn an_own_write_that_was_not_signed_is_adopted_as_such() {
    let mut past = Past::default();
    past.seen_authenticated = true;
    let mut rig = Rig::new(but(|it| it.has_secret = true), past);
    rig.confirms = false;
    rig.read("read", held("mallory", 7, 1, "v1"));
    rig.unchanged_until(10.0);
    rig.written("replace v1 e1 s1", "v2");
    rig.at(12.0);
    let first = rig.fails("replace v2 e1 s2", InDoubt);
    rig.at(12.2).fails("replace v2 e1 s3", Precondition);
    rig.read("read", first.landed("v3"));
    assert_eq!(rig.role(), Role::TakingOver);
    assert_eq!(rig.deadline(), Some(20.0));
}
