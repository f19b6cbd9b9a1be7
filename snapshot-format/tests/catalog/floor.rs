//! What the snapshots prove to a lease.

use crate::support::{
    CIPHER, epoch, layout, name, sealed, sealed_by_another, secret, snapshot,
    watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use lease_core::{
    LeaseManager, Timing,
    machine::{EpochOrigin, FirstStart},
    testing::MemoryStore,
};
use snapshot_format::{
    Catalog,
    catalog::{CatalogError, SecretCheck, Uncheckable},
    cipher::Cipher,
};
use std::{sync::Arc, time::Duration};

fn catalog(store: &Watched) -> Catalog {
    Catalog::new(store.shared(), layout(), CIPHER.clone())
}

#[test]
fn case_32_only_what_is_verified_proves_an_epoch() {
    block_on(async {
        let store = Watched::new();
        assert_eq!(catalog(&store).highest_epoch().await.unwrap(), None);
        store.plant(&layout().key(&name(u64::MAX, 0)), "planted").await;
        store.plant(&layout().key(&name(900, 0)), snapshot(name(15, 0), b"x")).await;
        store.plant(&layout().key(&name(800, 0)), sealed(b"a legacy database")).await;
        assert_eq!(catalog(&store).highest_epoch().await.unwrap(), None);
        store.plant(&layout().key(&name(15, 0)), snapshot(name(15, 0), b"x")).await;
        store.plant(&layout().key(&name(9, 7)), snapshot(name(9, 7), b"x")).await;
        assert_eq!(catalog(&store).highest_epoch().await.unwrap(), Some(epoch(15)));
    });
}

#[test]
fn case_32_one_that_cannot_be_checked_and_may_be_higher_leaves_it_open() {
    block_on(async {
        let store = Watched::new();
        store.plant(&layout().key(&name(15, 0)), snapshot(name(15, 0), b"x")).await;
        let newer = layout().key(&name(16, 0));
        store.plant(&newer, snapshot(name(16, 0), b"x")).await;
        let catalog = catalog(&store);
        let failing = newer.clone();
        store.on(move |op| match op {
            Op::Get(key, _) if *key == failing => Act::Fail(broken()),
            _ => Act::Pass,
        });
        let error = catalog.highest_epoch().await.unwrap_err();
        assert!(matches!(&error, CatalogError::Undecided { listed, .. } if listed.key == newer));
        store.heal();
        assert_eq!(catalog.highest_epoch().await.unwrap(), Some(epoch(16)));

        store
            .plant(&layout().key(&name(17, 0)), sealed(b"orders-ha-snapshot\n{\"format\":2}\n"))
            .await;
        let error = catalog.highest_epoch().await.unwrap_err();
        let CatalogError::Undecided { why, .. } = error else { panic!("{error}") };
        assert_eq!(why, Uncheckable::NewerFormat { format: 2 });
        // What sorts behind a verified one does not matter.
        let older = layout().key(&name(3, 0));
        store.plant(&older, snapshot(name(3, 0), b"x")).await;
        store.plant(&layout().key(&name(18, 0)), snapshot(name(18, 0), b"x")).await;
        store.on(move |op| match op {
            Op::Get(key, _) if *key == older => Act::Fail(broken()),
            _ => Act::Pass,
        });
        assert_eq!(catalog.highest_epoch().await.unwrap(), Some(epoch(18)));
    });
}

#[tokio::test]
async fn case_32_a_lease_is_acquired_above_what_snapshots_prove_and_not_while_that_is_open() {
    let store = Watched::new();
    store.plant(&layout().key(&name(15, 0)), snapshot(name(15, 0), b"x")).await;
    store.plant(&layout().key(&name(u64::MAX, 0)), "planted").await;
    let catalog = catalog(&store);
    store.on(|op| if matches!(op, Op::Page(_)) { Act::Fail(broken()) } else { Act::Pass });

    let scratch = tempfile::tempdir().unwrap();
    let lease = LeaseManager::builder(MemoryStore::new(), "prod")
        .timing(Timing::short(Duration::from_millis(500), Duration::from_millis(50)).unwrap())
        .instance_dir(scratch.path().join("instance"))
        .first_start(FirstStart::Immediate)
        .epochs(EpochOrigin::Counter)
        .epoch_floor(catalog.epoch_floor(), Duration::from_secs(5))
        .start()
        .await
        .unwrap();
    let mut acquire = std::pin::pin!(lease.acquire());
    // Asked at least twice, and told nothing.
    let mut asked = 0;
    while asked < 2 {
        let soon = tokio::time::timeout(Duration::from_millis(20), &mut acquire).await;
        assert!(soon.is_err(), "acquired while the floor cannot be told");
        asked += store.seen().len();
    }
    store.heal();
    let tenure = tokio::time::timeout(Duration::from_secs(30), acquire).await.unwrap().unwrap();
    assert_eq!(tenure.epoch(), epoch(16));
}

#[test]
fn an_instance_with_another_secret_is_told_so() {
    block_on(async {
        let store = Watched::new();
        let ours = catalog(&store);
        assert_eq!(ours.check_secret().await.unwrap(), SecretCheck::NothingSealed);
        store.plant(&layout().key(&name(9, 0)), "planted").await;
        assert_eq!(ours.check_secret().await.unwrap(), SecretCheck::NothingSealed);
        store.plant(&layout().key(&name(8, 0)), sealed_by_another(b"planted")).await;
        assert_eq!(ours.check_secret().await.unwrap(), SecretCheck::Foreign);
        store.plant(&layout().key(&name(7, 0)), snapshot(name(7, 0), b"x")).await;
        assert_eq!(ours.check_secret().await.unwrap(), SecretCheck::Opens);

        let third = Cipher::new(&secret(3));
        let other = Catalog::new(Arc::new(store.clone()), layout(), third);
        assert_eq!(other.check_secret().await.unwrap(), SecretCheck::Foreign);
        let failing = layout().key(&name(7, 0));
        let other = Catalog::new(Arc::new(store.clone()), layout(), Cipher::new(&secret(3)));
        store.on(move |op| match op {
            Op::Get(key, _) if *key == failing => Act::Fail(broken()),
            _ => Act::Pass,
        });
        assert!(other.check_secret().await.is_err(), "the one that cannot be read may open");
    });
}
