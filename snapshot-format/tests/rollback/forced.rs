//! An operator's word, once.

use crate::{
    row::{
        KNEW, LEASES, LeaseIs, Named, RefusedIs, Row, UncheckedIs, VERIFIED, VerifiedAre, newest,
        second,
    },
    support::{layout, name},
};
use snapshot_format::{
    name::SnapshotName,
    rollback::{Choice, Facts, Override, OwnDatabase, PopulatedFirst, Reason, Rule, decide},
};

fn rows() -> impl Iterator<Item = Row> {
    let databases = [OwnDatabase::Missing, OwnDatabase::Empty, OwnDatabase::Populated];
    LEASES.into_iter().flat_map(move |lease| {
        VERIFIED.into_iter().flat_map(move |verified| {
            databases.into_iter().map(move |database| Row {
                lease,
                verified,
                unchecked: UncheckedIs::First,
                has_legacy: true,
                refused: RefusedIs::Renamed,
                own_mark: Named::Newer,
                seen_named: Named::Newer,
                knew: KNEW[2],
                database,
                populated_first: PopulatedFirst::Refuse,
            })
        })
    })
}

fn forced(row: Row, forced: Override) -> Choice {
    let decision = decide(&Facts { forced: Some(forced), ..row.facts() });
    assert_eq!(decision.rule, Rule::Forced, "{row:?}");
    decision.choice
}

fn from(name: SnapshotName) -> Override {
    Override::FromSnapshot(layout().key(&name))
}

#[test]
fn an_operator_s_snapshot_is_restored_whatever_else_is_known_if_it_is_genuine() {
    let mut count = 0;
    for row in rows() {
        for wanted in [newest(), second()] {
            let is_there = row.verified.names().contains(&wanted);
            match forced(row, from(wanted)) {
                Choice::Restore(restore) => {
                    assert!(is_there && restore.listed.name == wanted, "{row:?}");
                    assert_eq!(restore.mark, Some(wanted.mark()));
                }
                Choice::Refuse(Reason::OverrideNotFound) => assert!(!is_there, "{row:?}"),
                other => panic!("{other:?}: {row:?}"),
            }
        }
        // Legacy: accepted, and its name still proves nothing.
        let Choice::Restore(restore) = forced(row, from(name(5, 0))) else { panic!("{row:?}") };
        assert_eq!((restore.listed.name, restore.mark), (name(5, 0), None));
        // A renamed copy, one that cannot be checked, one that is not there.
        for (wanted, reason) in [
            (name(901, 0), Reason::OverrideRefused),
            (name(9, 50_000), Reason::SnapshotUnchecked),
            (name(3, 0), Reason::OverrideNotFound),
        ] {
            assert_eq!(forced(row, from(wanted)), Choice::Refuse(reason), "{row:?}");
        }
        count += 6;
    }
    assert_eq!(count, 900);
}

#[test]
fn an_operator_s_own_database_is_kept_if_there_is_one() {
    for row in rows() {
        let expected = match row.database {
            OwnDatabase::Missing => Choice::Refuse(Reason::OverrideWithoutDatabase),
            OwnDatabase::Empty | OwnDatabase::Populated => Choice::KeepOwn,
        };
        assert_eq!(forced(row, Override::KeepOwnDatabase), expected, "{row:?}");
    }
}

#[test]
fn without_a_word_every_one_of_these_is_refused() {
    // So that it is the operator's word that makes the difference above.
    for row in rows() {
        assert!(matches!(decide(&row.facts()).choice, Choice::Refuse(_)), "{row:?}");
    }
    assert!(rows().any(|row| row.lease == LeaseIs::Names(Named::Newest)));
    assert!(rows().any(|row| row.verified == VerifiedAre::Both));
}
