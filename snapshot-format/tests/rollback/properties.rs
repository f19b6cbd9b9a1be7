//! Whatever the facts: nothing older than what was known, without an operator.

use crate::{
    row::{checked, unchecked, verified},
    support::{epoch, layout, name},
};
use proptest::prelude::*;
use snapshot_format::{
    catalog::{Checked, Refusal, Verdict},
    lease_core::key::InstanceId,
    name::Mark,
    rollback::{
        Choice, Facts, Lease, Override, OwnDatabase, PopulatedFirst, Rule, Snapshots, Standing,
        decide,
    },
};

fn any_mark() -> impl Strategy<Value = Mark> {
    (1..4_u64, 0..5_u64).prop_map(|(epoch, at)| name(epoch, at).mark())
}

fn any_lease() -> impl Strategy<Value = Lease> {
    let last_snapshot = prop::option::of(any_mark());
    prop_oneof![
        1 => Just(Lease::Missing),
        1 => Just(Lease::Unreadable),
        1 => Just(Lease::Forged),
        1 => Just(Lease::Unsigned),
        6 => (1..5_u64, last_snapshot).prop_map(|(number, last_snapshot)| {
            Lease::Authentic { epoch: epoch(number), last_snapshot }
        }),
    ]
}

fn any_snapshots() -> impl Strategy<Value = Vec<Checked>> {
    let one = (1..4_u64, 0..5_u64, 0..12_u8).prop_map(|(epoch, at, kind)| {
        let name = name(epoch, at);
        match kind {
            0 => checked(name, Verdict::Refused(Refusal::OtherCluster)),
            1 => checked(name, Verdict::Refused(Refusal::OtherSuffix)),
            2 => unchecked(name),
            3 | 4 => checked(name, Verdict::Legacy),
            5..=7 => verified(name, "s-1"),
            _ => verified(name, "s-2"),
        }
    });
    prop::collection::vec(one, 0..7).prop_map(|mut all| {
        all.sort_by_key(|checked| checked.listed.name);
        all.dedup_by_key(|checked| checked.listed.name);
        all
    })
}

prop_compose! {
    fn any_standing()(
        database in prop::sample::select(&[OwnDatabase::Missing, OwnDatabase::Empty, OwnDatabase::Populated][..]),
        (knew_the_cluster, seen_authenticated_lease) in any::<(bool, bool)>(),
        last_epoch in prop::option::of(1..4_u64),
        newest_snapshot in prop::option::of(any_mark()),
        newest_named in prop::option::of(any_mark()),
    ) -> Standing {
        Standing {
            instance: InstanceId::new("s-1").unwrap(),
            database,
            knew_the_cluster,
            seen_authenticated_lease,
            last_epoch: last_epoch.map(epoch),
            newest_snapshot,
            newest_named,
        }
    }
}

prop_compose! {
    fn any_facts()(
        lease in any_lease(),
        snapshots in any_snapshots(),
        others in prop::bool::weighted(0.1),
        own in any_standing(),
        refuse in any::<bool>(),
    ) -> Facts {
        let populated_first = if refuse { PopulatedFirst::Refuse } else { PopulatedFirst::Keep };
        let snapshots = Snapshots::new(snapshots, others);
        Facts { lease, snapshots, own, forced: None, populated_first }
    }
}

/// The newest that the cluster is known to have had.
fn high_water(facts: &Facts) -> Option<Mark> {
    let named = match facts.lease {
        Lease::Authentic { last_snapshot, .. } => last_snapshot,
        _ => None,
    };
    named.max(facts.own.newest_snapshot).max(facts.own.newest_named)
}

fn first_verified(facts: &Facts) -> Option<&Checked> {
    facts.snapshots.checked().iter().find(|checked| checked.verdict.verified().is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn nothing_older_than_the_high_water_mark_is_restored_without_an_operator(facts in any_facts()) {
        let newest = first_verified(&facts);
        match decide(&facts).choice {
            Choice::Restore(restore) => match restore.mark {
                Some(mark) => {
                    prop_assert!(Some(mark) >= high_water(&facts));
                    // And it is the newest, with nothing before it that might be newer.
                    prop_assert_eq!(Some(&restore.listed), newest.map(|it| &it.listed));
                }
                None => {
                    prop_assert_eq!(high_water(&facts), None);
                    prop_assert!(!facts.snapshots.checked().iter().any(|it| it.verdict.shows_a_header()));
                }
            },
            Choice::KeepOwn if facts.lease != Lease::Missing => {
                let newest = newest.and_then(|it| it.verdict.verified()).unwrap();
                prop_assert!(Some(newest.name().mark()) >= high_water(&facts));
                prop_assert_eq!(&newest.instance_id, &facts.own.instance);
                prop_assert_eq!(Some(newest.epoch), facts.own.last_epoch);
                prop_assert_eq!(facts.own.database, OwnDatabase::Populated);
            }
            Choice::KeepOwn | Choice::StartEmpty => {
                prop_assert_eq!(facts.lease, Lease::Missing);
                prop_assert_eq!(high_water(&facts), None);
                prop_assert!(facts.snapshots.is_empty() && !facts.own.knew_the_cluster);
                prop_assert!(facts.own.last_epoch.is_none());
            }
            Choice::Refuse(_) => {}
            other => prop_assert!(false, "{other:?}"),
        }
    }

    #[test]
    fn what_cannot_be_checked_is_never_passed_over(facts in any_facts()) {
        if let Choice::Restore(restore) = decide(&facts).choice {
            let before = facts.snapshots.checked().iter();
            let mut before = before.take_while(|it| it.listed != restore.listed);
            prop_assert!(!before.any(|it| matches!(it.verdict, Verdict::Unchecked(_))));
        }
    }

    #[test]
    fn a_lease_that_cannot_be_believed_leads_to_nothing(facts in any_facts()) {
        if matches!(facts.lease, Lease::Unreadable | Lease::Forged) {
            prop_assert_eq!(decide(&facts).rule, Rule::LeaseUntrusted);
        }
    }

    #[test]
    fn an_operator_decides_alone(facts in any_facts(), which in 0..8_usize, keep in any::<bool>()) {
        let chosen = facts.snapshots.checked().get(which).cloned();
        let key = chosen.as_ref().map_or(layout().key(&name(9, 9)), |it| it.listed.key.clone());
        let forced = if keep { Override::KeepOwnDatabase } else { Override::FromSnapshot(key) };
        let decision = decide(&Facts { forced: Some(forced), ..facts.clone() });
        prop_assert_eq!(decision.rule, Rule::Forced);
        if let Choice::Restore(restore) = decision.choice {
            let chosen = chosen.unwrap();
            prop_assert_eq!(restore.listed, chosen.listed);
            prop_assert!(matches!(chosen.verdict, Verdict::Verified(_) | Verdict::Legacy));
        }
    }
}
