//! Where a driver runs: as a task of the service's runtime, or on a thread and a runtime of its own,
//! which blocking work in the service cannot starve.

use super::error::StartError;
use std::{future::Future, io};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// Prepares a driver in the background, waits until that has succeeded, and leaves it running there.
///
/// `gone` is cancelled by whatever ends the driver, a panic or the end of its runtime included. If this
/// future is dropped, the driver is dropped as soon as it is prepared.
pub(super) async fn start<T, Driving>(
    is_dedicated: bool,
    gone: CancellationToken,
    prepare: impl Future<Output = Result<(T, Driving), StartError>> + Send + 'static,
) -> Result<T, StartError>
where
    T: Send + 'static,
    Driving: Future<Output = ()> + Send + 'static,
{
    let (ready, started) = oneshot::channel();
    let gone = gone.drop_guard();
    // In a box, which goes before the driver begins: it is larger than that.
    let prepare = Box::pin(prepare);
    let main = async move {
        let _gone = gone;
        let prepared = prepare.await;
        match prepared {
            Ok((prepared, driving)) => {
                if ready.send(Ok(prepared)).is_ok() {
                    driving.await;
                }
            }
            // Whoever started it has gone if this cannot be told.
            Err(error) => drop(ready.send(Err(error))),
        }
    };
    if is_dedicated {
        on_a_thread(main)?;
    } else {
        tokio::spawn(main);
    }
    started.await.unwrap_or_else(|_| {
        let source = io::Error::other("the runtime shut down, or starting panicked");
        Err(StartError::Platform { what: "task to run in", source })
    })
}

/// Runs `main` to its end on a thread of its own. The thread ends with it.
fn on_a_thread(main: impl Future<Output = ()> + Send + 'static) -> Result<(), StartError> {
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
