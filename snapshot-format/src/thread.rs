//! A thread of its own for what blocks or computes, beside any runtime or none.

use std::{io, thread};

/// Runs `work` on a new thread and waits for what it returns. Dropping the future leaves the thread
/// to end on its own.
pub(crate) async fn run<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    Running::start(name, work)?.join().await
}

/// What a thread will return.
#[derive(Debug)]
pub(crate) struct Running<T>(async_channel::Receiver<T>);

impl<T: Send + 'static> Running<T> {
    pub(crate) fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (done, result) = async_channel::bounded(1);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Whoever waited may be gone.
            let _ = done.try_send(work());
        })?;
        Ok(Self(result))
    }

    pub(crate) async fn join(self) -> io::Result<T> {
        self.0.recv().await.map_err(|_| io::Error::other("the thread panicked"))
    }
}
