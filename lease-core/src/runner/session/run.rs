//! Running work under a named lease.

use super::{
    super::run::{panic_message, to_its_end},
    error::NamedRunError,
    tenure::NamedTenure,
};
use crate::session::LeaseEndReason;
use std::future::Future;
use tokio_util::sync::CancellationToken;

impl NamedTenure {
    /// Runs `work` under the lease, and gives the lease back once the work has ended.
    ///
    /// The token that `work` gets is cancelled when the tenure is lost, or when the manager is being
    /// stopped; the work then has [`step_down_budget`](super::SessionBuilder::step_down_budget) to end.
    /// What it spawns it has to wait for: a release says that nothing acts under this epoch any more.
    ///
    /// # Errors
    ///
    /// [`NamedRunError`]: the tenure was lost meanwhile, the work failed, panicked, or did not stop in
    /// time.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped where it stands; the fence is shut, and the lease
    /// is freed T later.
    pub async fn run<T, E, F, Fut>(self, work: F) -> Result<T, NamedRunError<T, E>>
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let lost = self.lost();
        let ended = to_its_end(work(lost.clone()), &lost, self.step_down_budget()).await;
        let (lease, epoch) = (self.lease().clone(), self.epoch());
        match ended {
            None => {
                self.lapse();
                Err(NamedRunError::Overran { lease, epoch })
            }
            Some(Err(panic)) => {
                self.lapse();
                Err(NamedRunError::Panicked { lease, epoch, message: panic_message(&*panic) })
            }
            Some(Ok(work)) => {
                let was_open = self.fence().is_open();
                let reason = self.give_back().await;
                // Open to the end of the work: what became of the session after that is in the log.
                let is_own_end = was_open
                    && matches!(reason, LeaseEndReason::Released | LeaseEndReason::Session(_));
                match is_own_end {
                    true => work.map_err(NamedRunError::Work),
                    false => Err(NamedRunError::Lost { ended: self.tell_end(reason), work }),
                }
            }
        }
    }
}
