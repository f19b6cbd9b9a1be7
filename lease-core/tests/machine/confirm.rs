//! Between the acquisition and the open fence: hold-back, confirmation, budget, history, trust
//! (protocol, 4 and 6).

use crate::{
    rig::{Rig, but, plain},
    sightings::{garbage, held, judged, nth, released, secs},
};
use lease_core::{
    auth::Verdict,
    machine::{AbandonReason, Config, FirstStart, Past, Reply, Role, Sighting, WaitReason},
    store::{
        StoreErrorKind::{InDoubt, Precondition},
        Version,
    },
};

/// Takes over "b"'s lease at 10.0 as epoch 8, version "v2"; nothing is confirmed.
fn taking_over(config: Config) -> Rig {
    let mut rig = Rig::watching(config, 7);
    rig.confirms = false;
    rig.unchanged_until(10.0);
    rig.written("replace v1 e8 s1", "v2");
    rig.expect(&["taking over e8"]);
    rig
}

#[test]
fn a_takeover_is_renewed_for_longer_than_t_until_it_is_confirmed() {
    let mut rig = taking_over(plain());
    rig.undisturbed_until(55.0);
    assert_eq!(rig.role(), Role::TakingOver);
    assert!(!rig.is_open());
    rig.with(|machine, now| machine.confirm(now));
    rig.expect(&["active e8"]);
    assert!(rig.is_open());
    assert_eq!(rig.deadline(), Some(54.0 + 8.0));
}

#[test]
fn a_takeover_that_is_not_confirmed_within_its_budget_is_abandoned() {
    let config = but(|it| it.takeover_budget = secs(15));
    let mut rig = taking_over(config);
    rig.undisturbed_until(24.999);
    assert_eq!(rig.role(), Role::TakingOver);
    rig.undisturbed_until(25.0);
    rig.expect(&["ended e8: Abandoned(BudgetSpent)"]);
    assert!(!rig.is_open());
}

#[test]
fn whoever_abandons_releases_and_keeps_out_for_t() {
    let mut rig = taking_over(plain());
    rig.at(11.0).with(|machine, now| machine.abandon(AbandonReason::Application, now));
    let release = rig.written("release v2 e8 s2", "v3");
    rig.expect(&["ended e8: Abandoned(Application)"]);
    rig.read("read", release.landed("v3"));
    let now = fencing::Clock::reading(&rig.clock);
    let waiting = rig.machine.waiting(now).unwrap();
    assert_eq!(waiting.reason, WaitReason::KeepOutAfterAbandon);
    rig.unchanged_until(20.999);
    assert!(rig.waiting().is_empty());
    rig.at(21.0);
    rig.take("replace v3 e9 s1");
}

#[test]
fn whoever_abandons_keeps_out_for_t_however_the_release_fares() {
    for how in 0..3 {
        let mut rig = taking_over(plain());
        rig.with(|machine, now| machine.abandon(AbandonReason::Application, now));
        let release = rig.take("release v2 e8 s2");
        match how {
            0 => rig.answer(&release, Reply::Failed(Precondition)),
            1 => rig.with(|machine, now| machine.drop_tenure(false, now)),
            _ => rig.with(|machine, now| machine.drop_tenure(true, now)),
        }
        rig.read("read", released(9, "v3"));
        rig.unchanged_until(19.999);
        assert!(rig.waiting().is_empty(), "{how}: {:?}", rig.waiting());
        rig.at(20.0);
        rig.take("replace v3 e10 s1");
    }
}

#[test]
fn an_open_fence_is_not_abandoned() {
    let mut rig = Rig::active();
    rig.with(|machine, now| machine.abandon(AbandonReason::Application, now));
    assert!(rig.is_open());
    assert_eq!(rig.role(), Role::Active);
}

#[test]
fn a_confirmation_that_comes_after_the_end_opens_nothing() {
    let mut rig = taking_over(plain());
    rig.at(18.0).expect(&["ended e8: Expired"]);
    rig.with(|machine, now| machine.confirm(now));
    rig.expect(&[]);
    assert!(!rig.is_open());
}

#[test]
fn case_47_a_creator_is_held_back_for_w_after_it_learned_of_its_success() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    let create = rig.take("create e1 s1");
    rig.at(1.5).answer(&create, Reply::Written(Version::new("v1")));
    rig.expect(&["taking over e1 held back"]);
    rig.undisturbed_until(11.499);
    assert!(!rig.is_open());
    rig.undisturbed_until(11.5);
    assert!(rig.is_open());
    rig.expect(&["active e1"]);
}

#[test]
fn case_47_a_create_in_doubt_is_held_back_from_when_it_was_found() {
    let mut rig = Rig::standby();
    rig.read("read", Sighting::Missing);
    let create = rig.fails("create e1 s1", InDoubt);
    rig.at(0.2).read("read", create.landed("v1"));
    rig.expect(&["taking over e1 held back"]);
    rig.undisturbed_until(10.199);
    assert!(!rig.is_open());
    rig.undisturbed_until(10.2);
    assert!(rig.is_open());
}

#[test]
fn case_50_a_lease_that_is_held_back_is_never_released() {
    for give_up in 0..4 {
        let mut rig = Rig::standby();
        rig.confirms = give_up % 2 == 0;
        rig.read("read", Sighting::Missing);
        rig.written("create e1 s1", "v1");
        rig.at(1.0).with(|machine, now| match give_up {
            0 => machine.release(now),
            1 => machine.abandon(AbandonReason::Application, now),
            2 => machine.stop(now),
            _ => machine.drop_tenure(false, now),
        });
        rig.at(9.0);
        assert!(rig.waiting().iter().all(|it| it.starts_with("read")), "{:?}", rig.waiting());
        let ended = rig.events.iter().filter(|it| format!("{it:?}").starts_with("Ended")).count();
        assert_eq!(ended, 1);
    }
}

#[test]
fn an_unreleased_hold_back_is_given_back_once_it_is_over() {
    let mut rig = Rig::standby();
    rig.confirms = false;
    rig.read("read", Sighting::Missing);
    rig.undisturbed_until(11.0);
    rig.with(|machine, now| machine.stop(now));
    assert_eq!(rig.role(), Role::Releasing);
    rig.undisturbed_until(11.0);
    rig.expect(&["taking over e1 held back", "ended e1: Released"]);
    assert_eq!(rig.role(), Role::Stopped);
}

#[test]
fn a_new_cluster_opens_at_once_only_with_an_empty_history() {
    let immediate = || but(|it| it.first_start = FirstStart::Immediate);
    let mut rig = Rig::new(immediate(), Past::default());
    rig.read("read", Sighting::Missing);
    rig.written("create e1 s1", "v1");
    rig.expect(&["taking over e1", "active e1"]);

    let mut past = Past::default();
    past.largest_ttl = Some(secs(10));
    let mut rig = Rig::new(immediate(), past);
    rig.read("read", Sighting::Missing);
    rig.written("create e1 s1", "v1");
    rig.expect(&["taking over e1 held back"]);

    // Something was there before it was gone.
    for before in [held("b", 1, 1, "v1"), garbage("v1"), released(1, "v1")] {
        let mut rig = Rig::new(immediate(), Past::default());
        rig.with(|machine, now| machine.want(false, now));
        rig.read("read", before);
        rig.with(|machine, now| machine.want(true, now));
        for write in rig.waiting() {
            rig.fails(&write, Precondition);
            rig.take("read unless v1");
            rig.at(1.9);
        }
        rig.at(2.0);
        let read = rig.waiting().pop().unwrap();
        rig.read(&read, Sighting::Missing);
        rig.at(2.5);
        let create = rig.waiting().pop().unwrap();
        rig.written(&create, "v2");
        let last = rig.events.iter().rev().find(|it| format!("{it:?}").starts_with("TakingOver"));
        assert!(format!("{last:?}").contains("held_back_until: Some"), "{last:?}");
    }
}

#[test]
fn a_cluster_with_snapshots_or_another_creator_is_not_new() {
    let immediate =
        |floor| but(|it| (it.first_start, it.has_floor) = (FirstStart::Immediate, floor));
    let mut rig = Rig::new(immediate(true), Past::default());
    rig.read("read", Sighting::Missing);
    let id = rig.floors.remove(0);
    rig.with(|machine, now| machine.handle_floor(id, Ok(Some(nth(5))), now));
    rig.written("create e6 s1", "v1");
    rig.expect(&["taking over e6 held back"]);

    // Another's create was first, and then it was deleted.
    let mut rig = Rig::new(immediate(false), Past::default());
    rig.read("read", Sighting::Missing);
    rig.fails("create e1 s1", Precondition);
    rig.read("read", Sighting::Missing);
    rig.at(0.2).written("create e1 s1", "v1");
    rig.expect(&["taking over e1 held back"]);
}

#[test]
fn the_history_is_on_disk_before_the_fence_opens() {
    let config = but(|it| it.has_history = true);
    let mut rig = taking_over(config);
    rig.history_hangs = true;
    rig.at(11.0).with(|machine, now| machine.confirm(now));
    assert!(!rig.is_open());
    rig.undisturbed_until(13.0);
    let (id, note) = rig.notes.remove(0);
    assert_eq!(note.opened.map(|tenure| tenure.epoch), Some(nth(8)));
    rig.with(|machine, now| machine.handle_persisted(id, true, now));
    assert!(rig.is_open());
    rig.expect(&["active e8"]);
    assert_eq!(rig.deadline(), Some(12.0 + 8.0), "it was renewed meanwhile");
}

#[test]
fn a_history_that_cannot_be_written_abandons_the_takeover() {
    let config = but(|it| it.has_history = true);
    let mut rig = taking_over(config);
    rig.history_works = false;
    rig.with(|machine, now| machine.confirm(now));
    rig.undisturbed_until(10.0);
    rig.expect(&["ended e8: Abandoned(History)"]);
}

#[test]
fn marks_are_on_disk_before_the_fence_opens() {
    let mut rig =
        Rig::new(but(|it| (it.has_secret, it.has_history) = (true, true)), Past::default());
    rig.confirms = false;
    rig.history_works = false;
    rig.read("read", judged(held("b", 7, 1, "v1"), Verdict::Authentic));
    rig.unchanged_until(10.0);
    rig.written("replace v1 e8 s1", "v2");
    rig.history_works = true;
    rig.with(|machine, now| machine.confirm(now));
    let opening = rig.noted.iter().find(|note| note.opened.is_some()).unwrap();
    assert!(opening.seen_authenticated, "no note of it was written before: {:?}", rig.noted);
}

#[test]
fn a_hold_back_longer_than_the_budget_does_not_spend_it() {
    let config = but(|it| (it.has_history, it.takeover_budget) = (true, secs(5)));
    let mut rig = Rig::new(config, Past::default());
    rig.read("read", Sighting::Missing);
    rig.undisturbed_until(10.0);
    rig.expect(&["taking over e1 held back", "active e1"]);
}

#[test]
fn a_history_that_never_answers_is_given_up_after_t() {
    let mut rig = taking_over(but(|it| it.has_history = true));
    rig.history_hangs = true;
    rig.undisturbed_until(12.0);
    rig.with(|machine, now| machine.confirm(now));
    rig.undisturbed_until(21.999);
    assert_eq!(rig.role(), Role::TakingOver);
    rig.history_hangs = false;
    rig.undisturbed_until(22.0);
    rig.expect(&["ended e8: Abandoned(History)"]);
}

#[test]
fn an_opening_that_was_given_up_is_not_opened_by_the_history() {
    let config = but(|it| it.has_history = true);
    let mut rig = taking_over(config);
    rig.history_hangs = true;
    rig.with(|machine, now| machine.confirm(now));
    let (id, _) = rig.notes.remove(0);
    rig.with(|machine, now| machine.stop(now));
    rig.with(|machine, now| machine.handle_persisted(id, true, now));
    assert!(!rig.is_open());
    assert_eq!(rig.role(), Role::Releasing);
    rig.expect(&[]);
}
