//! Running work under a tenure: told to stop in time, released only after it has ended.

use super::{
    error::{RunError, TenureEnded},
    tenure::Tenure,
};
use crate::machine::EndReason;
use futures_util::FutureExt;
use std::{any::Any, future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};
use tokio_util::sync::CancellationToken;

impl Tenure {
    /// Runs `work` under the tenure, and gives the lease back once the work has ended.
    ///
    /// The lease is renewed meanwhile. The token that `work` gets is cancelled when the tenure is
    /// lost, or when the manager is being stopped; the work then has
    /// [`step_down_budget`](super::LeaseBuilder::step_down_budget) to end. What it spawns it has to
    /// wait for: a release says that nothing acts under this epoch any more.
    ///
    /// - The work ends while the lease is held: released, and its result is returned.
    /// - The work does not end in time: it is dropped where it stands. There is no release, since
    ///   something of it may still run; the lease lapses.
    /// - The work panics: the tenure ends, the lease lapses.
    ///
    /// # Errors
    ///
    /// [`RunError`] tells these apart.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped where it stands; the fence is shut and the
    /// lease lapses.
    pub async fn run<T, E, F, Fut>(self, work: F) -> Result<T, RunError<T, E>>
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.guard(work(self.lost())).await
    }

    /// Runs `work` to its end or to the end of its budget, and ends the tenure accordingly.
    pub(super) async fn guard<T, E>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, RunError<T, E>> {
        match to_its_end(work, &self.lost(), self.step_down_budget).await {
            None => {
                self.fail();
                Err(RunError::Overran { ended: self.tell_end().await })
            }
            Some(Err(panic)) => {
                self.fail();
                self.ended().await;
                Err(RunError::Panicked { epoch: self.epoch(), message: panic_message(&*panic) })
            }
            Some(Ok(result)) => self.finish(result).await,
        }
    }

    async fn finish<T, E>(&self, work: Result<T, E>) -> Result<T, RunError<T, E>> {
        if !self.fence().is_open() {
            return Err(RunError::Lost { ended: self.tell_end().await, work });
        }
        match self.give_back().await {
            // The lease was held to the end of the work; what became of the release is in the log.
            EndReason::Released | EndReason::ReleaseInDoubt | EndReason::Dropped => {
                work.map_err(RunError::Work)
            }
            reason => {
                let ended = TenureEnded { epoch: self.epoch(), reason };
                Err(RunError::Lost { ended, work })
            }
        }
    }

    async fn tell_end(&self) -> TenureEnded {
        TenureEnded { epoch: self.epoch(), reason: self.ended().await }
    }
}

/// Runs work to its end; once it was told to stop, to the end of its budget at most. `None`: it overran
/// that, and was dropped where it stood.
pub(super) async fn to_its_end<W: Future>(
    work: W,
    told_to_stop: &CancellationToken,
    budget: Duration,
) -> Option<std::thread::Result<W::Output>> {
    let mut work = pin!(AssertUnwindSafe(work).catch_unwind());
    tokio::select! {
        biased;
        ended = &mut work => return Some(ended),
        () = told_to_stop.cancelled() => {}
    }
    tokio::time::timeout(budget, work).await.ok()
}

/// What a panic said.
pub(super) fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("something that is no text").to_owned()
}
