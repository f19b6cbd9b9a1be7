//! The fence is looked at before, and again before anything becomes visible.

use crate::{
    MIB, Tenure, database, source,
    support::watched::{Act, Mode, Op, Watched},
};
use futures_executor::block_on;
use futures_util::FutureExt as _;
use snapshot_format::{catalog::Listing, writer::WriteError};
use std::{
    future::{pending, ready},
    io::{self, Read},
    sync::{Arc, Mutex},
};

async fn is_empty(store: &Watched) -> bool {
    let catalog = snapshot_format::Catalog::new(
        store.behind().clone(),
        crate::support::layout(),
        crate::support::CIPHER.clone(),
    );
    catalog.list().await.unwrap() == Listing::default()
}

/// A database that ends the tenure once so much of it was read.
struct Fatal {
    database: io::Cursor<Vec<u8>>,
    after: u64,
    tenure: Arc<Mutex<Option<Tenure>>>,
}

impl Read for Fatal {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.database.position() >= self.after {
            *self.tenure.lock().unwrap() = None;
        }
        self.database.read(buffer)
    }
}

#[test]
fn nothing_is_sent_behind_a_shut_fence() {
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let (fence, mut writer) = (tenure.fence(), tenure.writer(&store));
        drop(tenure);
        for bytes in [1, MIB] {
            let error = writer.write(&fence, source(bytes), pending()).await.unwrap_err();
            assert!(matches!(error, WriteError::Fenced(_)), "{error}");
        }
        assert_eq!(store.seen(), []);
    });
}

#[test]
fn a_tenure_that_ends_while_it_is_sealed_stores_nothing() {
    block_on(async {
        for bytes in [50_000, 12 * MIB] {
            let store = Watched::new();
            let tenure = Tenure::of_epoch(7);
            let (fence, mut writer) = (tenure.fence(), tenure.writer(&store));
            let fatal = Fatal {
                database: io::Cursor::new(database(bytes)),
                after: bytes as u64,
                tenure: Arc::new(Mutex::new(Some(tenure))),
            };
            let error = writer.write(&fence, fatal, pending()).await.unwrap_err();
            assert!(matches!(error, WriteError::Fenced(_)), "{bytes}: {error}");
            assert!(is_empty(&store).await, "{bytes}");
            let seen = store.seen();
            let is_visible = |op: &Op| matches!(op, Op::Put(_, Mode::Create) | Op::Complete);
            assert!(!seen.iter().any(is_visible), "{seen:?}");
            if bytes > MIB {
                assert_eq!(seen.last(), Some(&Op::Abort), "what was begun is aborted");
            }
        }
    });
}

#[test]
fn a_tenure_that_ends_between_two_parts_ends_the_upload() {
    block_on(async {
        for ends_at in 1..=3 {
            let store = Watched::new();
            let tenure = Tenure::of_epoch(7);
            let (fence, mut writer) = (tenure.fence(), tenure.writer(&store));
            let mut tenure = Some(tenure);
            let mut parts = 0;
            store.on(move |op| {
                if matches!(op, Op::Part(_)) {
                    parts += 1;
                    if parts == ends_at {
                        drop(tenure.take());
                    }
                }
                Act::Pass
            });
            let error = writer.write(&fence, source(11 * MIB), pending()).await.unwrap_err();
            assert!(matches!(error, WriteError::Fenced(_)), "{error}");
            assert!(is_empty(&store).await);
            let seen = store.seen();
            let sent = seen.iter().filter(|op| matches!(op, Op::Part(_))).count();
            assert_eq!((sent, seen.last()), (ends_at, Some(&Op::Abort)), "{seen:?}");
        }
    });
}

type Stuck = (usize, fn(&Op) -> bool, bool);

#[test]
fn a_request_that_hangs_ends_with_stop() {
    block_on(async {
        // (the size, the request that hangs, whether its answer is needed to know)
        let stuck: [Stuck; 5] = [
            (MIB, |op| matches!(op, Op::Head(_)), false),
            (MIB, |op| matches!(op, Op::Begin(_)), false),
            (MIB, |op| matches!(op, Op::Part(_)), false),
            (MIB, |op| matches!(op, Op::Complete), false),
            (1, |op| matches!(op, Op::Put(..)), true),
        ];
        for (bytes, is_stuck, is_doubtful) in stuck {
            let store = Watched::new();
            let tenure = Tenure::of_epoch(7);
            let mut writer = tenure.writer(&store);
            let (stop, stopped) = async_channel::bounded::<()>(1);
            store.on(move |op| {
                if is_stuck(op) {
                    stop.try_send(()).ok();
                    return Act::Hang;
                }
                Act::Pass
            });
            let stop = async move {
                let _ = stopped.recv().await;
            };
            let error = writer.write(&tenure.fence(), source(bytes), stop).await.unwrap_err();
            assert_eq!(error.is_in_doubt(), is_doubtful, "{error}");
            assert!(is_doubtful || matches!(error, WriteError::Stopped), "{error}");
            assert!(is_empty(&store).await);
            let seen = store.seen();
            let begun = seen.iter().any(|op| matches!(op, Op::Part(_)));
            assert_eq!(begun, seen.contains(&Op::Abort), "{seen:?}");
        }
    });
}

#[test]
fn what_landed_although_it_was_to_stop_is_told_as_stored() {
    block_on(async {
        for (bytes, is_last) in [(1, "put"), (MIB, "complete")] {
            let store = Watched::new();
            let tenure = Tenure::of_epoch(7);
            let mut writer = tenure.writer(&store);
            let (stop, stopped) = async_channel::bounded::<()>(1);
            store.on(move |op| {
                if matches!(op, Op::Put(..) | Op::Complete) {
                    stop.try_send(()).ok();
                    return Act::HangAfter;
                }
                Act::Pass
            });
            let stop = async move {
                let _ = stopped.recv().await;
            };
            let stored = writer.write(&tenure.fence(), source(bytes), stop).await;
            assert_eq!(stored.expect(is_last).database_bytes, bytes as u64);
        }
    });
}

#[test]
fn a_write_that_is_to_stop_already_sends_nothing() {
    let store = Watched::new();
    let tenure = Tenure::of_epoch(7);
    let mut writer = tenure.writer(&store);
    let fence = tenure.fence();
    let write = writer.write(&fence, source(MIB), ready(()));
    let error = write.now_or_never().expect("it waits for nothing").unwrap_err();
    assert!(matches!(error, WriteError::Stopped), "{error}");
    assert_eq!(store.seen(), []);
}

#[test]
fn a_write_that_is_dropped_ends_the_thread_that_reads_the_database() {
    struct Endless {
        _alive: async_channel::Sender<()>,
    }
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len())
        }
    }
    block_on(async {
        let store = Watched::new();
        let tenure = Tenure::of_epoch(7);
        let mut writer = tenure.writer(&store);
        let (_alive, ended) = async_channel::bounded(1);
        let (begun, has_begun) = async_channel::bounded::<()>(1);
        store.on(move |op| {
            if matches!(op, Op::Part(_)) {
                begun.try_send(()).ok();
                return Act::Hang;
            }
            Act::Pass
        });
        let fence = tenure.fence();
        let write = Box::pin(writer.write(&fence, Endless { _alive }, pending()));
        let begun = Box::pin(has_begun.recv());
        drop(futures_util::future::select(write, begun).await);
        // An endless database: only an end of the thread drops it.
        assert!(ended.recv().await.is_err());
    });
}
