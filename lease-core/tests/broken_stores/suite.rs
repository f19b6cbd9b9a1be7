//! The conformance suite fails each of them, in the case that is about its flaw.

use crate::store::{Broken, Flaw};
use lease_core::{
    ObjectKey,
    testing::conformance::{Capabilities, Suite, Target},
};
use std::collections::BTreeSet;

fn target(flaw: Flaw) -> Target {
    let prefix = ObjectKey::new("suite").unwrap();
    Target::new(Broken::new(flaw), prefix).with_increments(25)
}

/// The cases that a store with this flaw fails.
async fn failed_by(flaw: Flaw) -> Vec<(&'static str, String)> {
    let result = Suite::new(Capabilities::ALL).test_all(async |_| target(flaw)).await;
    match result {
        Ok(report) => {
            assert!(report.skipped.is_empty());
            Vec::new()
        }
        Err(error) => error.failed.iter().map(|(name, why)| (*name, why.to_string())).collect(),
    }
}

/// Each flaw, a case that must catch it, and what the case must say.
const CAUGHT: &[(Flaw, &str, &str)] = &[
    (Flaw::AlwaysNotModified, "a_changed_object_is_found_whatever_was_known", "told NotModified"),
    (Flaw::ConstantVersion, "different_contents_have_different_versions", "version 1"),
    (
        Flaw::ContendedForPrecondition,
        "a_replace_of_a_stale_version_changes_nothing",
        "as Contended",
    ),
    (Flaw::CreateAppliesAndRefuses, "a_create_of_an_existing_object_changes_nothing", "\"second\""),
    (Flaw::CreateInTwoSteps, "exactly_one_of_16_creates_wins", "16 of 16 writes"),
    (Flaw::CutsAt32KiB, "exactly_64_kib_are_read_back", "told 32768 bytes"),
    (Flaw::DeepKeysAreUnavailable, "deep_keys_are_keys", "failed (Unavailable)"),
    (Flaw::EmptyIsMissing, "empty_content_is_content", "told Missing"),
    (Flaw::EverythingIs200, "a_replace_of_a_missing_object_creates_nothing", "was not refused"),
    (Flaw::IgnoresIfMatch, "a_replace_of_a_stale_version_changes_nothing", "was not refused"),
    (Flaw::IgnoresIfNoneMatch, "a_create_of_an_existing_object_changes_nothing", "was not refused"),
    (Flaw::KeysByLastSegment, "keys_are_independent", "nobody wrote it"),
    (Flaw::LetsThreeWin, "exactly_one_of_16_creates_wins", "3 of 16 writes"),
    (Flaw::LetsThreeWin, "exactly_one_of_16_replaces_wins", "3 of 16 writes"),
    (Flaw::LosesEvery20thReplace, "a_counter_counts_every_increment", "a read shows"),
    (Flaw::MissingIsInDoubt, "a_missing_object_is_missing", "failed (InDoubt)"),
    (Flaw::MissingNotModified, "a_missing_object_is_missing", "told NotModified"),
    (Flaw::NeverNotModified, "an_unchanged_object_is_not_sent", "expected NotModified"),
    (Flaw::NoConditionalWrites, "what_was_created_is_read_back", "failed (Unsupported)"),
    (Flaw::NotModifiedIsMissing, "an_unchanged_object_is_told_as_unchanged", "told Missing"),
    (Flaw::OversizeIsFound, "one_byte_more_is_corrupt_and_replaceable", "was no error"),
    (Flaw::OversizeIsUnavailable, "one_byte_more_is_corrupt_and_replaceable", "told Unavailable"),
    (Flaw::ReadsACache, "a_replace_of_the_current_version_is_read_back", "told 4 bytes \"once\""),
    (Flaw::RefusesEverything, "what_was_created_is_read_back", "failed (Precondition)"),
    (Flaw::ReplaceAppliesAndRefuses, "a_replace_of_a_stale_version_changes_nothing", "\"third\""),
    (Flaw::ReplaceInTwoSteps, "exactly_one_of_16_replaces_wins", "16 of 16 writes"),
    (Flaw::ReplaceInTwoSteps, "a_counter_counts_every_increment", "landed"),
    (Flaw::ReplacesMissing, "a_replace_of_a_missing_object_creates_nothing", "was not refused"),
    (Flaw::RetriesWrites, "what_was_created_is_read_back", "failed (Precondition)"),
    (Flaw::SlowReplica, "readers_see_whole_contents_and_never_go_back", "was there before"),
    (Flaw::TellsAnAncientAge, "the_age_of_a_version_is_told", "expected an age of moments"),
    (Flaw::TellsNoAge, "the_age_of_a_version_is_told", "expected an age of moments"),
    (Flaw::TornWrites, "readers_see_whole_contents_and_never_go_back", "told 0 bytes"),
    (Flaw::TornWrites, "a_dropped_write_leaves_the_old_or_the_new", "has 0 bytes"),
    (Flaw::TrimsText, "binary_content_is_exact", "expected"),
    (Flaw::UnquotedConditionOnly, "a_replace_of_the_current_version_is_read_back", "Precondition"),
    (Flaw::VersionByLength, "different_contents_have_different_versions", "had"),
    (Flaw::VersionCounts, "the_same_content_has_the_same_version", "and then version"),
    (Flaw::WeakVersionsOnRead, "what_was_created_is_read_back", "W/"),
];

#[tokio::test]
async fn each_flaw_fails_the_case_that_is_about_it() {
    for (flaw, case, says) in CAUGHT {
        let mut cases = Suite::new(Capabilities::ALL).cases();
        let run = cases.find(|known| known.name() == *case).unwrap().run(target(*flaw)).await;
        let why = run.expect_err(&format!("{flaw:?} passes {case}")).to_string();
        assert!(why.contains(says), "{flaw:?} fails {case}, but says: {why}");
    }
}

#[tokio::test]
async fn every_case_is_failed_by_some_flaw() {
    let caught: BTreeSet<_> = CAUGHT.iter().map(|(_, case, _)| *case).collect();
    let all: BTreeSet<_> = Suite::new(Capabilities::ALL).cases().map(|case| case.name()).collect();
    assert_eq!(caught, all);
}

#[tokio::test]
async fn without_a_flaw_no_case_fails() {
    assert_eq!(failed_by(Flaw::None).await, []);
    assert_eq!(failed_by(Flaw::QuotedVersions).await, []);
}

/// One request after the other these behave: the racing cases are what catches them.
#[tokio::test]
async fn case_05_a_store_that_is_not_atomic_passes_every_sequential_case() {
    let racing = [
        "exactly_one_of_16_creates_wins",
        "exactly_one_of_16_replaces_wins",
        "readers_see_whole_contents_and_never_go_back",
        "a_dropped_write_leaves_the_old_or_the_new",
        "a_counter_counts_every_increment",
    ];
    for flaw in [Flaw::CreateInTwoSteps, Flaw::ReplaceInTwoSteps, Flaw::LetsThreeWin] {
        let failed = failed_by(flaw).await;
        assert!(!failed.is_empty());
        assert!(failed.iter().all(|(name, _)| racing.contains(name)), "{flaw:?}: {failed:#?}");
    }
}
