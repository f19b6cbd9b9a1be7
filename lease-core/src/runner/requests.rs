//! What a driver has asked of the store and of the disk, and has no answer to yet.
//!
//! The requests run within the driver's own task: an answer is taken in by whom it wakes, and one
//! that is forgotten is gone before the next is sent. (A task for each cost a renewal two hops between
//! threads, which was most of what it took beside the store.)

use crate::{
    history::{History, InstanceDir},
    key::{ClusterName, ObjectKey},
    machine::{Entropy, Note, RequestId},
    record::{Nonce, Ttl},
    store::{Cause, LeaseStore, Read, StoreError, Version},
};
use bytes::Bytes;
use futures_util::{
    FutureExt,
    future::{AbortHandle, Abortable, BoxFuture},
    stream::{FuturesUnordered, StreamExt},
};
use std::{future::Future, panic::AssertUnwindSafe, sync::Arc, time::Duration};

/// A runtime's timer stands still while the machine is suspended: no driver naps for longer than this (or
/// a quarter of R, if that is more and its naps are what is paid for), so that what came due meanwhile is
/// noticed soon after. (A fence that is asked notices it at once.)
pub(super) const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Requests under way, and how each is forgotten.
pub(super) struct Requests<A> {
    answers: FuturesUnordered<Abortable<BoxFuture<'static, (RequestId, A)>>>,
    under_way: Vec<(RequestId, AbortHandle)>,
}

impl<A: 'static> Requests<A> {
    pub(super) fn new() -> Self {
        Self { answers: FuturesUnordered::new(), under_way: Vec::new() }
    }

    pub(super) fn send(
        &mut self,
        id: RequestId,
        request: impl Future<Output = A> + Send + 'static,
    ) {
        let (handle, registration) = AbortHandle::new_pair();
        let tagged = request.map(move |answer| (id, answer)).boxed();
        self.answers.push(Abortable::new(tagged, registration));
        self.under_way.push((id, handle));
    }

    /// The answer to it does not matter any more.
    pub(super) fn forget(&mut self, id: RequestId) {
        if let Some(handle) = self.remove(id) {
            handle.abort();
        }
    }

    /// The next answer; without end while nothing is under way. Nothing is lost if the future is dropped.
    pub(super) async fn answer(&mut self) -> (RequestId, A) {
        // A store that always answers at once must not keep the thread from everybody else.
        tokio::task::consume_budget().await;
        loop {
            match self.answers.next().await {
                Some(Ok((id, answer))) => {
                    self.remove(id);
                    return (id, answer);
                }
                Some(Err(_forgotten)) => {}
                None => std::future::pending().await,
            }
        }
    }

    fn remove(&mut self, id: RequestId) -> Option<AbortHandle> {
        let position = self.under_way.iter().position(|(other, _)| *other == id)?;
        Some(self.under_way.swap_remove(position).1)
    }
}

/// Creates the object, or replaces the version of it that is given.
pub(super) async fn write(
    store: Arc<dyn LeaseStore>,
    key: ObjectKey,
    content: Bytes,
    condition: Option<Version>,
) -> Result<Version, StoreError> {
    unwound(async {
        match condition {
            None => store.create_if_absent(&key, content).await,
            Some(version) => store.replace_if_match(&key, content, &version).await,
        }
    })
    .await
}

/// Reads the object, unless it is still the version that is given.
pub(super) async fn read(
    store: Arc<dyn LeaseStore>,
    key: ObjectKey,
    unless: Option<Version>,
) -> Result<Read, StoreError> {
    unwound(store.read_versioned(&key, unless.as_ref())).await
}

/// A store that panics has done who knows what: that is a doubt like any other. (One that panics before its
/// future is there too: called through an `Arc`, it is called when that is polled.)
async fn unwound<T>(request: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
    AssertUnwindSafe(request).catch_unwind().await.unwrap_or_else(|_| {
        Err(StoreError::InDoubt(Cause::new("the store panicked; its log may say more")))
    })
}

/// Writes down what has to outlive the process.
pub(super) async fn persist(
    dir: Arc<InstanceDir>,
    cluster: ClusterName,
    note: Note,
) -> Result<(), String> {
    let write = move || dir.update(&cluster, |history| apply(&dir, history, &note));
    match tokio::task::spawn_blocking(write).await {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(join) => Err(join.to_string()),
    }
}

fn apply(dir: &InstanceDir, history: &mut History, note: &Note) {
    if let Some(tenure) = note.opened {
        history.last_epoch = Some(tenure.epoch);
        history.opened = Some(dir.opening(tenure));
    }
    if let Some(nonce) = note.release {
        history.last_release = Some(nonce);
    }
    history.seen_authenticated_lease |= note.seen_authenticated;
    if let Some(ttl) = note.largest_ttl.and_then(|ttl| Ttl::new(ttl).ok()) {
        history.largest_ttl = Some(ttl);
    }
    if note.newest_named_snapshot.is_some() {
        history.newest_named_snapshot.clone_from(&note.newest_named_snapshot);
    }
}

/// Nonces from the operating system, drawn ahead: a machine cannot be told that there are none.
#[derive(Default)]
pub(super) struct OsEntropy(Option<Nonce>);

impl OsEntropy {
    pub(super) fn is_ready(&mut self) -> bool {
        if self.0.is_none() {
            self.0 = Nonce::random().ok();
        }
        self.0.is_some()
    }
}

impl Entropy for OsEntropy {
    fn nonce(&mut self) -> Nonce {
        // At most one is drawn for one action, and `is_ready` was asked before.
        self.0.take().unwrap_or_else(|| Nonce::from_bytes([0; 16]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    fn id(number: u64) -> RequestId {
        RequestId(number)
    }

    #[tokio::test]
    async fn each_is_answered_once() {
        let mut requests = Requests::new();
        for number in 0..3 {
            requests.send(id(number), async move { number });
        }
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(requests.answer().await);
        }
        answers.sort_unstable_by_key(|(_, answer)| *answer);
        assert_eq!(answers, [(id(0), 0), (id(1), 1), (id(2), 2)]);
        assert!(requests.answer().now_or_never().is_none());
        assert!(requests.under_way.is_empty());
    }

    #[tokio::test]
    async fn what_is_forgotten_is_dropped_and_never_answered() {
        struct Tells(Arc<AtomicBool>);
        impl Drop for Tells {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let mut requests = Requests::new();
        let is_gone = Arc::new(AtomicBool::new(false));
        let tells = Tells(Arc::clone(&is_gone));
        requests.send(id(1), async move {
            let _tells = tells;
            std::future::pending().await
        });
        requests.send(id(2), async { "kept" });
        requests.forget(id(1));
        requests.forget(id(7));
        assert_eq!(requests.answer().await, (id(2), "kept"));
        assert!(requests.answer().now_or_never().is_none());
        assert!(is_gone.load(SeqCst));
    }

    /// Written by hand: its methods panic before there is a future.
    #[derive(Debug)]
    struct Panics;

    impl LeaseStore for Panics {
        fn read_versioned<'a, 'b, 'c, 'd>(
            &'a self,
            _: &'b ObjectKey,
            _: Option<&'c Version>,
        ) -> BoxFuture<'d, Result<Read, StoreError>>
        where
            'a: 'd,
            'b: 'd,
            'c: 'd,
        {
            panic!("on purpose")
        }

        fn create_if_absent<'a, 'b, 'd>(
            &'a self,
            _: &'b ObjectKey,
            _: Bytes,
        ) -> BoxFuture<'d, Result<Version, StoreError>>
        where
            'a: 'd,
            'b: 'd,
        {
            panic!("on purpose")
        }

        fn replace_if_match<'a, 'b, 'c, 'd>(
            &'a self,
            _: &'b ObjectKey,
            _: Bytes,
            _: &'c Version,
        ) -> BoxFuture<'d, Result<Version, StoreError>>
        where
            'a: 'd,
            'b: 'd,
            'c: 'd,
        {
            panic!("on purpose")
        }
    }

    #[tokio::test]
    async fn a_store_that_panics_leaves_a_doubt() {
        let store: Arc<dyn LeaseStore> = Arc::new(Panics);
        let key = ObjectKey::new("lease.json").unwrap();
        let in_doubt = |error: StoreError| assert!(matches!(error, StoreError::InDoubt(_)));
        for condition in [None, Some(Version::new("a"))] {
            let written = write(Arc::clone(&store), key.clone(), Bytes::new(), condition).await;
            in_doubt(written.unwrap_err());
        }
        in_doubt(read(store, key, None).await.unwrap_err());
    }

    #[tokio::test]
    async fn an_answer_that_nobody_waited_for_to_its_end_is_kept() {
        let mut requests = Requests::new();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        requests.send(id(1), async { receiver.await.unwrap() });
        assert!(requests.answer().now_or_never().is_none());
        sender.send(5).unwrap();
        assert_eq!(requests.answer().now_or_never(), Some((id(1), 5)));
    }
}
