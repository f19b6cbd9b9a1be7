//! The probe refuses each of them at the step that is about its flaw, and says why.

use crate::store::{Broken, Flaw};
use lease_core::{
    LeaseStore, ObjectKey, StoreError, StoreErrorKind,
    probe::{ProbeError, ProbeStep, Refusal, probe, probe_and_clean},
    testing::{AgePrecision, Fault, FaultStore, Hold, Late, ManualClock, MemoryStore, Op, Outcome},
};
use std::collections::HashSet;

fn lease() -> ObjectKey {
    ObjectKey::new("orders/lease.json").unwrap()
}

async fn refusal(store: &dyn LeaseStore) -> Refusal {
    match probe(store, &lease()).await {
        Err(ProbeError::Refused(refusal)) => refusal,
        other => panic!("{store:?} was not refused: {other:?}"),
    }
}

/// Each flaw, the step that it is refused at, and a part of the sentence.
const REFUSED: &[(Flaw, ProbeStep, &str)] = &[
    (Flaw::AlwaysNotModified, ProbeStep::ReadUnlessStale, "told to be unchanged"),
    (Flaw::ConstantVersion, ProbeStep::ReplaceCurrent, "has the same version 1"),
    (Flaw::CreateAppliesAndRefuses, ProbeStep::CreateExisting, "created again"),
    (Flaw::CreateInTwoSteps, ProbeStep::RaceCreates, "16 of 16 writers won"),
    (Flaw::EverythingIs200, ProbeStep::CreateExisting, "it succeeded"),
    (Flaw::IgnoresIfMatch, ProbeStep::ReplaceStale, "`If-Match` is ignored"),
    (Flaw::IgnoresIfNoneMatch, ProbeStep::CreateExisting, "`If-None-Match: *` is ignored"),
    (Flaw::LetsThreeWin, ProbeStep::RaceReplaces, "3 of 16 writers won"),
    (Flaw::NoConditionalWrites, ProbeStep::CreateMissing, "it failed (the store is refused"),
    (Flaw::NotModifiedIsMissing, ProbeStep::ReadUnlessStale, "the object is then missing"),
    (Flaw::ReadsACache, ProbeStep::ReplaceCurrent, "the object then has"),
    (Flaw::RefusesEverything, ProbeStep::CreateMissing, "it failed"),
    (Flaw::ReplaceAppliesAndRefuses, ProbeStep::ReplaceStale, "then has \"{\\\"probe"),
    (Flaw::ReplaceInTwoSteps, ProbeStep::RaceReplaces, "16 of 16 writers won"),
    (Flaw::ReplacesMissing, ProbeStep::ReplaceMissing, "it succeeded"),
    (Flaw::RetriesWrites, ProbeStep::CreateMissing, "it failed"),
    (Flaw::SlowReplica, ProbeStep::ReplaceCurrent, "the object then has"),
    (Flaw::UnquotedConditionOnly, ProbeStep::ReplaceCurrent, "does not recognise the versions"),
    (Flaw::VersionByLength, ProbeStep::ReplaceCurrent, "has the same version"),
    (Flaw::WeakVersionsOnRead, ProbeStep::CreateMissing, "a read tells Version(W/"),
];

#[tokio::test]
async fn each_flaw_is_refused_at_the_step_that_is_about_it() {
    for (flaw, step, says) in REFUSED {
        let refusal = refusal(&Broken::new(*flaw)).await;
        assert_eq!(refusal.step, *step, "{flaw:?}: {refusal}");
        let sentence = ProbeError::Refused(refusal).to_string();
        assert!(sentence.contains(says), "{flaw:?}: {sentence}");
    }
}

#[tokio::test]
async fn every_step_refuses_some_flaw() {
    let steps: HashSet<_> = REFUSED.iter().map(|(_, step, _)| *step).collect();
    assert_eq!(steps.len(), 8);
}

#[tokio::test]
async fn stores_whose_conditions_hold_are_accepted() {
    let harmless = [
        Flaw::None,
        Flaw::NeverNotModified,
        Flaw::QuotedVersions,
        Flaw::TellsNoAge,
        Flaw::VersionCounts,
    ];
    for flaw in harmless {
        let report = probe(&Broken::new(flaw), &lease()).await.unwrap();
        assert_eq!(report.not_modified, flaw != Flaw::NeverNotModified);
        assert_eq!(report.tells_age, flaw != Flaw::TellsNoAge);
    }
}

#[tokio::test]
async fn a_store_in_memory_is_accepted_and_the_requests_are_few() {
    let store = MemoryStore::with_counted_versions()
        .telling_age(ManualClock::new(), AgePrecision::WholeSeconds);
    let report = probe(&store, &lease()).await.unwrap();
    assert!(report.not_modified && report.tells_age);
    assert_eq!((report.contended, report.in_doubt), (0, 0));
    assert_eq!(store.requests().total(), report.requests as u64);
    assert!(report.requests < 70, "{report:?}");
}

#[tokio::test]
async fn case_02_a_replace_of_an_absent_key_that_writes_is_refused() {
    let refusal = refusal(&Broken::new(Flaw::ReplacesMissing)).await;
    assert_eq!(refusal.step, ProbeStep::ReplaceMissing);
    assert!(refusal.to_string().contains("written again by its old holder"), "{refusal}");
}

#[tokio::test]
async fn case_03_a_store_that_answers_200_to_everything_is_refused_before_the_lease_is_touched() {
    let store = FaultStore::new(Broken::new(Flaw::EverythingIs200));
    assert_eq!(refusal(&store).await.step, ProbeStep::CreateExisting);
    assert!(store.faults().calls().iter().all(|call| call.key != lease()));
}

#[tokio::test]
async fn case_04_not_implemented_is_unsupported_after_exactly_one_write_and_forbidden_is_not() {
    let store = FaultStore::new(Broken::new(Flaw::NoConditionalWrites));
    let error = probe(&store, &lease()).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().step, ProbeStep::CreateMissing);
    assert_eq!(StoreError::from(error).kind(), StoreErrorKind::Unsupported);
    assert_eq!(store.faults().calls().len(), 1);

    let store = FaultStore::new(MemoryStore::new());
    store.faults().next(Op::Create, Fault::Fail(StoreErrorKind::Unavailable));
    let error = probe(&store, &lease()).await.unwrap_err();
    assert!(error.refusal().is_none());
    assert_eq!(StoreError::from(error).kind(), StoreErrorKind::Unavailable);
}

#[tokio::test]
async fn case_05_three_winners_are_refused_and_counted() {
    let refusal = refusal(&Broken::new(Flaw::LetsThreeWin)).await;
    assert!(refusal.found.contains("3 of 16"), "{refusal}");
    assert!(refusal.to_string().contains("two steps"), "{refusal}");
}

#[tokio::test]
async fn case_05_the_racers_are_all_in_flight_at_once() {
    let store = FaultStore::new(MemoryStore::new());
    let (faults, hold) = (store.faults(), Hold::new());
    faults.always(Op::Create, Fault::Hold(hold.clone()));
    faults.always(Op::Replace, Fault::Hold(hold.clone()));
    // Those that come one after the other.
    (0..2).for_each(|_| faults.next(Op::Create, Fault::Pass));
    (0..3).for_each(|_| faults.next(Op::Replace, Fault::Pass));
    let probing = tokio::spawn({
        let store = store.clone();
        async move { probe(&store, &lease()).await }
    });
    faults.wait_for_calls_of(Op::Replace, 3 + 16).await;
    let pending = faults.calls().iter().filter(|call| call.outcome == Outcome::Pending).count();
    assert_eq!(pending, 16);
    hold.release();
    probing.await.unwrap().unwrap();
}

#[tokio::test]
async fn case_06_a_server_that_honours_unquoted_conditions_only_is_refused_at_its_own_step() {
    // By this step a driver knows to try the bare dialect.
    let refusal = refusal(&Broken::new(Flaw::UnquotedConditionOnly)).await;
    assert_eq!(refusal.step, ProbeStep::ReplaceCurrent);
}

#[tokio::test]
async fn case_07_versions_that_a_proxy_makes_weak_are_refused() {
    let refusal = refusal(&Broken::new(Flaw::WeakVersionsOnRead)).await;
    assert_eq!(refusal.step, ProbeStep::CreateMissing);
    assert!(refusal.to_string().contains("compression"), "{refusal}");
}

#[tokio::test]
async fn a_store_that_cannot_be_reached_is_not_refused_and_may_be_probed_again() {
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::InDoubt, StoreErrorKind::Contended] {
        for op in Op::ALL {
            for fault in [Fault::Fail(kind), Fault::ApplyThenFail(kind)] {
                let store = FaultStore::new(MemoryStore::new());
                store.faults().next(op, fault);
                match probe(&store, &lease()).await {
                    Err(ProbeError::Inconclusive { source, .. }) => assert_eq!(source.kind(), kind),
                    other => panic!("{op} {kind:?}: {other:?}"),
                }
                probe(&store, &lease()).await.unwrap();
            }
        }
    }
}

/// Scripts the answers to the 16 replacements that race, behind the three that come before them.
fn racing(answers: impl IntoIterator<Item = Fault>) -> FaultStore<MemoryStore> {
    let store = FaultStore::new(MemoryStore::new());
    script_race(&store, answers);
    store
}

fn script_race<S: LeaseStore>(store: &FaultStore<S>, answers: impl IntoIterator<Item = Fault>) {
    let before = (0..3).map(|_| Fault::Pass);
    before.chain(answers).for_each(|fault| store.faults().next(Op::Replace, fault));
}

fn answer(n: usize, kind: StoreErrorKind) -> impl Iterator<Item = Fault> {
    (0..n).map(move |_| Fault::ApplyThenFail(kind))
}

#[tokio::test]
async fn losers_that_are_told_500_or_409_are_losers() {
    let doubts = answer(12, StoreErrorKind::InDoubt);
    let store = racing([Fault::Pass].into_iter().chain(doubts));
    let report = probe(&store, &lease()).await.unwrap();
    assert_eq!((report.in_doubt, report.races), (12, 3));

    let conflicts = answer(15, StoreErrorKind::Contended);
    let store = racing([Fault::Pass].into_iter().chain(conflicts));
    assert_eq!(probe(&store, &lease()).await.unwrap().contended, 15);
}

/// Races that prove nothing, each with what its racers are told in the end.
fn void_races() -> [(Vec<Fault>, StoreErrorKind); 4] {
    let (in_doubt, contended) = (StoreErrorKind::InDoubt, StoreErrorKind::Contended);
    let nobody = |kind| (0..16).map(move |_| Fault::Fail(kind));
    [
        // The winner's reply was lost.
        (answer(1, in_doubt).chain((0..15).map(|_| Fault::Pass)).collect(), in_doubt),
        // Hardly anybody arrived.
        ([Fault::Pass].into_iter().chain(answer(15, in_doubt)).collect(), in_doubt),
        // Nobody did.
        (nobody(in_doubt).collect(), in_doubt),
        // Everybody met somebody.
        (nobody(contended).collect(), contended),
    ]
}

#[tokio::test]
async fn a_race_without_a_known_winner_or_without_racers_is_run_again_and_alone() {
    for (answers, _) in void_races() {
        let what = format!("{answers:?}");
        let store = racing(answers);
        let report = probe(&store, &lease()).await.unwrap();
        assert_eq!(report.races, 4, "{what}");
        assert!(report.requests <= 63 + 17, "{what}: {report:?}");
        assert_eq!(store.faults().calls().len(), report.requests, "{what}");
    }
    // Creators race for another object then.
    let store = FaultStore::new(MemoryStore::new());
    (0..2).for_each(|_| store.faults().next(Op::Create, Fault::Pass));
    answer(16, StoreErrorKind::InDoubt).for_each(|fault| store.faults().next(Op::Create, fault));
    let report = probe_and_clean(&store, &lease()).await.unwrap();
    assert_eq!((report.races, report.in_doubt), (4, 16));
    assert_eq!(store.inner().keys(), [], "all of them are removed");
}

#[tokio::test]
async fn races_that_never_prove_anything_prove_nothing() {
    for (answers, kind) in void_races() {
        let what = format!("{answers:?}");
        let store = racing((0..12).flat_map(|_| answers.clone()));
        match probe(&store, &lease()).await {
            Err(ProbeError::Inconclusive { step: ProbeStep::RaceReplaces, source }) => {
                assert_eq!(source.kind(), kind, "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    // Nor is a race run again from which the store went away.
    let gone = Fault::Fail(StoreErrorKind::Unavailable);
    match probe(&racing([Fault::Pass, gone]), &lease()).await {
        Err(ProbeError::Inconclusive { step: ProbeStep::RaceReplaces, source }) => {
            assert_eq!(source.kind(), StoreErrorKind::Unavailable);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_loser_that_has_won_is_refused() {
    for kind in [StoreErrorKind::Precondition, StoreErrorKind::Contended] {
        let doubt = Fault::Fail(StoreErrorKind::InDoubt);
        let store = racing(answer(1, kind).chain((0..15).map(|_| doubt.clone())));
        let refusal = refusal(&store).await;
        assert!(refusal.found.contains("told that it had lost had won"), "{refusal}");
    }
}

#[tokio::test]
async fn a_writer_of_an_earlier_race_may_land_in_a_later_one() {
    let (late, hold) = (Late::new(), Hold::new());
    let on_their_way = (0..16).map(|_| Fault::LandLater(late.clone()));
    let behind_them = (0..16).map(|_| Fault::Hold(hold.clone()));
    let store = racing(on_their_way.chain(behind_them));
    let probing = tokio::spawn({
        let store = store.clone();
        async move { probe(&store, &lease()).await }
    });
    store.faults().wait_for_calls_of(Op::Replace, 3 + 16 + 16).await;
    late.land().await;
    hold.release();
    // Nobody had won the first race yet, and all racers of the second lost to one of the first.
    let report = probing.await.unwrap().unwrap();
    assert_eq!((report.races, report.in_doubt), (5, 16));
}

#[tokio::test]
async fn winners_whose_replies_got_lost_are_found_by_what_is_there() {
    let store = FaultStore::new(Broken::new(Flaw::LetsThreeWin));
    script_race(&store, [Fault::Pass].into_iter().chain(answer(2, StoreErrorKind::InDoubt)));
    let refusal = refusal(&store).await;
    assert_eq!(refusal.step, ProbeStep::RaceReplaces);
    assert!(refusal.found.contains("the object then has"), "{refusal}");
}

#[tokio::test]
async fn a_race_that_everybody_loses_is_refused() {
    let store = racing(answer(16, StoreErrorKind::Precondition));
    assert!(refusal(&store).await.found.contains("none of 16"));
}

#[tokio::test]
async fn a_probe_leaves_two_objects_beside_the_lease_or_none() {
    let store = MemoryStore::new();
    probe(&store, &lease()).await.unwrap();
    let left = store.keys();
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|key| key.as_str().starts_with("orders/probe-")), "{left:?}");

    let store = FaultStore::new(MemoryStore::new());
    store.inner().put_by_hand(&lease(), "held");
    probe_and_clean(&store, &lease()).await.unwrap();
    store.faults().next(Op::Replace, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
    probe_and_clean(&store, &lease()).await.unwrap_err();
    assert_eq!(store.inner().keys(), [lease()]);
    assert_eq!(store.inner().content(&lease()).unwrap(), "held");
}
