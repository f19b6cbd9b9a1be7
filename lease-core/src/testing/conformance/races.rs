//! Operations in flight at the same time.

use super::{
    Target,
    check::{CaseFailed, brief, yield_now},
};
use crate::{
    key::ObjectKey,
    race::{RACERS, Race, race_creates, race_replaces},
    store::{Read, StoreErrorKind},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::{
    FutureExt as _,
    future::{join, join_all},
};
use std::{
    future::poll_fn,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    task::Poll,
};

/// A race that a store lets two win by chance only is run more than once.
const ROUNDS: usize = 4;

fn entries(round: usize) -> Vec<Bytes> {
    (0..RACERS).map(|racer| Bytes::from(format!("round {round}, racer {racer}"))).collect()
}

/// Exactly one won, and it is the winner's content that is there.
async fn one_won(
    on: &Target,
    key: &ObjectKey,
    entries: &[Bytes],
    race: Race,
) -> Result<(), CaseFailed> {
    if let Some(stray) = race.stray {
        let kind = stray.kind();
        return Err(CaseFailed::new(format!("a loser was told {kind:?}: {stray}")));
    }
    let won = race.won.len();
    ensure!(won <= 1, "{won} of {RACERS} writes under one condition were told that they had won");
    match race.won.first() {
        Some((winner, version)) => on.shows(key, entries[*winner].clone(), version).await,
        None => {
            // The winner's reply may have got lost; then its content is there nevertheless.
            let (content, _) = on.found(key).await?;
            let landed = race.in_doubt.iter().any(|(racer, _)| entries[*racer] == content);
            ensure!(landed, "none of {RACERS} writes won; reading told {}", brief(&content));
            Ok(())
        }
    }
}

pub(super) async fn exactly_one_of_16_creates_wins(on: &Target) -> Result<(), CaseFailed> {
    for round in 0..ROUNDS {
        let (key, entries) = (on.key(&format!("object-{round}"))?, entries(round));
        let race = race_creates(&on.store, &key, &entries).await;
        one_won(on, &key, &entries, race).await?;
    }
    Ok(())
}

pub(super) async fn exactly_one_of_16_replaces_wins(on: &Target) -> Result<(), CaseFailed> {
    let key = on.key("object")?;
    on.create(&key, "start").await?;
    for round in 0..ROUNDS {
        let (entries, (_, version)) = (entries(round), on.found(&key).await?);
        let race = race_replaces(&on.store, &key, &version, &entries).await;
        one_won(on, &key, &entries, race).await?;
    }
    Ok(())
}

/// Content number `number`: its number, then bytes that follow from it, of a length that does too.
fn numbered(number: u64) -> Bytes {
    let length = usize::try_from(number * 7919 % 60_000).unwrap_or(0);
    let mut content = BytesMut::with_capacity(8 + length);
    content.put_u64(number);
    content.put_bytes(number.to_le_bytes()[0], length);
    content.freeze()
}

fn number_of(content: &Bytes) -> Result<u64, CaseFailed> {
    let number = content.first_chunk().map(|bytes| u64::from_be_bytes(*bytes));
    match number.filter(|number| numbered(*number) == content) {
        Some(number) => Ok(number),
        None => Err(CaseFailed::new(format!("a read told {}, never written", brief(content)))),
    }
}

pub(super) async fn readers_see_whole_contents_and_never_go_back(
    on: &Target,
) -> Result<(), CaseFailed> {
    const WRITES: u64 = 60;
    let key = on.key("object")?;
    let mut version = on.create(&key, numbered(0)).await?;
    // The last write that is known to be there.
    let written = AtomicU64::new(0);
    let finished = AtomicU64::new(0);
    let writer = async {
        for number in 1..=WRITES {
            version = on.replace(&key, numbered(number), &version).await?;
            written.store(number, Ordering::SeqCst);
            yield_now().await;
        }
        Ok(())
    };
    let reader = || async {
        let mut last = 0;
        while finished.load(Ordering::SeqCst) == 0 {
            let before = last.max(written.load(Ordering::SeqCst));
            last = number_of(&on.found(&key).await?.0)?;
            ensure!(
                last >= before,
                "a read told write {last}, but write {before} was there before"
            );
            yield_now().await;
        }
        Ok(())
    };
    let writer = writer.inspect(|_| finished.store(1, Ordering::SeqCst));
    let (writer, readers) = join(writer, join_all([reader(), reader(), reader()])).await;
    readers.into_iter().chain([writer]).collect()
}

pub(super) async fn a_dropped_write_leaves_the_old_or_the_new(
    on: &Target,
) -> Result<(), CaseFailed> {
    for polls in 0..8 {
        let created = on.key(&format!("created-{polls}"))?;
        give_up(polls, on.store.create_if_absent(&created, Bytes::from("new"))).await;
        settle(on, &created, &["new"]).await?;

        let replaced = on.key(&format!("replaced-{polls}"))?;
        let old = on.create(&replaced, "old").await?;
        give_up(polls, on.store.replace_if_match(&replaced, Bytes::from("new"), &old)).await;
        settle(on, &replaced, &["old", "new"]).await?;
    }
    Ok(())
}

/// Polls the write so many times, then drops it.
async fn give_up(polls: u32, write: impl Future) {
    let mut write = pin!(write.fuse());
    for _ in 0..polls {
        // Whether it is ready does not matter, nor what it tells then.
        poll_fn(|context| Poll::Ready(write.as_mut().poll(context).is_ready())).await;
        yield_now().await;
    }
}

/// How often a write may be left in doubt by what was given up before it.
const MOST_DOUBTS: u32 = 16;

/// The object is missing or has one of these contents, and can be written; then nothing of what was
/// given up before may still land.
async fn settle(on: &Target, key: &ObjectKey, possible: &[&str]) -> Result<(), CaseFailed> {
    // What was given up can land once, between a read and the write after it.
    let (mut conflicts, mut doubts) = (0, 0);
    while conflicts < 3 {
        let last = Bytes::from("last");
        let write = match on.read(key, None).await? {
            Read::Found { content, version, .. } => {
                let known = possible.iter().any(|possible| content == possible.as_bytes())
                    || (doubts > 0 && content == last);
                ensure!(known, "after a write was given up {key} has {}", brief(&content));
                on.store.replace_if_match(key, last.clone(), &version).await
            }
            _ => on.store.create_if_absent(key, last.clone()).await,
        };
        match write.map_err(|error| (error.kind(), error)) {
            Ok(version) => {
                for _ in 0..10 {
                    yield_now().await;
                }
                return on.shows(key, last, &version).await;
            }
            Err((StoreErrorKind::Precondition | StoreErrorKind::Contended, _)) => conflicts += 1,
            // Some servers answer 500 while another write is in flight (Ceph 16 does).
            Err((StoreErrorKind::InDoubt, _)) if doubts < MOST_DOUBTS => doubts += 1,
            Err((kind, error)) => {
                return Err(CaseFailed::new(format!(
                    "after a write was given up {key} cannot be written ({kind:?}): {error}"
                )));
            }
        }
    }
    Err(CaseFailed::new(format!("after a write was given up {key} changed more than once")))
}
