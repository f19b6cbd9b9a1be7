//! A value that tasks wait on, without a runtime.

use std::{
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Poll, Waker},
};

/// A value behind a lock; every change wakes whoever waits for it to become something.
#[derive(Debug, Default)]
pub(super) struct Watched<T> {
    inner: Mutex<Inner<T>>,
}

#[derive(Debug, Default)]
struct Inner<T> {
    value: T,
    waiting: Vec<Waker>,
}

impl<T> Watched<T> {
    /// Looks at the value.
    pub(super) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock().value)
    }

    /// Changes the value and wakes everyone who waits.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut inner = self.lock();
        let result = change(&mut inner.value);
        let waiting = std::mem::take(&mut inner.waiting);
        // Wakers run foreign code: never under the lock.
        drop(inner);
        waiting.into_iter().for_each(Waker::wake);
        result
    }

    /// Waits until `reached` says so. Cancel safe: dropping it forgets nothing but the wish.
    pub(super) async fn until(&self, mut reached: impl FnMut(&T) -> bool) {
        poll_fn(|context| {
            let mut inner = self.lock();
            if reached(&inner.value) {
                return Poll::Ready(());
            }
            if !inner.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                inner.waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// A test that panics elsewhere must not turn every later look into a second panic.
    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
