//! What happens to one request.

use super::quirks::Asked;
use bytes::Bytes;
use http::{HeaderMap, Method};
use http_body::Frame;
use std::{
    collections::VecDeque,
    convert::Infallible,
    fmt,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};
use tokio::sync::watch;

/// What happens to one request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// It is not applied; this status and S3 error code are answered.
    Answer(u16, &'static str),
    /// It is applied, and the answer is this status and code.
    ApplyThenAnswer(u16, &'static str),
    /// It is applied, and the connection is closed without a reply.
    ApplyThenDrop,
    /// It is applied, and the reply waits until it is released.
    ApplyThenHold(Held),
    /// It is not applied, and the connection is closed without a reply.
    Drop,
    /// The reply is a 200 whose body never ends.
    EndlessBody,
    /// It is not applied before it is released.
    Hold(Held),
    /// The connection is closed without a reply, and the request is applied when the test says so.
    LandLater(Late),
    /// It is redirected to this path on the same server, with this status.
    Redirect(u16, &'static str),
}

/// Requests or replies that wait. Clones are one.
#[derive(Clone, Debug)]
pub struct Held {
    released: watch::Sender<bool>,
    waiting: watch::Sender<usize>,
}

impl Default for Held {
    fn default() -> Self {
        Self::new()
    }
}

impl Held {
    /// Nothing passes yet.
    #[must_use]
    pub fn new() -> Self {
        Self { released: watch::Sender::new(false), waiting: watch::Sender::new(0) }
    }

    /// Lets everything pass, from now on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Waits until something is held.
    pub async fn holds_one(&self) {
        // The sender lives as long as this.
        drop(self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await);
    }

    /// What a server does with a request or a reply that it holds: waits here. For proxies of a test's
    /// own.
    pub async fn pass(&self) {
        self.waiting.send_modify(|waiting| *waiting += 1);
        drop(self.released.subscribe().wait_for(|released| *released).await);
    }
}

type Landing = Pin<Box<dyn Future<Output = u16> + Send>>;

/// Requests that are on their way until the test lands them. Clones are one.
#[derive(Clone, Default)]
pub struct Late(Arc<Mutex<Vec<Landing>>>);

impl Late {
    /// Nothing is on its way yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets all that is on its way arrive now, and tells the status that each would have got.
    pub async fn land(&self) -> Vec<u16> {
        let landing = std::mem::take(&mut *self.lock());
        let mut statuses = Vec::new();
        for request in landing {
            statuses.push(request.await);
        }
        statuses
    }

    /// How many requests are on their way.
    #[must_use]
    pub fn on_their_way(&self) -> usize {
        self.lock().len()
    }

    /// Puts a request on its way: `landing` lets it arrive, and tells the status that it got. For
    /// proxies of a test's own.
    pub fn push(&self, landing: impl Future<Output = u16> + Send + 'static) {
        self.lock().push(Box::pin(landing));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Landing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("on_their_way", &self.on_their_way()).finish()
    }
}

/// A request as it came: what a test chooses faults by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Seen {
    /// Its method.
    pub method: Method,
    /// The key in the bucket; empty for the bucket itself.
    pub key: String,
    /// Its headers.
    pub headers: HeaderMap,
}

type Choose = Box<dyn FnMut(&Seen) -> Option<Fault> + Send>;

/// The faults that are to come.
#[derive(Default)]
pub(super) struct Faults {
    queued: Mutex<VecDeque<(Method, Fault)>>,
    choose: Mutex<Option<Choose>>,
}

impl Faults {
    pub(super) fn push(&self, method: Method, fault: Fault) {
        self.queued.lock().unwrap_or_else(PoisonError::into_inner).push_back((method, fault));
    }

    pub(super) fn choose(&self, choose: Option<Choose>) {
        *self.choose.lock().unwrap_or_else(PoisonError::into_inner) = choose;
    }

    /// The fault that this request meets.
    pub(super) fn take(&self, asked: &Asked) -> Option<Fault> {
        let mut queued = self.queued.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = queued.iter().position(|(method, _)| *method == asked.seen.method) {
            return queued.remove(index).map(|(_, fault)| fault);
        }
        let mut choose = self.choose.lock().unwrap_or_else(PoisonError::into_inner);
        choose.as_mut().and_then(|choose| choose(&asked.seen))
    }
}

/// A body without an end.
#[derive(Debug)]
pub(super) struct Endless;

impl http_body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 4096])))))
    }
}
