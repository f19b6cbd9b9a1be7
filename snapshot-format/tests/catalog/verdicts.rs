//! Every page or nothing; a verdict on each, in takeover order.

use crate::support::{
    CIPHER, header, layout, layout_of, name, sealed, sealed_by_another, snapshot,
    watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use snapshot_format::{
    Catalog,
    catalog::{CatalogError, Refusal, Uncheckable, Verdict},
    cipher::Unopenable,
    header::{BadHeader, Header},
    lease_core::key::ClusterName,
    name::{SnapshotName, Suffix},
};

fn catalog(store: &Watched) -> Catalog {
    Catalog::new(store.shared(), layout(), CIPHER.clone())
}

/// The verdict on an object of this content under this name.
fn verdict(under: SnapshotName, content: Vec<u8>) -> Verdict {
    block_on(async {
        let store = Watched::new();
        store.plant(&layout().key(&under), content).await;
        let catalog = catalog(&store);
        let listing = catalog.list().await.unwrap();
        assert_eq!(listing.snapshots.len(), 1);
        catalog.check(&listing.snapshots[0]).await
    })
}

fn with_header(change: impl FnOnce(&mut Header)) -> Vec<u8> {
    let mut header = header(name(7, 0));
    change(&mut header);
    sealed(&[header.encode(layout().application()).as_bytes(), b"database"].concat())
}

#[test]
fn case_40_the_newest_is_found_on_the_third_page_by_its_number() {
    block_on(async {
        let store = Watched::new();
        // InMemory lists by key: the newest is the last of 2 501, and sorts in the middle as text.
        for millis in 0..2_500 {
            store.plant(&layout().key(&name(9, millis)), "x").await;
        }
        let newest = name(10, 2_500);
        store.plant(&layout().key(&newest), snapshot(newest, b"database")).await;
        store.plant(&layout().prefix().join("Z.BAK"), "x").await;

        let catalog = catalog(&store);
        let listing = catalog.list().await.unwrap();
        assert_eq!(store.seen(), [Op::Page(1), Op::Page(2), Op::Page(3)]);
        assert_eq!(listing.snapshots.len(), 2_501);
        assert_eq!(listing.others, [layout().prefix().join("Z.BAK")]);
        assert_eq!(listing.snapshots[0].name, newest);
        assert!(listing.snapshots.is_sorted_by_key(|listed| listed.name));
        let first = catalog.walk(&listing).next().await.unwrap();
        assert_eq!(first.verdict, Verdict::Verified(header(newest)));
    });
}

#[test]
fn case_40_a_page_that_fails_fails_the_whole() {
    block_on(async {
        let store = Watched::new();
        for millis in 0..2_501 {
            store.plant(&layout().key(&name(9, millis)), "x").await;
        }
        let catalog = catalog(&store);
        for page in 1..=3 {
            store.on(move |op| if *op == Op::Page(page) { Act::Fail(broken()) } else { Act::Pass });
            let error = catalog.list().await.unwrap_err();
            assert!(matches!(error, CatalogError::List { .. }), "{error}");
            assert!(catalog.highest_epoch().await.is_err());
            assert!(catalog.check_secret().await.is_err());
        }
        store.heal();
        assert_eq!(catalog.list().await.unwrap().snapshots.len(), 2_501);
    });
}

#[test]
fn case_43_a_copy_under_another_name_is_refused() {
    let genuine = || snapshot(name(12, 5), b"database");
    assert_eq!(verdict(name(12, 5), genuine()), Verdict::Verified(header(name(12, 5))));
    let refused = |under| match verdict(under, genuine()) {
        Verdict::Refused(why) => {
            assert!(why.shows_a_header());
            why
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(name(13, 5)), Refusal::OtherEpoch { header: name(12, 5).epoch() });
    assert_eq!(refused(name(12, 6)), Refusal::OtherTime { header: name(12, 5).at() });
    let suffixed = name(12, 5).with_suffix(Suffix::from_bits(7));
    assert_eq!(refused(suffixed), Refusal::OtherSuffix);
    let other = suffixed.with_suffix(Suffix::from_bits(8));
    let copy = verdict(other, snapshot(suffixed, b"database"));
    assert_eq!(copy, Verdict::Refused(Refusal::OtherSuffix));
    let bare = verdict(name(12, 5), snapshot(suffixed, b"database"));
    assert_eq!(bare, Verdict::Refused(Refusal::OtherSuffix));
}

#[test]
fn case_43_a_snapshot_of_another_cluster_or_application_is_refused() {
    let other = with_header(|header| header.cluster = ClusterName::new("c2").unwrap());
    let verdict_on_other = verdict(name(7, 0), other);
    assert_eq!(verdict_on_other, Verdict::Refused(Refusal::OtherCluster));
    assert!(!verdict_on_other.shows_a_header(), "it is none of this cluster's");

    let bills = layout_of("bills", "prod");
    let text = header(name(7, 0)).encode(bills.application());
    let refused = verdict(name(7, 0), sealed(text.as_bytes()));
    assert_eq!(refused, Verdict::Refused(Refusal::OtherApplication));
}

#[test]
fn what_the_secret_does_not_open_is_refused() {
    let does_not_open = |content: Vec<u8>| match verdict(name(7, 0), content) {
        Verdict::Refused(Refusal::DoesNotOpen { why }) => why,
        other => panic!("{other:?}"),
    };
    let text = header(name(7, 0)).encode(layout().application());
    assert_eq!(does_not_open(sealed_by_another(text.as_bytes())), Unopenable::WrongSecret);
    assert_eq!(does_not_open(text.into_bytes()), Unopenable::NotSealed);
    assert_eq!(does_not_open(Vec::new()), Unopenable::Cut);
    assert_eq!(does_not_open(b"age-encryption.org/v1\n".to_vec()), Unopenable::Cut);
    let genuine = snapshot(name(7, 0), b"database");
    for length in 1..genuine.len() {
        does_not_open(genuine[..length].to_vec());
    }
    for at in 0..genuine.len() {
        let mut altered = genuine.clone();
        altered[at] ^= 1;
        does_not_open(altered);
    }
    assert_eq!(does_not_open([&*genuine, b"x"].concat()), Unopenable::Altered);
}

#[test]
fn a_start_that_is_none_is_told_from_a_newer_format_and_from_none_at_all() {
    let start = |text: &[u8]| verdict(name(7, 0), sealed(text));
    assert_eq!(start(b"SQLite format 3\0 and more"), Verdict::Legacy);
    let newer = start(b"orders-ha-snapshot\n{\"format\":2}\n");
    assert_eq!(newer, Verdict::Unchecked(Uncheckable::NewerFormat { format: 2 }));
    assert!(newer.shows_a_header());
    let endless = [b"orders-ha-snapshot\n", &[b' '; 70_000][..]].concat();
    let why = BadHeader::NoLineBreak;
    assert_eq!(start(&endless), Verdict::Refused(Refusal::BadHeader { why }));
    assert_eq!(start(b""), Verdict::Refused(Refusal::BadHeader { why: BadHeader::Cut }));
    assert!(matches!(
        start(b"orders-ha-snapshot\n\xff\n"),
        Verdict::Refused(Refusal::BadHeader { why: BadHeader::Unreadable(_) })
    ));
}

#[test]
fn a_database_of_any_size_is_verified_by_its_start() {
    let chunk = 64 * 1024 - header(name(7, 0)).encode(layout().application()).len();
    for size in [0, 1, chunk - 1, chunk, chunk + 1, 2 * 64 * 1024 + chunk, 500_000] {
        let found = verdict(name(7, 0), snapshot(name(7, 0), &vec![b'x'; size]));
        assert_eq!(found, Verdict::Verified(header(name(7, 0))), "{size}");
    }
}

#[test]
fn what_fails_to_be_read_is_unchecked_until_it_is_read() {
    block_on(async {
        let store = Watched::new();
        store.plant(&layout().key(&name(7, 0)), snapshot(name(7, 0), b"database")).await;
        let catalog = catalog(&store);
        let listing = catalog.list().await.unwrap();
        store.on(|_| Act::Fail(broken()));
        for _ in 0..2 {
            let found = catalog.check(&listing.snapshots[0]).await;
            assert!(matches!(found, Verdict::Unchecked(Uncheckable::Store(_))), "{found:?}");
            assert!(!found.shows_a_header());
        }
        store.heal();
        let found = catalog.check(&listing.snapshots[0]).await;
        assert_eq!(found, Verdict::Verified(header(name(7, 0))));
    });
}

#[test]
fn what_changed_since_it_was_listed_is_unchecked() {
    block_on(async {
        let store = Watched::new();
        let key = layout().key(&name(7, 0));
        store.plant(&key, snapshot(name(7, 0), b"database")).await;
        let catalog = catalog(&store);
        let listing = catalog.list().await.unwrap();
        // The same size, another version.
        store.plant(&key, snapshot(name(7, 0), b"DATABASE")).await;
        let found = catalog.check(&listing.snapshots[0]).await;
        assert_eq!(found, Verdict::Unchecked(Uncheckable::Changed));
        let listing = catalog.list().await.unwrap();
        let found = catalog.check(&listing.snapshots[0]).await;
        assert_eq!(found, Verdict::Verified(header(name(7, 0))));
    });
}

#[test]
fn what_lies_deeper_is_no_snapshot_and_shows_that_the_cluster_is_not_new() {
    block_on(async {
        let store = Watched::new();
        let deep = layout().prefix().join("x").join("orders-20260101T000000.000Z-e7.db.age");
        store.plant(&deep, "x").await;
        store.plant(&layout_of("orders", "prod2").key(&name(7, 0)), "x").await;
        let listing = catalog(&store).list().await.unwrap();
        assert_eq!((listing.snapshots.len(), &listing.others), (0, &vec![deep]));
        assert!(!listing.is_empty());
    });
}
