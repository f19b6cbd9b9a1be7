//! What this driver owes beyond the conformance suite, on a healthy directory.

use crate::{ALL_UNAVAILABLE, all_three, found, key, run, support::test};
use fencing::durable::LockFile;
use lease_core::{LeaseStore, Read, StoreError, StoreErrorKind, Version};
use lease_local::{LocalStore, OpenError};
use libtest_mimic::Trial;
use std::{
    fs,
    task::{Context, Poll, Waker},
    time::Duration,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("conditional_writes_and_reads", conditional),
        test("only_one_of_many_creates_wins", one_create_wins),
        test("a_dropped_write_does_not_land", dropped_write),
        test("waiting_writes_do_not_use_up_the_threads", waiting_writes),
        test("without_a_runtime_nothing_is_touched", no_runtime),
        test("a_runtime_that_shuts_down_leaves_the_store_unavailable", runtime_gone),
        test("a_missing_root_is_not_a_missing_object", missing_root),
        test("a_moved_root_is_not_followed_nor_its_successor_used", moved_root),
        test("the_root_is_created_one_level_deep", root_is_created),
        test("debug_shows_the_root", debug),
        test("case_19_the_longest_key_fits_and_stays_below_the_root", longest_key),
        test("case_37_an_oversize_object_is_corrupt_and_can_be_replaced", oversize),
        test("case_37_what_is_too_large_is_not_written", too_large),
    ]
}

fn conditional() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    run(async {
        for name in ["lease.json", "orders/lease.json", "a/b/c/d"] {
            let key = key(name);
            let kind = |error: StoreError| error.kind();
            assert_eq!(store.read_versioned(&key, None).await.unwrap(), Read::Missing);
            let none = Version::new("none");
            let gone = store.replace_if_match(&key, "x".into(), &none).await.map_err(kind);
            assert_eq!(gone, Err(StoreErrorKind::Precondition));

            let first = store.create_if_absent(&key, "one".into()).await.unwrap();
            let again = store.create_if_absent(&key, "two".into()).await.map_err(kind);
            assert_eq!(again, Err(StoreErrorKind::Precondition));
            assert_eq!(found(&store, &key).await, (b"one".to_vec(), first.clone()));

            let second = store.replace_if_match(&key, "two".into(), &first).await.unwrap();
            assert_ne!(first, second);
            let stale = store.replace_if_match(&key, "three".into(), &first).await.map_err(kind);
            assert_eq!(stale, Err(StoreErrorKind::Precondition));
            assert_eq!(found(&store, &key).await, (b"two".to_vec(), second.clone()));
            let unless = store.read_versioned(&key, Some(&second)).await.unwrap();
            assert_eq!(unless, Read::NotModified);
            let unless = store.read_versioned(&key, Some(&first)).await.unwrap();
            assert!(matches!(unless, Read::Found { .. }));
        }
    });
}

fn one_create_wins() {
    let scratch = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for round in 0..30 {
        let created = runtime.block_on(async {
            // Handles of their own: it is the lock file that decides, not the queue in one store.
            let tries = (0..8).map(|i| {
                let store = LocalStore::open(scratch.path()).unwrap();
                tokio::spawn(async move {
                    let content = format!("{i}").into();
                    store
                        .create_if_absent(&key(&format!("round{round}/lease")), content)
                        .await
                        .is_ok()
                })
            });
            let mut created = 0;
            for one in tries.collect::<Vec<_>>() {
                created += usize::from(one.await.unwrap());
            }
            created
        });
        assert_eq!(created, 1);
    }
}

fn poll_once<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Poll<T> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn dropped_write() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    run(async {
        let key = key("lease");
        let version = store.create_if_absent(&key, "old".into()).await.unwrap();
        for _ in 0..20 {
            let lock = LockFile::acquire(&scratch.path().join("lease.lock")).unwrap();
            let mut write = store.replace_if_match(&key, "dropped".into(), &version);
            assert!(poll_once(&mut write).is_pending());
            drop(write);
            drop(lock);
            // Its turn comes when the dropped write has ended, one way or the other.
            store.replace_if_match(&key, "old".into(), &version).await.unwrap();
        }
    });
}

fn waiting_writes() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    run(async {
        let key = key("lease");
        let version = store.create_if_absent(&key, "old".into()).await.unwrap();
        let lock = LockFile::acquire(&scratch.path().join("lease.lock")).unwrap();
        let mut writes: Vec<_> =
            (0..600).map(|_| store.replace_if_match(&key, "new".into(), &version)).collect();
        // Unconstrained: tokio would let only the first hundred or so of one poll make progress.
        let polled = async { writes.iter_mut().all(|write| poll_once(write).is_pending()) };
        assert!(tokio::task::unconstrained(polled).await);
        // More than tokio has threads for blocking work: a read would wait for ever.
        let read = tokio::time::timeout(Duration::from_secs(60), found(&store, &key)).await;
        drop(lock);
        assert_eq!(read.expect("the read got a thread").0, b"old");
        let mut written = 0;
        for write in writes {
            written += usize::from(write.await.is_ok());
        }
        assert_eq!(written, 1);
    });
}

fn no_runtime() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let lease = key("lease");
    let created = poll_once(&mut store.create_if_absent(&lease, "x".into()));
    assert!(matches!(created, Poll::Ready(Err(StoreError::Unavailable(_)))), "{created:?}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

fn runtime_gone() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let _in_it = handle.enter();
    let lease = key("lease");
    let created = poll_once(&mut store.create_if_absent(&lease, "x".into()));
    assert!(matches!(created, Poll::Ready(Err(StoreError::Unavailable(_)))), "{created:?}");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0);
}

fn missing_root() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("ha");
    let store = LocalStore::open(&root).unwrap();
    fs::remove_dir(&root).unwrap();
    for name in ["lease", "orders/lease"] {
        assert_eq!(run(all_three(&store, &key(name))), ALL_UNAVAILABLE);
    }
    assert!(!root.exists(), "it is not created behind the operator's back");
}

fn moved_root() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("ha");
    let store = LocalStore::open(&root).unwrap();
    run(store.create_if_absent(&key("lease"), "old".into())).unwrap();
    // What an unmounted volume looks like: an empty directory in its place.
    fs::rename(&root, scratch.path().join("moved")).unwrap();
    fs::create_dir(&root).unwrap();
    assert_eq!(run(all_three(&store, &key("lease"))), ALL_UNAVAILABLE);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
    fs::remove_dir(&root).unwrap();
    fs::rename(scratch.path().join("moved"), &root).unwrap();
    assert_eq!(run(found(&store, &key("lease"))).0, b"old");
}

fn root_is_created() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("ha");
    let error = LocalStore::options(&root).create_root(false).open().unwrap_err();
    assert!(matches!(error, OpenError::Root { .. }), "{error}");
    assert!(!root.exists());
    let error = LocalStore::open(root.join("deeper")).unwrap_err();
    assert!(matches!(error, OpenError::CreateRoot { .. }), "{error}");
    assert!(error.to_string().contains("create its parent"), "{error}");
    LocalStore::open(&root).unwrap();
    LocalStore::options(&root).create_root(false).open().unwrap();
    fs::write(scratch.path().join("file"), b"").unwrap();
    let error = LocalStore::open(scratch.path().join("file")).unwrap_err();
    assert!(error.to_string().contains("file"), "{error}");
}

fn debug() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    assert!(format!("{store:?}").contains(scratch.path().to_str().unwrap()));
}

fn longest_key() {
    let scratch = tempfile::tempdir().unwrap();
    let root = scratch.path().join("ha");
    let store = LocalStore::open(&root).unwrap();
    let segment = "s".repeat(200);
    let longest = key(&format!("{segment}/{}/{segment}", "t".repeat(110)));
    assert_eq!(longest.as_str().len(), 512);
    run(async {
        let version = store.create_if_absent(&longest, "one".into()).await.unwrap();
        store.replace_if_match(&longest, "two".into(), &version).await.unwrap();
    });
    assert_eq!(fs::read(root.join(longest.as_str())).unwrap(), b"two");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
}

fn oversize() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let path = scratch.path().join("lease");
    let lease = key("lease");
    let limit = lease_core::store::MAX_OBJECT_BYTES;
    fs::write(&path, vec![b' '; limit]).unwrap();
    assert_eq!(run(found(&store, &lease)).0.len(), limit);

    let corrupt = || match run(store.read_versioned(&lease, None)) {
        Err(StoreError::Corrupt { version, .. }) => version,
        other => panic!("{other:?}"),
    };
    for size in [limit as u64 + 1, 1 << 30] {
        fs::File::create(&path).unwrap().set_len(size).unwrap();
        let version = corrupt();
        assert_eq!(corrupt(), version);
        let unless = run(store.read_versioned(&lease, Some(&version))).unwrap();
        assert_eq!(unless, Read::NotModified);

        // Other bytes at the beginning, then another size: another version.
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(size + 1).unwrap();
        let stale = run(store.replace_if_match(&lease, "new".into(), &version));
        assert_eq!(stale.unwrap_err().kind(), StoreErrorKind::Precondition);
        let created = run(store.create_if_absent(&lease, "new".into()));
        assert_eq!(created.unwrap_err().kind(), StoreErrorKind::Precondition);
        run(store.replace_if_match(&lease, "new".into(), &corrupt())).unwrap();
        assert_eq!(run(found(&store, &lease)).0, b"new");
    }
}

fn too_large() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let limit = lease_core::store::MAX_OBJECT_BYTES;
    run(async {
        let lease = key("lease");
        let large = store.create_if_absent(&lease, vec![1; limit + 1].into()).await;
        assert_eq!(large.unwrap_err().kind(), StoreErrorKind::Unavailable);
        let version = store.create_if_absent(&lease, vec![1; limit].into()).await.unwrap();
        let large = store.replace_if_match(&lease, vec![1; limit + 1].into(), &version).await;
        assert_eq!(large.unwrap_err().kind(), StoreErrorKind::Unavailable);
        assert_eq!(found(&store, &lease).await.1, version);
    });
}
