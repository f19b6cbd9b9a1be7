//! What is known of a write whose request failed.

use crate::{
    MIB, Tenure, database, source,
    support::watched::{Act, Op, Watched, broken},
};
use futures_executor::block_on;
use futures_util::FutureExt as _;
use snapshot_format::{
    object_store::{Error, path::Path},
    writer::{Stored, WriteError},
};
use std::{
    future::pending,
    io::{self, Read},
};

/// What comes of a write of so many bytes while the store does this.
fn write(
    bytes: usize,
    hook: impl FnMut(&Op) -> Act + Send + 'static,
) -> (Result<Stored, WriteError>, Vec<Op>) {
    let store = Watched::new();
    let tenure = Tenure::of_epoch(7);
    store.on(hook);
    let mut writer = tenure.writer(&store);
    let fence = tenure.fence();
    (block_on(writer.write(&fence, source(bytes), pending())), store.seen())
}

fn exists() -> Error {
    Error::AlreadyExists { path: "k".into(), source: "exists".into() }
}

fn denied() -> Error {
    Error::PermissionDenied { path: "k".into(), source: "denied".into() }
}

#[test]
fn case_08_a_put_that_landed_is_stored_whatever_the_answer_was() {
    for error in [broken, exists, denied] {
        let mut error = Some(error());
        let (written, _) = write(1, move |op| match op {
            Op::Put(..) => error.take().map_or(Act::Pass, Act::FailAfter),
            _ => Act::Pass,
        });
        assert_eq!(written.unwrap().database_bytes, 1);
    }
}

#[test]
fn a_put_that_failed_and_is_not_there_is_in_doubt() {
    for error in [broken, exists] {
        let mut error = Some(error());
        let (written, _) = write(1, move |op| match op {
            Op::Put(..) => error.take().map_or(Act::Pass, Act::Fail),
            _ => Act::Pass,
        });
        let error = written.unwrap_err();
        assert!(error.is_in_doubt(), "{error}");
    }
}

#[test]
fn a_put_that_cannot_be_looked_at_is_in_doubt() {
    let (written, _) = write(1, |op| match op {
        Op::Put(..) => Act::FailAfter(broken()),
        _ => Act::Fail(broken()),
    });
    assert!(written.unwrap_err().is_in_doubt());
}

#[test]
fn a_put_that_was_refused_stored_nothing() {
    let (written, _) = write(1, |op| match op {
        Op::Put(..) => Act::Fail(denied()),
        _ => Act::Pass,
    });
    let error = written.unwrap_err();
    assert!(matches!(&error, WriteError::Store { .. }) && !error.is_in_doubt(), "{error}");
}

#[test]
fn a_part_that_fails_aborts_the_upload_and_stored_nothing() {
    for failing in 1..=3 {
        let mut parts = 0;
        let (written, seen) = write(11 * MIB, move |op| {
            parts += usize::from(matches!(op, Op::Part(_)));
            match op {
                Op::Part(_) if parts == failing => Act::Fail(broken()),
                _ => Act::Pass,
            }
        });
        assert!(matches!(written.unwrap_err(), WriteError::Store { .. }));
        assert_eq!(seen.last(), Some(&Op::Abort));
        assert!(!seen.contains(&Op::Complete));
    }
}

#[test]
fn an_upload_is_completed_in_doubt_only_if_it_can_neither_be_found_nor_aborted() {
    let (landed, _) = write(MIB, |op| match op {
        Op::Complete => Act::FailAfter(broken()),
        _ => Act::Pass,
    });
    assert_eq!(landed.unwrap().database_bytes, MIB as u64);

    let (aborted, seen) = write(MIB, |op| match op {
        Op::Complete => Act::Fail(broken()),
        _ => Act::Pass,
    });
    assert!(
        matches!(aborted.unwrap_err(), WriteError::Store { .. }),
        "it is aborted, and not there"
    );
    let end = seen.iter().position(|op| *op == Op::Complete).unwrap();
    assert!(matches!(&seen[end..], [Op::Complete, Op::Abort, Op::Head(_)]), "{seen:?}");

    let (open, _) = write(MIB, |op| match op {
        Op::Complete | Op::Abort => Act::Fail(broken()),
        _ => Act::Pass,
    });
    assert!(open.unwrap_err().is_in_doubt());
}

#[test]
fn a_large_one_whose_key_is_there_or_cannot_be_looked_at_is_not_begun() {
    let store = Watched::new();
    let tenure = Tenure::of_epoch(7);
    let mut writer = tenure.writer(&store);
    let behind = store.behind().clone();
    store.on(move |op| {
        if let Op::Head(key) = op {
            plant(&behind, key);
        }
        Act::Pass
    });
    let error = block_on(writer.write(&tenure.fence(), source(MIB), pending())).unwrap_err();
    assert!(matches!(error, WriteError::Taken { .. }), "{error}");
    assert!(matches!(&*store.seen(), [Op::Head(_)]));

    let (unknown, seen) = write(MIB, |op| match op {
        Op::Head(_) => Act::Fail(broken()),
        _ => Act::Pass,
    });
    assert!(matches!(unknown.unwrap_err(), WriteError::Store { .. }));
    assert!(matches!(&*seen, [Op::Head(_)]));
}

fn plant(store: &std::sync::Arc<dyn snapshot_format::object_store::ObjectStore>, key: &Path) {
    use snapshot_format::object_store::ObjectStoreExt as _;
    store.put(key, "of somebody else".into()).now_or_never().unwrap().unwrap();
}

#[test]
fn a_database_that_cannot_be_read_stores_nothing() {
    struct Broken(io::Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the disk")),
                read => Ok(read),
            }
        }
    }
    for bytes in [0, 1, MIB, 11 * MIB] {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let broken = Broken(io::Cursor::new(database(bytes)));
        let error = block_on(writer.write(&tenure.fence(), broken, pending())).unwrap_err();
        assert!(matches!(&error, WriteError::Database(cause) if cause.to_string() == "the disk"));
        let seen = store.seen();
        assert!(!seen.iter().any(|op| matches!(op, Op::Put(..) | Op::Complete)), "{seen:?}");
        assert_eq!(bytes >= MIB, seen.last() == Some(&Op::Abort), "{seen:?}");
    }
}

#[test]
fn a_database_that_panics_is_an_error() {
    struct Panics;
    impl Read for Panics {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            panic!("of the application")
        }
    }
    let store = Watched::new();
    let tenure = Tenure::of_epoch(7);
    let mut writer = tenure.writer(&store);
    let error = block_on(writer.write(&tenure.fence(), Panics, pending())).unwrap_err();
    assert!(matches!(error, WriteError::Platform(_)), "{error}");
}
