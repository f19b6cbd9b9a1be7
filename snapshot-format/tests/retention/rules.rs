//! The rules against a naive reading of them.

use crate::support::{epoch, header, name};
use proptest::prelude::*;
use snapshot_format::{
    catalog::{Checked, ListedSnapshot, Refusal, Uncheckable, Verdict},
    fencing::{Epoch, WallTime},
    name::Suffix,
    retention::{Fate, plan},
};

#[derive(Clone, Copy, Debug)]
enum Kind {
    Verified,
    Refused,
    Unchecked,
    Legacy,
}

fn checked(kind: Kind, number: u64, seconds: u64, suffix: Option<u64>) -> Checked {
    let mut name = name(number, seconds * 1000);
    if let Some(bits) = suffix {
        name = name.with_suffix(Suffix::from_bits(bits));
    }
    let verdict = match kind {
        Kind::Verified => Verdict::Verified(header(name)),
        Kind::Refused => Verdict::Refused(Refusal::OtherCluster),
        Kind::Unchecked => Verdict::Unchecked(Uncheckable::Changed),
        Kind::Legacy => Verdict::Legacy,
    };
    let listed = ListedSnapshot {
        name,
        key: name.to_string().into(),
        size: 1,
        modified: WallTime::default(),
        etag: None,
    };
    Checked { listed, verdict }
}

/// The rules, each asked of each snapshot on its own, by counting.
fn oracle(all: &[Checked], current: Epoch, it: &Checked) -> bool {
    let verified = || all.iter().filter(|other| matches!(other.verdict, Verdict::Verified(_)));
    let sorts_before = |a: &Checked, b: &Checked| a.listed.name < b.listed.name;
    let name = it.listed.name;
    let unchecked_behind = all
        .iter()
        .any(|other| matches!(other.verdict, Verdict::Unchecked(_)) && sorts_before(it, other));
    if unchecked_behind {
        return false;
    }
    match it.verdict {
        Verdict::Refused(_) | Verdict::Unchecked(_) => false,
        Verdict::Legacy => verified().next().is_some(),
        Verdict::Verified(_) => {
            let before = verified().filter(|other| sorts_before(other, it)).count();
            let of_epoch = verified().filter(|other| other.listed.name.epoch() == current);
            let newer_of_epoch = of_epoch.filter(|other| sorts_before(other, it)).count();
            let is_newest_by_time = !verified().any(|other| {
                let (theirs, ours) = (other.listed.name, name);
                theirs.at() > ours.at() || (theirs.at() == ours.at() && sorts_before(other, it))
            });
            let is_kept = before < 12
                || (name.epoch() == current && newer_of_epoch < 12)
                || is_newest_by_time;
            !is_kept
        }
    }
}

fn any_listing() -> impl Strategy<Value = Vec<Checked>> {
    // Mostly verified ones of few epochs, or the limits are never reached.
    let kind = prop_oneof![
        40 => Just(Kind::Verified),
        2 => Just(Kind::Refused),
        1 => Just(Kind::Unchecked),
        2 => Just(Kind::Legacy),
    ];
    let suffix = prop::option::weighted(0.1, 0..2_u64);
    let one = (kind, 1..5_u64, 0..60_u64, suffix);
    prop::collection::vec(one, 0..90).prop_map(|all| {
        let mut all: Vec<_> = all
            .into_iter()
            .map(|(kind, epoch, at, suffix)| checked(kind, epoch, at, suffix))
            .collect();
        // No two objects have one name.
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|checked| seen.insert(checked.listed.name));
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn exactly_what_the_rules_say_is_deleted(all in any_listing(), current in 1..6_u64) {
        let current = epoch(current);
        let plan = plan(&all, current);
        prop_assert_eq!(plan.fates().len(), all.len());
        for (listed, fate) in plan.fates() {
            let it = all.iter().find(|it| it.listed == *listed).unwrap();
            prop_assert_eq!(fate.is_deleted(), oracle(&all, current, it), "{:?} {}", it, fate);
        }
    }

    #[test]
    fn what_must_never_go_stays(all in any_listing(), current in 1..6_u64) {
        let current = epoch(current);
        let plan = plan(&all, current);
        let deleted: Vec<_> = plan.deleted().collect();
        let mut verified: Vec<_> = all.iter().filter(|it| it.verdict.verified().is_some()).collect();
        verified.sort_by_key(|it| it.listed.name);
        let newest = verified.first().map(|it| &it.listed);
        let of_current = verified.iter().find(|it| it.listed.name.epoch() == current);
        for spared in newest.into_iter().chain(of_current.map(|it| &it.listed)) {
            prop_assert!(!deleted.contains(&spared));
        }
        // The oldest go first, and what is left is bounded.
        prop_assert!(deleted.windows(2).all(|two| two[0].name > two[1].name));
        if !all.iter().any(|it| matches!(it.verdict, Verdict::Unchecked(_))) {
            let kept = verified.iter().filter(|it| !deleted.contains(&&it.listed)).count();
            prop_assert!(kept <= 25, "{}", kept);
        }
    }

    #[test]
    fn the_order_of_the_listing_does_not_matter(all in any_listing(), current in 1..6_u64) {
        let mut turned = all.clone();
        turned.reverse();
        prop_assert_eq!(plan(&all, epoch(current)), plan(&turned, epoch(current)));
    }
}

fn fates(all: &[Checked], current: u64) -> Vec<Fate> {
    plan(all, epoch(current)).fates().iter().map(|(_, fate)| *fate).collect()
}

fn verified(number: u64, seconds: std::ops::Range<u64>) -> Vec<Checked> {
    seconds.map(|seconds| checked(Kind::Verified, number, seconds, None)).collect()
}

#[test]
fn each_rule_keeps_what_the_others_would_let_go() {
    // 13 of epoch 9, then 14 of epoch 8, which is current, then one of epoch 7 that is newest by time.
    let mut all = verified(9, 0..13);
    all.extend(verified(8, 100..114));
    all.extend(verified(7, 200..201));
    all.push(checked(Kind::Legacy, 6, 300, None));
    let mut expected = vec![Fate::AmongFirst; 12];
    expected.push(Fate::Beyond);
    expected.extend([Fate::AmongCurrent; 12]);
    expected.extend([Fate::Beyond, Fate::Beyond, Fate::NewestByTime, Fate::Superseded]);
    assert_eq!(fates(&all, 8), expected);

    // One that cannot be checked keeps what sorts before it, and nothing behind it.
    all.push(checked(Kind::Unchecked, 8, 100, Some(1)));
    let fates = fates(&all, 8);
    assert_eq!(fates[12], Fate::BeforeUnchecked);
    assert_eq!(
        fates.iter().filter(|fate| fate.is_deleted()).count(),
        1,
        "the legacy one: {fates:?}"
    );
}

#[test]
fn refused_names_displace_nothing_and_are_kept() {
    let mut all: Vec<_> = (0..100).map(|n| checked(Kind::Refused, 1000 + n, n, None)).collect();
    all.extend(verified(9, 0..14));
    let fates = fates(&all, 9);
    assert!(fates[..100].iter().all(|fate| *fate == Fate::Refused));
    assert_eq!(fates[100..112], [Fate::AmongFirst; 12]);
    assert_eq!(fates[112..], [Fate::Beyond, Fate::Beyond]);
}

#[test]
fn legacy_ones_stay_while_none_is_verified() {
    let mut all: Vec<_> = (0..40).map(|n| checked(Kind::Legacy, 1, n, None)).collect();
    all.push(checked(Kind::Refused, 9, 0, None));
    let kept = fates(&all, 9);
    assert_eq!(kept[1..], [Fate::NoneVerified; 40]);
    all.extend(verified(2, 0..1));
    assert_eq!(fates(&all, 9).iter().filter(|fate| **fate == Fate::Superseded).count(), 40);
}
