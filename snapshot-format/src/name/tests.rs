use super::*;
use lease_core::key::ClusterName;
use object_store::path::Path;
use proptest::prelude::*;

const PREFIX: &str = "_mongorescue/metadata/ha/prod/mongorescue-";

fn layout() -> Layout {
    Layout::new(Application::new("mongorescue").unwrap(), ClusterName::new("prod").unwrap())
}

fn parse(name: &str) -> Option<SnapshotName> {
    layout().parse(&Path::from(format!("{PREFIX}{name}")))
}

fn name(epoch: u64, at: &str) -> SnapshotName {
    SnapshotName::new(at.parse().unwrap(), Epoch::new(epoch).unwrap())
}

#[test]
fn case_40_epochs_sort_as_numbers_and_other_names_are_none() {
    let e9 = parse("20260102T000000.000Z-e9.db.age").unwrap();
    let e10 = parse("20251231T000000.000Z-e10.db.age").unwrap();
    assert!(e10 < e9, "the higher epoch is tried first, whatever the time");
    assert_eq!(parse("Z.BAK"), None);
}

#[test]
fn case_43_odd_spellings_of_a_name_are_refused() {
    assert!(parse("20261012T095841.517Z-e7.db.age").is_some());
    let bad = [
        // Times.
        "20261012T235960.000Z-e7.db.age",
        "20261012T240000.000Z-e7.db.age",
        "20260230T095841.517Z-e7.db.age",
        "20261312T095841.517Z-e7.db.age",
        "20261000T095841.517Z-e7.db.age",
        "100000101T000000.000Z-e7.db.age",
        "19691231T235959.999Z-e7.db.age",
        "00000101T000000.000Z-e7.db.age",
        "20261012T095841Z-e7.db.age",
        "20261012T095841.51Z-e7.db.age",
        "20261012T095841.5170Z-e7.db.age",
        "20261012T095841,517Z-e7.db.age",
        "20261012T095841.517+00:00-e7.db.age",
        "20261012T095841.517+0000-e7.db.age",
        "20261012T095841.517z-e7.db.age",
        "20261012t095841.517Z-e7.db.age",
        "20261012 095841.517Z-e7.db.age",
        "2026-10-12T09:58:41.517Z-e7.db.age",
        "20261012T095841.517-e7.db.age",
        "2026101\u{0662}T095841.517Z-e7.db.age",
        "+2026101T095841.517Z-e7.db.age",
        // Epochs.
        "20261012T095841.517Z-e0.db.age",
        "20261012T095841.517Z-e07.db.age",
        "20261012T095841.517Z-e.db.age",
        "20261012T095841.517Z-e+7.db.age",
        "20261012T095841.517Z-e-7.db.age",
        "20261012T095841.517Z-e7.0.db.age",
        "20261012T095841.517Z-e0x7.db.age",
        "20261012T095841.517Z-E7.db.age",
        "20261012T095841.517Z-e18446744073709551616.db.age",
        "20261012T095841.517Z-e99999999999999999999999.db.age",
        "20261012T095841.517Z.db.age",
        // Suffixes.
        "20261012T095841.517Z-e7-.db.age",
        "20261012T095841.517Z-e7-00000000000000a.db.age",
        "20261012T095841.517Z-e7-00000000000000abc.db.age",
        "20261012T095841.517Z-e7-00000000000000AB.db.age",
        "20261012T095841.517Z-e7-0000000000000+ab.db.age",
        "20261012T095841.517Z-e7-00000000000000ab-1.db.age",
        // The rest.
        "20261012T095841.517Z-e7.db",
        "20261012T095841.517Z-e7.db.AGE",
        "20261012T095841.517Z-e7.db.age.tmp",
        "20261012T095841.517Z-e7 .db.age",
        "x/20261012T095841.517Z-e7.db.age",
        "",
    ];
    for text in bad {
        assert_eq!(parse(text), None, "{text}");
    }
    for key in [
        "mongorescue-20261012T095841.517Z-e7.db.age",
        "_mongorescue/metadata/ha/prod",
        "_mongorescue/metadata/ha/prod2/mongorescue-20261012T095841.517Z-e7.db.age",
        "_mongorescue/metadata/ha/prod/other-20261012T095841.517Z-e7.db.age",
        "_other/metadata/ha/prod/mongorescue-20261012T095841.517Z-e7.db.age",
        "_mongorescue/metadata/ha/prod/x/mongorescue-20261012T095841.517Z-e7.db.age",
        "p/_mongorescue/metadata/ha/prod/mongorescue-20261012T095841.517Z-e7.db.age",
    ] {
        assert_eq!(layout().parse(&Path::from(key)), None, "{key}");
    }
}

#[test]
fn case_43_two_snapshots_within_a_second_are_distinct_and_ordered() {
    let first = name(7, "2026-10-12T09:58:41.517Z");
    let second = SnapshotName::new(first.at().next(), first.epoch());
    assert_ne!(layout().key(&first), layout().key(&second));
    assert!(second < first, "the newer is tried first");
    assert!(second.mark() > first.mark());
    // Of one millisecond, where the keys have suffixes.
    let (a, b) = (first.with_suffix(Suffix::from_bits(1)), first.with_suffix(Suffix::from_bits(2)));
    assert_ne!(layout().key(&a), layout().key(&b));
    assert!(a != b && (a < b) != (b < a) && a.mark() == b.mark());
}

#[test]
fn times_are_cut_to_the_millisecond_and_stay_in_range() {
    let at = |nanos| SnapshotTime::from_wall(fencing::WallTime::from_unix_nanos(nanos)).to_string();
    assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
    assert_eq!(at(1_791_799_200_123_999_999), "2026-10-12T10:00:00.123Z");
    assert_eq!(at(u64::MAX), "2554-07-21T23:34:33.709Z");
    assert_eq!(SnapshotTime::MAX.next(), SnapshotTime::MAX);
    assert_eq!(SnapshotTime::MAX.to_string(), "9999-12-31T23:59:59.999Z");
    assert_eq!(
        name(1, "2026-12-31T23:59:59.999Z").at().next().to_string(),
        "2027-01-01T00:00:00.000Z"
    );
}

#[test]
fn the_longest_names_are_keys_that_every_store_takes() {
    let long = "a".repeat(MAX_APPLICATION_BYTES);
    let layout = Layout::new(Application::new(&long).unwrap(), ClusterName::new(&long).unwrap());
    let name = name(u64::MAX, "9999-12-31T23:59:59.999Z").with_suffix(Suffix::from_bits(u64::MAX));
    let key = layout.key(&name);
    assert!(key.parts().all(|part| part.as_ref().len() <= lease_core::key::MAX_SEGMENT_BYTES));
    assert_eq!(layout.parse(&key), Some(name));
    assert!(Application::new(&format!("{long}a")).is_err());
}

fn names() -> impl Strategy<Value = SnapshotName> {
    let epoch = prop_oneof![1..20_u64, Just(u64::MAX), any::<u64>().prop_map(|n| n.max(1))];
    let suffix = proptest::option::of(any::<u64>());
    (any::<u64>(), epoch, suffix).prop_map(|(nanos, epoch, suffix)| {
        let at = SnapshotTime::from_wall(fencing::WallTime::from_unix_nanos(nanos));
        let name = SnapshotName::new(at, Epoch::new(epoch).unwrap());
        suffix.map_or(name, |bits| name.with_suffix(Suffix::from_bits(bits)))
    })
}

proptest! {
    #[test]
    fn names_round_trip(name in names()) {
        let key = layout().key(&name);
        prop_assert_eq!(layout().parse(&key), Some(name));
        prop_assert_eq!(Path::parse(key.as_ref()).unwrap(), key.clone());
        prop_assert_eq!(name.at().to_string().parse(), Ok(name.at()));
    }

    #[test]
    fn what_parses_is_spelled_as_it_is_written(text in "[0-9TZe.+-]{18,30}|[0-9]{8}T[0-9]{6}\\.[0-9]{3}Z-e[0-9]{1,21}(-[0-9a-f]{16})?") {
        let key = Path::from(format!("{PREFIX}{text}.db.age"));
        if let Some(name) = layout().parse(&key) {
            prop_assert_eq!(layout().key(&name), key);
        }
    }

    #[test]
    fn takeover_order_is_epoch_then_time_newest_first(a in names(), b in names()) {
        let key = |name: &SnapshotName| (name.epoch().as_u64(), name.at().to_string());
        prop_assert_eq!(a.mark().cmp(&b.mark()), key(&a).cmp(&key(&b)));
        if a.mark() != b.mark() {
            prop_assert_eq!(a.cmp(&b), b.mark().cmp(&a.mark()));
        }
        prop_assert_eq!(a.cmp(&b).is_eq(), a == b);
    }
}
