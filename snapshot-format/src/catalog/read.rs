//! What is read of an object: its start for a verdict, all of it for a restore.

use super::{
    ListedSnapshot, Refusal, Shared, Uncheckable, Verdict, judge, listing::is_same_version,
};
use crate::{
    cipher::{MAX_SEALED_START_BYTES, Unopenable},
    pipe,
    stream::{self, Headerless, Opened, RestoreError},
    thread::{self, Running},
};
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use object_store::{Error, GetOptions, GetRange, GetResult};
use std::{
    io::{self, Write},
    sync::Arc,
};

/// Reads the start of an object, once, and says what it is worth.
pub(super) async fn verdict(shared: &Shared, listed: &ListedSnapshot) -> Verdict {
    let verdict = match start(shared, listed).await {
        Ok(start) => {
            let (cipher, layout) = (shared.cipher.clone(), shared.layout.clone());
            let name = listed.name;
            // A derivation takes milliseconds: not on the thread of a runtime.
            thread::run("snapshot-check", move || judge(&cipher, &layout, &name, &start))
                .await
                .unwrap_or_else(|error| {
                    let error = Error::Generic { store: "thread", source: Box::new(error) };
                    Verdict::Unchecked(Uncheckable::Store(Arc::new(error)))
                })
        }
        Err(verdict) => verdict,
    };
    match &verdict {
        Verdict::Verified(_) | Verdict::Legacy => {}
        Verdict::Refused(why) => {
            tracing::error!(key = %listed.key, %why, "snapshot refused: it is kept, find out who wrote it");
        }
        Verdict::Unchecked(why) => {
            tracing::warn!(key = %listed.key, %why, "snapshot cannot be checked");
        }
    }
    verdict
}

async fn start(shared: &Shared, listed: &ListedSnapshot) -> Result<Vec<u8>, Verdict> {
    if listed.size == 0 {
        // No store has a range of it to read.
        return Err(Verdict::Refused(Refusal::DoesNotOpen { why: Unopenable::Cut }));
    }
    let wanted = listed.size.min(MAX_SEALED_START_BYTES as u64);
    let options = GetOptions { range: Some(GetRange::Bounded(0..wanted)), ..GetOptions::default() };
    let unchecked = |error| {
        Verdict::Unchecked(match error {
            Error::NotFound { .. } => Uncheckable::Changed,
            error => Uncheckable::Store(Arc::new(error)),
        })
    };
    let found = shared.store.get_opts(&listed.key, options).await.map_err(unchecked)?;
    if !is_same_version(listed, &found.meta) {
        return Err(Verdict::Unchecked(Uncheckable::Changed));
    }
    let mut start = Vec::new();
    let mut chunks = found.into_stream();
    while let Some(chunk) = chunks.try_next().await.map_err(unchecked)? {
        start.extend_from_slice(&chunk);
        if start.len() as u64 >= wanted {
            // A store that gives more than was asked for gives it for nothing.
            start.truncate(MAX_SEALED_START_BYTES);
            break;
        }
    }
    if (start.len() as u64) < wanted {
        return Err(Verdict::Unchecked(Uncheckable::Changed));
    }
    Ok(start)
}

pub(super) async fn restore<W: Write + Send + 'static>(
    shared: &Shared,
    listed: &ListedSnapshot,
    headerless: Headerless,
    mut sink: W,
) -> Result<(Opened, W), RestoreError> {
    let found = shared.store.get_opts(&listed.key, GetOptions::default()).await;
    let found = found.map_err(|error| match error {
        Error::NotFound { .. } => RestoreError::Changed,
        error => RestoreError::Store(error),
    })?;
    if !is_same_version(listed, &found.meta) {
        return Err(RestoreError::Changed);
    }
    let (feed, source) = pipe::inward();
    let (cipher, layout, name) = (shared.cipher.clone(), shared.layout.clone(), listed.name);
    let opening = Running::start("snapshot-open", move || {
        stream::open(&cipher, &layout, &name, headerless, source, &mut sink)
            .map(|opened| (opened, sink))
    })
    .map_err(RestoreError::Platform)?;
    let fed = feed_all(found, feed).await;
    let opened = opening.join().await.map_err(RestoreError::Platform)?;
    match (opened, fed) {
        // The thread only knows that there is no more.
        (Err(RestoreError::Source(_)), Err(error)) => Err(RestoreError::Store(error)),
        (opened, _) => opened,
    }
}

/// Hands on all that the store gives, until the thread wants no more.
async fn feed_all(found: GetResult, feed: pipe::Feed) -> object_store::Result<()> {
    let mut chunks = found.into_stream();
    loop {
        match chunks.try_next().await {
            // An empty one is how the end is told.
            Ok(Some(chunk)) if chunk.is_empty() => {}
            Ok(Some(chunk)) => {
                if !feed.give(Ok(chunk)).await {
                    return Ok(());
                }
            }
            Ok(None) => {
                feed.give(Ok(Bytes::new())).await;
                return Ok(());
            }
            Err(error) => {
                feed.give(Err(io::Error::other("the store failed"))).await;
                return Err(error);
            }
        }
    }
}
