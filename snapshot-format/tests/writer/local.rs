//! A plain directory.

use crate::{
    MIB, SINGLE_PUT_MAX, Tenure, database, source,
    support::{CIPHER, layout, watched::Watched},
};
use snapshot_format::{Catalog, catalog::Verdict, local, stream::Headerless};
use std::{future::pending, sync::Arc};

#[tokio::test]
async fn snapshots_in_a_directory_are_files_of_the_documented_names() {
    let scratch = tempfile::tempdir().unwrap();
    let store = Watched::over(Arc::new(local::open(scratch.path()).unwrap()));
    let tenure = Tenure::of_epoch(7);
    let mut writer = tenure.writer(&store);
    let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
    assert!(catalog.list().await.unwrap().is_empty());
    for bytes in [1, SINGLE_PUT_MAX + 1, 6 * MIB] {
        let stored = writer.write(&tenure.fence(), source(bytes), pending()).await.unwrap();
        let file = scratch.path().join(stored.key.as_ref());
        assert_eq!(std::fs::metadata(file).unwrap().len(), stored.sealed_bytes);
        let listed = catalog.list().await.unwrap().snapshots.remove(0);
        assert_eq!(listed.key, stored.key);
        assert_eq!(catalog.check(&listed).await, Verdict::Verified(stored.header));
        let restored = catalog.restore(&listed, Headerless::Refuse, Vec::new()).await.unwrap();
        assert!(restored.1 == database(bytes));
    }
}

#[tokio::test]
async fn an_upload_that_is_aborted_leaves_no_file() {
    let scratch = tempfile::tempdir().unwrap();
    let store = Watched::over(Arc::new(local::open(scratch.path()).unwrap()));
    let tenure = Tenure::of_epoch(7);
    let (fence, mut writer) = (tenure.fence(), tenure.writer(&store));
    let mut tenure = Some(tenure);
    store.on(move |op| {
        if matches!(op, crate::support::watched::Op::Part(_)) {
            drop(tenure.take());
        }
        crate::support::watched::Act::Pass
    });
    writer.write(&fence, source(6 * MIB), pending()).await.unwrap_err();
    let kept = scratch.path().join(layout().prefix().as_ref());
    assert_eq!(std::fs::read_dir(kept).unwrap().count(), 0);
}
