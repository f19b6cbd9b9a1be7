//! Names never go back within an epoch, and nobody's object is overwritten.

use crate::{
    MIB, SINGLE_PUT_MAX, Tenure, database, source,
    support::{
        CIPHER, epoch, layout,
        watched::{Mode, Op, Watched},
    },
};
use futures_executor::block_on;
use snapshot_format::{
    Catalog,
    catalog::Verdict,
    name::SnapshotTime,
    stream::Headerless,
    writer::{PART_BYTES, WriteError},
};
use std::{future::pending, time::Duration};

#[test]
fn what_is_written_is_verified_and_comes_back() {
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
        for bytes in [0, 1, SINGLE_PUT_MAX, SINGLE_PUT_MAX + 1, 6 * MIB] {
            let stored = writer.write(&tenure.fence(), source(bytes), pending()).await.unwrap();
            assert_eq!(stored.database_bytes, bytes as u64);
            assert_eq!(stored.key, layout().key(&stored.header.name()));
            assert_eq!(stored.header.suffix.is_some(), bytes > SINGLE_PUT_MAX, "{bytes}");
            assert_eq!(writer.last(), Some(stored.header.name().mark()));

            let listed = catalog.list().await.unwrap().snapshots.remove(0);
            assert_eq!((&listed.key, listed.size), (&stored.key, stored.sealed_bytes));
            assert_eq!(catalog.check(&listed).await, Verdict::Verified(stored.header.clone()));
            let restored = catalog.restore(&listed, Headerless::Refuse, Vec::new()).await;
            assert!(restored.unwrap().1 == database(bytes), "{bytes}");
        }
    });
}

#[test]
fn case_43_names_of_an_epoch_are_later_each_time_whatever_the_clock_does() {
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let mut last = None;
        for step in 0..6 {
            match step {
                2 => tenure.clock.jump_wall(-3_600),
                4 => tenure.clock.advance(Duration::from_millis(3)),
                _ => {}
            }
            let stored = writer.write(&tenure.fence(), source(1), pending()).await.unwrap();
            let mark = stored.header.name().mark();
            assert!(Some(mark) > last, "{mark} after {last:?}");
            last = Some(mark);
        }
        let listing = Catalog::new(store.shared(), layout(), CIPHER.clone()).list().await.unwrap();
        assert_eq!(listing.snapshots.len(), 6);
        // A second writer of the tenure is told where to go on; a later epoch starts anew.
        let mut second = tenure.writer(&store).after(last.unwrap());
        let stored = second.write(&tenure.fence(), source(1), pending()).await.unwrap();
        assert!(Some(stored.header.name().mark()) > last);
        let next = Tenure::of_epoch(8);
        let stored = second.write(&next.fence(), source(1), pending()).await.unwrap();
        assert_eq!(stored.header.epoch, epoch(8));
    });
}

#[test]
fn a_small_one_is_created_only_if_its_key_is_absent() {
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let at = SnapshotTime::from_wall(tenure_wall(&tenure));
        let taken = layout().key(&snapshot_format::name::SnapshotName::new(at, epoch(7)));
        store.plant(&taken, "of somebody else").await;
        let error = writer.write(&tenure.fence(), source(9), pending()).await.unwrap_err();
        assert!(matches!(&error, WriteError::Taken { key } if *key == taken), "{error}");
        let puts: Vec<_> =
            store.seen().into_iter().filter(|op| matches!(op, Op::Put(..))).collect();
        assert_eq!(puts, [Op::Put(taken.clone(), Mode::Create)]);
        let kept = store.behind().get_opts(&taken, Default::default()).await.unwrap();
        assert_eq!(kept.bytes().await.unwrap(), "of somebody else");
        // The next one has another key.
        writer.write(&tenure.fence(), source(9), pending()).await.unwrap();
    });
}

fn tenure_wall(tenure: &Tenure) -> snapshot_format::fencing::WallTime {
    use snapshot_format::fencing::Clock as _;
    tenure.clock.reading().wall
}

#[test]
fn a_large_one_goes_in_equal_parts_under_a_key_that_was_seen_to_be_absent() {
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let stored = writer.write(&tenure.fence(), source(11 * MIB), pending()).await.unwrap();
        let key = stored.key.clone();
        let rest = usize::try_from(stored.sealed_bytes).unwrap() - 2 * PART_BYTES;
        assert_eq!(
            store.seen(),
            [
                Op::Head(key.clone()),
                Op::Begin(key.clone()),
                Op::Part(PART_BYTES),
                Op::Part(PART_BYTES),
                Op::Part(rest),
                Op::Complete,
            ]
        );
        // Another one of the very same moment would have another key.
        let again =
            tenure.writer(&store).write(&tenure.fence(), source(MIB), pending()).await.unwrap();
        assert_eq!(again.header.created_at, stored.header.created_at);
        assert_ne!(again.key, key);
    });
}
