//! One read for each stored version, however many decisions ask.

use crate::support::{
    CIPHER, header, layout, name, snapshot,
    watched::{Op, Watched},
};
use futures_executor::block_on;
use futures_util::future::join_all;
use snapshot_format::{
    Catalog,
    catalog::{PAGE, SecretCheck, Verdict},
    cipher::MAX_SEALED_START_BYTES,
};

/// What a takeover does: it reads until one is verified.
async fn first_verified(catalog: &Catalog) -> (Verdict, usize) {
    let listing = catalog.list().await.unwrap();
    let mut walk = catalog.walk(&listing);
    let mut refused = 0;
    loop {
        match walk.next().await.expect("there is a genuine one").verdict {
            Verdict::Refused(_) => refused += 1,
            verdict => return (verdict, refused),
        }
    }
}

#[test]
fn five_thousand_snapshots_of_which_a_hundred_are_planted_cost_101_reads_and_then_none() {
    block_on(async {
        let store = Watched::new();
        for millis in 0..4_900 {
            let genuine = name(7, millis);
            store.plant(&layout().key(&genuine), snapshot(genuine, b"database")).await;
        }
        // All of them sort before the newest genuine one: renamed copies, and garbage.
        let copy = snapshot(name(7, 0), b"database");
        for epoch in 1_000..1_050 {
            store.plant(&layout().key(&name(epoch, 0)), copy.clone()).await;
            store.plant(&layout().key(&name(u64::MAX, epoch)), vec![b'x'; 100_000]).await;
        }

        let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
        let newest = Verdict::Verified(header(name(7, 4_899)));
        assert_eq!(first_verified(&catalog).await, (newest.clone(), 100));
        let seen = store.seen();
        let ranges: Vec<_> = seen
            .iter()
            .filter_map(|op| match op {
                Op::Get(_, range) => Some(range.clone().expect("a range")),
                _ => None,
            })
            .collect();
        println!(
            "first decision: {} pages, {} header reads",
            seen.len() - ranges.len(),
            ranges.len()
        );
        assert!((101..=101 + PAGE).contains(&ranges.len()), "{}", ranges.len());
        assert!(ranges.iter().all(|range| range.end <= MAX_SEALED_START_BYTES as u64));

        // Every other decision, too.
        assert_eq!(first_verified(&catalog).await, (newest, 100));
        assert_eq!(catalog.highest_epoch().await.unwrap().unwrap().as_u64(), 7);
        assert_eq!(catalog.check_secret().await.unwrap(), SecretCheck::Opens);
        let reads = store.reads();
        println!("three more decisions: {reads} header reads");
        assert_eq!(reads, 0);

        // A new one costs one, and a page at most.
        let newer = name(7, 5_000);
        store.plant(&layout().key(&newer), snapshot(newer, b"database")).await;
        assert_eq!(first_verified(&catalog).await.0, Verdict::Verified(header(newer)));
        assert_eq!(store.reads(), 1);
    });
}

#[test]
fn decisions_at_the_same_time_read_each_header_once() {
    block_on(async {
        let store = Watched::new();
        for millis in 0..20 {
            store.plant(&layout().key(&name(7, millis)), "planted").await;
        }
        let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
        let listing = catalog.list().await.unwrap();
        let decisions = (0..5).map(|_| catalog.walk(&listing).rest());
        let all = join_all(decisions).await;
        assert!(all.iter().all(|checked| checked.len() == 20 && *checked == all[0]));
        assert_eq!(store.reads(), 20);
    });
}

#[test]
fn another_version_under_the_same_key_is_read_again() {
    block_on(async {
        let store = Watched::new();
        let key = layout().key(&name(7, 0));
        let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
        for content in [snapshot(name(7, 0), b"a"), snapshot(name(7, 0), b"b")] {
            store.plant(&key, content).await;
            for _ in 0..3 {
                assert!(first_verified(&catalog).await.0.verified().is_some());
            }
            assert_eq!(store.reads(), 1);
        }
    });
}

#[test]
fn an_empty_object_costs_no_read() {
    block_on(async {
        let store = Watched::new();
        store.plant(&layout().key(&name(7, 0)), "").await;
        let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
        let listing = catalog.list().await.unwrap();
        assert!(matches!(catalog.check(&listing.snapshots[0]).await, Verdict::Refused(_)));
        assert_eq!(store.reads(), 0);
    });
}
