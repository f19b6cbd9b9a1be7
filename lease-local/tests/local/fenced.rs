//! Fenced objects in a directory.

use crate::{
    key,
    resource::{Fenced, matches_the_model},
    run,
    support::test,
};
use fencing::Epoch;
use lease_core::{LeaseStore as _, StoreErrorKind, fenced::FencedObject, store::MAX_OBJECT_BYTES};
use lease_local::LocalStore;
use libtest_mimic::Trial;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("a_fenced_object_in_a_directory_is_the_model", model),
        test("the_limit_of_what_is_read_is_an_option", larger),
    ]
}

fn model() {
    let scratch = tempfile::tempdir().unwrap();
    let store = LocalStore::open(scratch.path()).unwrap();
    let mut fresh = 0;
    matches_the_model(48, || {
        fresh += 1;
        Fenced::new(store.clone(), &format!("orders/balance-{fresh}"))
    });
}

fn larger() {
    let scratch = tempfile::tempdir().unwrap();
    let limit = 1 << 20;
    let store = LocalStore::options(scratch.path()).max_object_bytes(limit).open().unwrap();
    assert_eq!(store.max_object_bytes(), limit);
    run(async {
        let object = FencedObject::new(store.clone(), key("large"));
        let content = vec![b'x'; limit - 256];
        object.put(Epoch::MIN, content.clone()).await.unwrap();
        assert_eq!(object.read().await.unwrap().unwrap().content.unwrap(), content);
        assert_eq!(object.seal(Epoch::MAX).await.unwrap().content.unwrap(), content);
        let large = store.create_if_absent(&key("larger"), vec![b'x'; limit + 1].into()).await;
        assert_eq!(large.unwrap_err().kind(), StoreErrorKind::Unavailable);

        // One that was opened as ever reads no more than ever; and a smaller limit is none.
        let ordinary = LocalStore::options(scratch.path()).max_object_bytes(1).open().unwrap();
        assert_eq!(ordinary.max_object_bytes(), MAX_OBJECT_BYTES);
        let read = ordinary.read_versioned(&key("large"), None).await;
        assert_eq!(read.unwrap_err().kind(), StoreErrorKind::Corrupt);
    });
}
