//! A store that notes each request, gives its listing in pages, and fails where a test says.

use async_trait::async_trait;
use futures_util::{
    StreamExt as _,
    future::{self, BoxFuture},
    stream::{self, BoxStream},
};
use snapshot_format::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMode, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result, UploadPart, memory::InMemory, path::Path,
};
use std::{
    fmt,
    ops::Range,
    sync::{Arc, Mutex},
};

/// As many as S3 gives at a time.
const PAGE: usize = 1000;

/// One request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// A page of a listing, from 1.
    Page(usize),
    Head(Path),
    /// A range of an object, or all of it.
    Get(Path, Option<Range<u64>>),
    Put(Path, Mode),
    Begin(Path),
    /// A part and its size.
    Part(usize),
    Complete,
    Abort,
    Delete(Path),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    Create,
    Overwrite,
}

/// What becomes of a request.
pub(crate) enum Act {
    Pass,
    /// It fails, and does nothing.
    Fail(Error),
    /// It is carried out, and fails all the same.
    FailAfter(Error),
    /// It never answers.
    Hang,
    /// It is carried out, and never answers.
    HangAfter,
}

type Hook = Box<dyn FnMut(&Op) -> Act + Send>;

#[derive(Clone)]
pub(crate) struct Watched(Arc<Inner>);

struct Inner {
    store: Arc<dyn ObjectStore>,
    seen: Mutex<Vec<Op>>,
    hook: Mutex<Hook>,
}

pub(crate) fn broken() -> Error {
    Error::Generic { store: "Watched", source: "it broke".into() }
}

impl Watched {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(InMemory::new()))
    }

    pub(crate) fn over(store: Arc<dyn ObjectStore>) -> Self {
        let hook: Hook = Box::new(|_| Act::Pass);
        Self(Arc::new(Inner { store, seen: Mutex::default(), hook: Mutex::new(hook) }))
    }

    pub(crate) fn on(&self, hook: impl FnMut(&Op) -> Act + Send + 'static) {
        *self.0.hook.lock().unwrap() = Box::new(hook);
    }

    /// From now on all is well.
    pub(crate) fn heal(&self) {
        self.on(|_| Act::Pass);
    }

    /// What was asked since the last call.
    pub(crate) fn seen(&self) -> Vec<Op> {
        std::mem::take(&mut *self.0.seen.lock().unwrap())
    }

    /// How many reads of content there were since the last call.
    pub(crate) fn reads(&self) -> usize {
        self.seen().iter().filter(|op| matches!(op, Op::Get(..))).count()
    }

    /// The store behind it, which is not watched.
    pub(crate) fn behind(&self) -> &Arc<dyn ObjectStore> {
        &self.0.store
    }

    /// Puts an object there as anybody could.
    pub(crate) async fn plant(&self, key: &Path, content: impl Into<PutPayload>) {
        self.0.store.put(key, content.into()).await.unwrap();
    }

    pub(crate) fn shared(&self) -> Arc<dyn ObjectStore> {
        Arc::new(self.clone())
    }

    fn act(&self, op: Op) -> Act {
        let act = (self.0.hook.lock().unwrap())(&op);
        self.0.seen.lock().unwrap().push(op);
        act
    }

    async fn request<T>(&self, op: Op, request: impl Future<Output = Result<T>>) -> Result<T> {
        match self.act(op) {
            Act::Pass => request.await,
            Act::Fail(error) => Err(error),
            Act::FailAfter(error) => {
                request.await?;
                Err(error)
            }
            Act::Hang => future::pending().await,
            Act::HangAfter => {
                request.await?;
                future::pending().await
            }
        }
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watched")
    }
}

#[async_trait]
impl ObjectStore for Watched {
    async fn put_opts(
        &self,
        key: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let mode = match options.mode {
            PutMode::Create => Mode::Create,
            _ => Mode::Overwrite,
        };
        let put = self.0.store.put_opts(key, payload, options);
        self.request(Op::Put(key.clone(), mode), put).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begin = self.0.store.put_multipart_opts(key, options);
        let upload = self.request(Op::Begin(key.clone()), begin).await?;
        Ok(Box::new(WatchedUpload { store: self.clone(), upload }))
    }

    async fn get_opts(&self, key: &Path, options: GetOptions) -> Result<GetResult> {
        let op = match &options.range {
            _ if options.head => Op::Head(key.clone()),
            Some(range) => Op::Get(key.clone(), Some(range.as_range(u64::MAX).unwrap())),
            None => Op::Get(key.clone(), None),
        };
        self.request(op, self.0.store.get_opts(key, options)).await
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let delete = move |key: Result<Path>| {
            let store = store.clone();
            async move {
                let key = key?;
                let delete = store.0.store.delete(&key);
                store.request(Op::Delete(key.clone()), delete).await.map(|()| key)
            }
        };
        keys.then(delete).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.clone();
        self.0
            .store
            .list(prefix)
            .chunks(PAGE)
            .enumerate()
            .flat_map(move |(before, page)| match store.act(Op::Page(before + 1)) {
                Act::Fail(error) | Act::FailAfter(error) => {
                    stream::once(future::ready(Err(error))).boxed()
                }
                _ => stream::iter(page).boxed(),
            })
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.0.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.0.store.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct WatchedUpload {
    store: Watched,
    upload: Box<dyn MultipartUpload>,
}

#[async_trait]
impl MultipartUpload for WatchedUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let op = Op::Part(part.content_length());
        let sent: BoxFuture<'static, Result<()>> = self.upload.put_part(part);
        let store = self.store.clone();
        Box::pin(async move { store.request(op, sent).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.store.request(Op::Complete, self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.store.request(Op::Abort, self.upload.abort()).await
    }
}
