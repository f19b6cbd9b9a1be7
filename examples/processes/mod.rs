//! What the programs share that start processes of their own: `failover`, `shards` and `soak`.

#![allow(dead_code, reason = "each of them uses its part of it")]

pub(crate) mod line;
pub(crate) mod measure;
pub(crate) mod moment;
pub(crate) mod place;

use jiff::SignedDuration;
use std::{future::Future, io, time::Duration};
use tokio::signal::unix::{SignalKind, signal};

/// A length of time as it is given on the command line.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok());
    parsed.ok_or_else(|| "give a number with a unit, as in 1.5s, 500ms or 1m".to_owned())
}

/// Asks to be killed when the parent dies, however it dies and whatever state this process is in.
pub(crate) fn die_with(parent: i32) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // It may have died before that.
    let is_orphan =
        rustix::process::getppid().is_none_or(|pid| pid.as_raw_nonzero().get() != parent);
    if is_orphan { Err(io::Error::other("the parent has ended")) } else { Ok(()) }
}

/// Ends when the person, or the system, wants this to end.
pub(crate) fn interrupted() -> io::Result<impl Future<Output = ()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
