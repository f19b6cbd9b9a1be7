//! The requests of one write, and what is known after each.

use super::{
    MAX_PARTS, Stored, WriteError, Writer,
    seal::{Job, Sealing},
};
use crate::{header::Header, stream::SealError, thread::Running};
use async_channel::Receiver;
use bytes::Bytes;
use fencing::Fence;
use futures_util::{
    FutureExt as _,
    future::{Either, Shared, select},
};
use object_store::{
    Error, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    path::Path,
};
use std::{
    io::Read,
    pin::{Pin, pin},
};

/// So many bytes at its start tell one sealed object from every other: they hold a random salt, a
/// random key and a random nonce.
const IDENTITY_BYTES: usize = 166;

type Stop<'a> = Shared<Pin<Box<dyn Future<Output = ()> + Send + 'a>>>;

/// Stores what a job seals.
pub(super) async fn store(
    writer: &Writer,
    fence: &Fence,
    job: Job,
    database: impl Read + Send + 'static,
    stop: impl Future<Output = ()> + Send,
) -> Result<Stored, WriteError> {
    let stop: Stop<'_> = (Box::pin(stop) as Pin<Box<dyn Future<Output = ()> + Send + '_>>).shared();
    let Sealing { chosen, chunks, result } = job.start(database).map_err(WriteError::Platform)?;
    let Ok(header) = until(&stop, chosen.recv()).await? else {
        return Err(sealed(result).await.err().unwrap_or_else(panicked));
    };
    let key = writer.layout.key(&header.name());
    let is_large = header.suffix.is_some();
    let mut write = Write {
        store: &*writer.store,
        fence,
        stop,
        key,
        header,
        chunks,
        rest: Bytes::new(),
        result: Some(result),
        identity: Vec::new(),
        sealed_bytes: 0,
    };
    if is_large { write.large(writer.part_bytes).await } else { write.small().await }
}

struct Write<'a> {
    store: &'a dyn ObjectStore,
    fence: &'a Fence,
    stop: Stop<'a>,
    key: Path,
    header: Header,
    chunks: Receiver<Bytes>,
    /// What of the last chunk is left.
    rest: Bytes,
    result: Option<Running<Result<u64, SealError>>>,
    /// The start of what was sealed, and how much that was.
    identity: Vec<u8>,
    sealed_bytes: u64,
}

/// What a look at the key showed.
enum Look {
    Absent,
    Ours,
    Unknown,
    Other,
}

impl Write<'_> {
    async fn small(&mut self) -> Result<Stored, WriteError> {
        let (payload, _) = self.next_part(usize::MAX).await?;
        let database_bytes = self.sealed().await?;
        self.fence.check()?;
        let create = PutOptions::from(PutMode::Create);
        let put = self.store.put_opts(&self.key, payload, create);
        let failed = match until(&self.stop, put).await {
            Ok(Ok(_)) => return Ok(self.stored(database_bytes)),
            Ok(Err(error)) => Some(error),
            // It was sent.
            Err(_) => None,
        };
        // A client that sends a request again can read its own object as another's.
        match self.look().await {
            Look::Ours => Ok(self.stored(database_bytes)),
            Look::Other => Err(WriteError::Taken { key: self.key.clone() }),
            Look::Absent | Look::Unknown => match failed {
                Some(error) if is_refusal(&error) => Err(self.not_taken(error)),
                failed => Err(self.in_doubt(failed)),
            },
        }
    }

    async fn large(&mut self, part_bytes: usize) -> Result<Stored, WriteError> {
        match until(&self.stop, self.store.head(&self.key)).await? {
            Err(Error::NotFound { .. }) => {}
            Ok(_) => return Err(WriteError::Taken { key: self.key.clone() }),
            Err(error) => return Err(self.not_taken(error)),
        }
        self.fence.check()?;
        let begun = until(&self.stop, self.store.put_multipart(&self.key)).await?;
        let mut upload = begun.map_err(|error| self.not_taken(error))?;
        match self.send_parts(&mut *upload, part_bytes).await {
            Ok(database_bytes) => self.complete(&mut *upload, database_bytes).await,
            Err(error) => {
                self.abort(&mut *upload).await;
                Err(error)
            }
        }
    }

    async fn send_parts(
        &mut self,
        upload: &mut dyn MultipartUpload,
        part_bytes: usize,
    ) -> Result<u64, WriteError> {
        for _ in 0..MAX_PARTS {
            let (part, is_last) = self.next_part(part_bytes).await?;
            self.fence.check()?;
            if part.content_length() > 0 {
                let sent = until(&self.stop, upload.put_part(part)).await?;
                sent.map_err(|error| self.not_taken(error))?;
            }
            if is_last {
                let database_bytes = self.sealed().await?;
                self.fence.check()?;
                return Ok(database_bytes);
            }
        }
        Err(WriteError::TooLarge { part_bytes })
    }

    async fn complete(
        &mut self,
        upload: &mut dyn MultipartUpload,
        database_bytes: u64,
    ) -> Result<Stored, WriteError> {
        let failed = match until(&self.stop, upload.complete()).await {
            Ok(Ok(_)) => return Ok(self.stored(database_bytes)),
            Ok(Err(error)) => Some(error),
            Err(_) => None,
        };
        // An upload that is aborted can no longer be completed: that ends the doubt.
        let is_over = self.abort(upload).await;
        match self.look().await {
            Look::Ours => Ok(self.stored(database_bytes)),
            Look::Other => Err(WriteError::Taken { key: self.key.clone() }),
            Look::Absent if is_over => {
                Err(failed.map_or(WriteError::Stopped, |error| self.not_taken(error)))
            }
            Look::Absent | Look::Unknown => Err(self.in_doubt(failed)),
        }
    }

    /// Aborts what was begun, and tells whether the store said that it is.
    async fn abort(&self, upload: &mut dyn MultipartUpload) -> bool {
        match upload.abort().await {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(key = %self.key, %error, "parts of an upload may be left behind");
                false
            }
        }
    }

    /// What is sealed next, exactly `bytes` unless it is the end, and whether it is.
    async fn next_part(&mut self, bytes: usize) -> Result<(PutPayload, bool), WriteError> {
        let mut part = Vec::new();
        let mut missing = bytes;
        while missing > 0 {
            if self.rest.is_empty() {
                let Ok(chunk) = until(&self.stop, self.chunks.recv()).await? else {
                    return Ok((part.into_iter().collect(), true));
                };
                let unknown = IDENTITY_BYTES.saturating_sub(self.identity.len());
                self.identity.extend_from_slice(&chunk[..unknown.min(chunk.len())]);
                self.sealed_bytes += chunk.len() as u64;
                self.rest = chunk;
            }
            let chunk = self.rest.split_to(missing.min(self.rest.len()));
            missing -= chunk.len();
            part.push(chunk);
        }
        Ok((part.into_iter().collect(), false))
    }

    /// That all of it was sealed. Nothing may become visible before.
    async fn sealed(&mut self) -> Result<u64, WriteError> {
        match self.result.take() {
            Some(result) => sealed(result).await,
            None => Err(panicked()),
        }
    }

    /// What is stored under the key.
    async fn look(&self) -> Look {
        match self.store.head(&self.key).await {
            Ok(found) if found.size == self.sealed_bytes => {}
            Ok(_) => return Look::Other,
            Err(Error::NotFound { .. }) => return Look::Absent,
            Err(_) => return Look::Unknown,
        }
        match self.store.get_range(&self.key, 0..IDENTITY_BYTES as u64).await {
            Ok(start) if *start == *self.identity => Look::Ours,
            Ok(_) => Look::Other,
            Err(_) => Look::Unknown,
        }
    }

    fn stored(&self, database_bytes: u64) -> Stored {
        Stored {
            key: self.key.clone(),
            header: self.header.clone(),
            database_bytes,
            sealed_bytes: self.sealed_bytes,
        }
    }

    fn in_doubt(&self, source: Option<Error>) -> WriteError {
        WriteError::InDoubt { key: self.key.clone(), source }
    }

    fn not_taken(&self, source: Error) -> WriteError {
        WriteError::Store { key: self.key.clone(), source }
    }
}

/// The result of a request, unless it is time to stop first.
async fn until<T>(stop: &Stop<'_>, request: impl Future<Output = T>) -> Result<T, WriteError> {
    match select(stop.clone(), pin!(request)).await {
        Either::Left(_) => Err(WriteError::Stopped),
        Either::Right((answer, _)) => Ok(answer),
    }
}

async fn sealed(result: Running<Result<u64, SealError>>) -> Result<u64, WriteError> {
    match result.join().await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(SealError::Database(error))) => Err(WriteError::Database(error)),
        Ok(Err(SealError::Sink(error))) | Err(error) => Err(WriteError::Platform(error)),
    }
}

fn panicked() -> WriteError {
    WriteError::Platform(std::io::Error::other("the thread that seals ended early"))
}

/// Whether the store said that it did not carry out the request, and will not.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::NotSupported { .. }
            | Error::NotImplemented { .. }
            | Error::InvalidPath { .. }
            | Error::PermissionDenied { .. }
            | Error::Unauthenticated { .. }
            | Error::UnknownConfigurationKey { .. }
            | Error::NotFound { .. }
    )
}
