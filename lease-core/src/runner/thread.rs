//! A thread with a runtime of its own, which blocking work in the service cannot starve.

use super::error::StartError;
use std::future::Future;

/// Runs `main` to its end on a thread of its own. The thread ends with it.
pub(super) fn spawn(main: impl Future<Output = ()> + Send + 'static) -> Result<(), StartError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| StartError::Platform { what: "runtime to renew in", source })?;
    std::thread::Builder::new()
        .name("lease-renewal".to_owned())
        .spawn(move || {
            runtime.block_on(main);
            // A request that hangs in a blocking call must not keep the thread.
            runtime.shutdown_background();
        })
        .map(drop)
        .map_err(|source| StartError::Platform { what: "thread to renew on", source })
}
