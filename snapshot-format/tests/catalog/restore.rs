//! All of a snapshot, or an error that says which side failed.

use crate::support::{
    CIPHER, header, layout, name, sealed, snapshot,
    watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use snapshot_format::{
    Catalog,
    catalog::{ListedSnapshot, Refusal},
    cipher::Unopenable,
    stream::{Headerless, Opened, RestoreError},
};
use std::io::{self, Write};

const CHUNK: usize = 64 * 1024;

async fn stored(store: &Watched, content: Vec<u8>) -> (Catalog, ListedSnapshot) {
    store.plant(&layout().key(&name(7, 0)), content).await;
    let catalog = Catalog::new(store.shared(), layout(), CIPHER.clone());
    let listed = catalog.list().await.unwrap().snapshots.remove(0);
    (catalog, listed)
}

async fn restore(
    content: Vec<u8>,
    headerless: Headerless,
) -> Result<(Opened, Vec<u8>), RestoreError> {
    let (catalog, listed) = stored(&Watched::new(), content).await;
    catalog.restore(&listed, headerless, Vec::new()).await
}

fn database(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_database_of_any_size_comes_back_as_it_was() {
    let start = header(name(7, 0)).encode(layout().application()).len();
    for bytes in [
        0,
        1,
        CHUNK - start - 1,
        CHUNK - start,
        CHUNK - start + 1,
        CHUNK,
        3 * CHUNK - start,
        1_000_000,
    ] {
        let expected = database(bytes);
        let restored = block_on(restore(snapshot(name(7, 0), &expected), Headerless::Refuse));
        let (opened, found) = restored.unwrap();
        assert!(found == expected, "{bytes}");
        let header = Some(header(name(7, 0)));
        assert_eq!(opened, Opened { header, database_bytes: bytes as u64 });
    }
}

#[test]
fn whatever_is_cut_changed_or_added_is_an_error() {
    let whole = snapshot(name(7, 0), &database(3 * CHUNK));
    let first_chunk = 150 + 16 - 1 + CHUNK + 16;
    let cuts = [1, 16, first_chunk, first_chunk + CHUNK + 16, whole.len() - 16, whole.len() - 1];
    for length in cuts {
        let error = block_on(restore(whole[..length].to_vec(), Headerless::Accept)).unwrap_err();
        assert!(!error.may_pass(), "{length}: {error}");
    }
    for at in [0, 60, 140, 160, 200, first_chunk + 9, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 0x80;
        let error = block_on(restore(altered, Headerless::Accept)).unwrap_err();
        assert!(!error.may_pass(), "{at}: {error}");
    }
    let error = block_on(restore([&*whole, b"x"].concat(), Headerless::Accept)).unwrap_err();
    assert!(matches!(error, RestoreError::Damaged(Unopenable::Altered)), "{error}");
    let cut = block_on(restore(whole[..first_chunk].to_vec(), Headerless::Accept)).unwrap_err();
    assert!(matches!(cut, RestoreError::Damaged(Unopenable::Cut)), "{cut}");
}

#[test]
fn a_renamed_copy_is_never_restored_and_nothing_of_it_written() {
    struct Untouched;
    impl Write for Untouched {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            panic!("something was written")
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    block_on(async {
        let copy = snapshot(name(6, 0), &database(3 * CHUNK));
        let (catalog, listed) = stored(&Watched::new(), copy).await;
        let error = catalog.restore(&listed, Headerless::Accept, Untouched).await.err().unwrap();
        let RestoreError::Refused(why) = error else { panic!("{error}") };
        assert_eq!(why, Refusal::OtherEpoch { header: name(6, 0).epoch() });
    });
}

#[test]
fn a_snapshot_without_a_header_is_restored_where_that_is_accepted() {
    let expected = database(2 * CHUNK);
    let refused = block_on(restore(sealed(&expected), Headerless::Refuse)).unwrap_err();
    assert!(matches!(refused, RestoreError::Headerless), "{refused}");
    let (opened, found) = block_on(restore(sealed(&expected), Headerless::Accept)).unwrap();
    assert!(found == expected && opened.header.is_none());
    // What is accepted is the lack of a header, not one that lies.
    let newer = sealed(b"orders-ha-snapshot\n{\"format\":3}\n");
    let error = block_on(restore(newer, Headerless::Accept)).unwrap_err();
    assert!(matches!(error, RestoreError::NewerFormat { format: 3 }), "{error}");
}

#[test]
fn a_store_that_fails_is_told_from_a_snapshot_that_is_damaged() {
    block_on(async {
        let store = Watched::new();
        let (catalog, listed) = stored(&store, snapshot(name(7, 0), &database(CHUNK))).await;
        store.on(|op| if matches!(op, Op::Get(..)) { Act::Fail(broken()) } else { Act::Pass });
        let error = catalog.restore(&listed, Headerless::Refuse, Vec::new()).await.unwrap_err();
        assert!(matches!(error, RestoreError::Store(_)) && error.may_pass(), "{error}");
        store.heal();
        store.plant(&listed.key, snapshot(name(7, 0), &database(CHUNK))).await;
        let error = catalog.restore(&listed, Headerless::Refuse, Vec::new()).await.unwrap_err();
        assert!(matches!(error, RestoreError::Changed) && error.may_pass(), "{error}");
    });
}

#[test]
fn a_sink_that_fails_is_told_and_ends_the_download() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    block_on(async {
        let content = snapshot(name(7, 0), &database(40 * CHUNK));
        let (catalog, listed) = stored(&Watched::new(), content).await;
        let error = catalog.restore(&listed, Headerless::Refuse, Full).await.err().unwrap();
        assert!(
            matches!(&error, RestoreError::Sink(cause) if cause.kind() == io::ErrorKind::StorageFull)
        );
    });
}
