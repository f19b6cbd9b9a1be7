//! Every combination of the facts, held against what the reference says of each for itself, and
//! printed with the rule that decided: `matrix.txt`.

use crate::row::{
    DATABASES, KNEW, LEASES, LeaseIs, Named, OWN_MARKS, REFUSED, Row, SEEN_NAMED, UNCHECKED,
    UncheckedIs, VERIFIED, VerifiedAre,
};
use snapshot_format::rollback::{
    Choice, Decision, OwnDatabase, PopulatedFirst, Reason, Rule, decide,
};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

/// The whole word, for a lease that names something.
fn word(row: &Row) -> String {
    let lease = match row.lease {
        LeaseIs::Names(named) => format!("names {named:?}"),
        other => format!("{other:?}"),
    };
    let legacy = if row.has_legacy { "legacy" } else { "-" };
    format!(
        "{:<13} verified {:<11} unchecked {:<5} {:<6} refused {:<7}",
        lease.to_lowercase(),
        format!("{:?}", row.verified),
        format!("{:?}", row.unchecked),
        legacy,
        format!("{:?}", row.refused),
    )
}

fn letter(rule: Rule) -> char {
    match rule {
        Rule::FirstActivation => 'f',
        Rule::Legacy => 'g',
        Rule::OwnIsNewest => 'o',
        Rule::Newest => 'n',
        Rule::LegacyAfterUpgrade => 'G',
        Rule::LeaseMissing => 'M',
        Rule::LeaseReplayed => 'R',
        Rule::LeaseStale => 'S',
        Rule::LeaseUntrusted => 'U',
        Rule::NoSnapshot => 'N',
        Rule::BehindLease => 'B',
        Rule::BehindLocal => 'L',
        Rule::Unchecked => 'C',
        other => panic!("{other:?}"),
    }
}

const LEGEND: &str = "\
# What a takeover decides, for every combination of its facts; written by the test
# rollback/matrix.rs. One line for what the store has, one letter for each combination of what this
# instance knows: the rule that decided.
#
# small: f first activation, g legacy restored, o own database kept, n newest restored
# LARGE: refused. U lease untrusted, M lease missing, R lease replayed, S lease stale,
#        C cannot be checked, G legacy after upgrade, B behind lease, L behind local, N no snapshot
#
# The letters stand for, from the outermost: own high-water mark (nothing, the second newest, newer
# than all); named by a lease seen before (nothing, oldest, newer than all); knew (nothing, the
# cluster, an authentic lease); own database (missing, empty, populated). Nine equal ones in a row are
# one letter, and so is a line of equal ones.
";

/// One letter for nine of a kind, and one for a line of a kind.
fn short(letters: &str) -> String {
    let is_one = |part: &str| part.chars().all(|letter| part.starts_with(letter));
    if is_one(letters) {
        return letters[..1].to_owned();
    }
    let nines: Vec<_> = (0..letters.len()).step_by(9).map(|at| &letters[at..at + 9]).collect();
    let shortened = nines.iter().map(|nine| if is_one(nine) { &nine[..1] } else { nine });
    shortened.collect::<Vec<_>>().join(" ")
}

fn outer() -> impl Iterator<Item = Row> {
    let mut rows = Vec::new();
    for lease in LEASES {
        for verified in VERIFIED {
            for unchecked in UNCHECKED {
                for has_legacy in [false, true] {
                    for refused in REFUSED {
                        rows.push(Row {
                            lease,
                            verified,
                            unchecked,
                            has_legacy,
                            refused,
                            own_mark: Named::Nothing,
                            seen_named: Named::Nothing,
                            knew: KNEW[0],
                            database: OwnDatabase::Missing,
                            populated_first: PopulatedFirst::Keep,
                        });
                    }
                }
            }
        }
    }
    rows.into_iter()
}

fn inner(outer: Row) -> Vec<Row> {
    let mut rows = Vec::new();
    for own_mark in OWN_MARKS {
        for seen_named in SEEN_NAMED {
            for knew in KNEW {
                for database in DATABASES {
                    rows.push(Row { own_mark, seen_named, knew, database, ..outer });
                }
            }
        }
    }
    rows
}

/// The decision of a row, once it is what the reference allows.
fn checked(row: Row) -> Decision {
    let decision = decide(&row.facts());
    let reasons = row.reasons();
    match &decision.choice {
        Choice::Refuse(reason) => {
            assert!(reasons.contains(reason), "{reason:?} does not apply: {row:?}");
            assert_eq!(reason_of(decision.rule), Some(*reason), "{row:?}");
        }
        going_on => {
            assert!(reasons.is_empty(), "{going_on:?} in spite of {reasons:?}: {row:?}");
            assert_eq!(reason_of(decision.rule), None, "{row:?}");
            went_on(row, &decision);
        }
    }
    decision
}

fn went_on(row: Row, decision: &Decision) {
    let newest = row.verified.names().first().copied();
    let is_populated = row.database == OwnDatabase::Populated;
    match (&decision.choice, decision.rule) {
        (Choice::Restore(restore), Rule::Newest) => {
            assert_eq!(Some(restore.listed.name), newest, "{row:?}");
            assert_eq!(restore.mark, newest.map(|name| name.mark()));
            assert!(row.verified != VerifiedAre::OneOfOurs || !is_populated, "{row:?}");
        }
        (Choice::KeepOwn, Rule::OwnIsNewest) => {
            assert!(row.verified == VerifiedAre::OneOfOurs && is_populated, "{row:?}");
        }
        (Choice::Restore(restore), Rule::Legacy) => {
            assert!(row.has_legacy && newest.is_none() && restore.mark.is_none(), "{row:?}");
            assert_eq!(row.unchecked, UncheckedIs::None, "all of them were checked");
        }
        (Choice::KeepOwn, Rule::FirstActivation) => {
            assert!(row.lease == LeaseIs::Missing && is_populated, "{row:?}");
        }
        (Choice::StartEmpty, Rule::FirstActivation) => {
            assert!(row.lease == LeaseIs::Missing && !is_populated, "{row:?}");
        }
        other => panic!("{other:?}: {row:?}"),
    }
}

fn reason_of(rule: Rule) -> Option<Reason> {
    Some(match rule {
        Rule::LegacyAfterUpgrade => Reason::LegacyAfterUpgrade,
        Rule::LeaseMissing => Reason::LeaseMissing,
        Rule::LeaseReplayed => Reason::LeaseReplayed,
        Rule::LeaseStale => Reason::LeaseStale,
        Rule::LeaseUntrusted => Reason::LeaseUntrusted,
        Rule::NoSnapshot => Reason::NoSnapshot,
        Rule::BehindLease => Reason::SnapshotBehindLease,
        Rule::BehindLocal => Reason::SnapshotBehindLocal,
        Rule::Unchecked => Reason::SnapshotUnchecked,
        _ => return None,
    })
}

#[test]
fn every_combination_is_decided_as_the_reference_says_and_as_it_was_before() {
    let (mut table, mut counts, mut rows) = (LEGEND.to_owned(), BTreeMap::new(), 0);
    for outer in outer() {
        let mut letters = String::new();
        for row in inner(outer) {
            let rule = checked(row).rule;
            *counts.entry(format!("{rule:?}")).or_insert(0) += 1;
            rows += 1;
            letters.push(letter(rule));
        }
        write!(table, "\n{} | {}", word(&outer), short(&letters)).unwrap();
    }
    table.push('\n');
    println!("{rows} combinations, by the rule that decided: {counts:#?}");
    assert_eq!(rows, 102_060);
    assert_eq!(counts.len(), 13, "every rule decides somewhere: {counts:?}");

    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rollback/matrix.txt");
    if std::env::var_os("HOLDFAST_WRITE_GOLDEN").is_some() {
        fs::write(&golden, &table).unwrap();
    }
    let before = fs::read_to_string(&golden).unwrap();
    for (now, before) in table.lines().zip(before.lines()) {
        assert_eq!(now, before, "set HOLDFAST_WRITE_GOLDEN=1 if this is meant");
    }
    assert_eq!(table.lines().count(), before.lines().count());
}

/// The same with an operator who wants to be asked about a populated database.
#[test]
fn a_populated_database_of_a_first_activation_is_refused_where_that_is_wanted() {
    let mut refused = 0;
    for outer in outer() {
        for row in inner(outer) {
            let strict = Row { populated_first: PopulatedFirst::Refuse, ..row };
            let (decision, before) = (checked(strict), checked(row));
            if decision == before {
                continue;
            }
            assert_eq!(before.choice, Choice::KeepOwn, "{row:?}");
            assert_eq!(before.rule, Rule::FirstActivation, "{row:?}");
            assert_eq!(decision.choice, Choice::Refuse(Reason::LeaseMissing), "{row:?}");
            refused += 1;
        }
    }
    assert_eq!(refused, 1, "nothing else in the world is changed by it");
}

#[test]
fn reasons_have_names_for_ever() {
    let names: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(
        names,
        [
            "legacy_after_upgrade",
            "lease_missing",
            "lease_replayed",
            "lease_stale",
            "lease_untrusted",
            "no_snapshot",
            "override_not_found",
            "override_refused",
            "override_without_database",
            "snapshot_behind_lease",
            "snapshot_behind_local",
            "snapshot_unchecked",
        ]
    );
    assert_eq!(Reason::ALL.iter().filter(|reason| reason.is_suspected_rollback()).count(), 7);
    assert!(Reason::ALL.iter().all(|reason| reason.to_string().len() > 20));
}
