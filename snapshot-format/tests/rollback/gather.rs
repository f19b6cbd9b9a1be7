//! Collecting what a decision needs, and what that costs.

use crate::support::{
    CIPHER, layout, name, sealed, sealed_by_another, snapshot,
    watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use snapshot_format::{
    Catalog,
    catalog::{CatalogError, PAGE, Verdict},
};

fn catalog(store: &Watched) -> Catalog {
    Catalog::new(store.shared(), layout(), CIPHER.clone())
}

#[test]
fn five_thousand_snapshots_cost_the_planted_ones_and_two_pages_once() {
    block_on(async {
        let store = Watched::new();
        let genuine = snapshot(name(9, 0), b"a database");
        for number in 0..4_900 {
            let name = name(9, number);
            // Only two of them are ever looked at: the newest.
            let content =
                if number > 4_880 { snapshot(name, b"a database") } else { genuine.clone() };
            store.plant(&layout().key(&name), content).await;
        }
        let planted = sealed_by_another(b"mine");
        for number in 0..100 {
            store.plant(&layout().key(&name(900 + number, 0)), planted.clone()).await;
        }
        let catalog = catalog(&store);
        let snapshots = catalog.takeover_snapshots(None).await.unwrap();
        let first = store.reads();
        let verified: Vec<_> =
            snapshots.checked().iter().filter(|it| it.verdict.verified().is_some()).collect();
        assert_eq!(verified.len(), 2);
        assert_eq!(verified[0].listed.name, name(9, 4_899));
        catalog.takeover_snapshots(None).await.unwrap();
        let second = store.reads();
        println!("{first} headers read the first time, {second} the second, of 5000 snapshots");
        assert!((102..=101 + PAGE).contains(&first), "{first}");
        assert_eq!(second, 0);
    });
}

#[test]
fn without_a_verified_one_all_are_looked_at() {
    block_on(async {
        let store = Watched::new();
        for number in 0..20 {
            store.plant(&layout().key(&name(1, number)), sealed(b"no header")).await;
        }
        store.plant(&layout().prefix().join("notes.txt"), "").await;
        let snapshots = catalog(&store).takeover_snapshots(None).await.unwrap();
        assert_eq!(snapshots.checked().len(), 20);
        assert!(snapshots.checked().iter().all(|it| it.verdict == Verdict::Legacy));
        assert!(!snapshots.is_empty());
    });
    block_on(async {
        let store = Watched::new();
        assert!(catalog(&store).takeover_snapshots(None).await.unwrap().is_empty());
        // Somebody's file alone shows that the cluster is not new.
        store.plant(&layout().prefix().join("notes.txt"), "").await;
        let snapshots = catalog(&store).takeover_snapshots(None).await.unwrap();
        assert!(snapshots.checked().is_empty() && !snapshots.is_empty());
    });
}

#[test]
fn an_operator_s_snapshot_is_looked_at_however_old_it_is() {
    block_on(async {
        let store = Watched::new();
        for number in 0..30 {
            let name = name(9, number);
            store.plant(&layout().key(&name), snapshot(name, b"a database")).await;
        }
        let (old, gone) = (layout().key(&name(9, 3)), layout().key(&name(3, 3)));
        let snapshots = catalog(&store).takeover_snapshots(Some(&old)).await.unwrap();
        let found = snapshots.checked().iter().find(|it| it.listed.key == old).unwrap();
        assert!(found.verdict.verified().is_some());
        assert_eq!(snapshots.checked().len(), 3);
        assert_eq!(
            catalog(&store).takeover_snapshots(Some(&gone)).await.unwrap().checked().len(),
            2
        );
    });
}

#[test]
fn case_40_a_page_that_fails_is_no_fact() {
    block_on(async {
        let store = Watched::new();
        for number in 0..2_501 {
            store.plant(&layout().key(&name(9, number)), "junk").await;
        }
        store.on(|op| match op {
            Op::Page(2) => Act::Fail(broken()),
            _ => Act::Pass,
        });
        let error = catalog(&store).takeover_snapshots(None).await.unwrap_err();
        assert!(matches!(error, CatalogError::List { .. }), "{error}");
        assert_eq!(store.reads(), 0);
    });
}

#[test]
fn one_that_cannot_be_read_is_a_fact() {
    block_on(async {
        let store = Watched::new();
        for number in 0..3 {
            let name = name(9, number);
            store.plant(&layout().key(&name), snapshot(name, b"a database")).await;
        }
        let newest = layout().key(&name(9, 2));
        store.on(move |op| match op {
            Op::Get(key, _) if *key == newest => Act::Fail(broken()),
            _ => Act::Pass,
        });
        let catalog = catalog(&store);
        let snapshots = catalog.takeover_snapshots(None).await.unwrap();
        assert!(matches!(snapshots.checked()[0].verdict, Verdict::Unchecked(_)));
        assert_eq!(snapshots.checked().len(), 3);
        store.heal();
        let snapshots = catalog.takeover_snapshots(None).await.unwrap();
        assert_eq!(snapshots.checked().len(), 2, "asked again, it answers");
    });
}
