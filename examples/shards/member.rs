//! One process as the one that started it sees it.

use crate::{
    args::Args,
    processes::{line, place::Place},
    wire::{Moment, Say},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{fmt, io, process::Stdio};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
    sync::mpsc,
};

/// Which of the processes, counted from 0 as they were started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct MemberId(pub(crate) u32);

impl MemberId {
    /// One letter; they come again after 26.
    pub(crate) fn letter(self) -> char {
        char::from_digit(10 + self.0 % 26, 36).unwrap_or('?')
    }
}

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.letter(), self.0 / 26)
    }
}

/// Something that a process did.
#[derive(Debug)]
pub(crate) enum Heard {
    Said(Say),
    /// It closed its output: it has ended.
    Gone,
}

/// A running process. Dropping it kills it.
pub(crate) struct Member {
    pub(crate) id: MemberId,
    child: Child,
    pub(crate) requests: u64,
}

impl Member {
    pub(crate) fn start(
        id: MemberId,
        args: &Args,
        place: &Place,
        heard: &mpsc::UnboundedSender<(MemberId, Heard)>,
    ) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg("child")
            .args(["--store", &place.to_string()])
            .args(["--name", &id.to_string()])
            .args(["--ttl-ms", &args.ttl.as_millis().to_string()])
            .args(["--renew-ms", &args.renew.as_millis().to_string()])
            .args(["--shards", &args.shards.to_string()])
            .args(["--parent", &std::process::id().to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = child.stdout.take().ok_or_else(|| io::Error::other("there is no pipe"))?;
        let heard = heard.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(said).lines();
            while let Ok(Some(said)) = lines.next_line().await {
                if let Some(say) = line::decode(&said) {
                    // Nobody listens any more at the end.
                    let _ = heard.send((id, Heard::Said(say)));
                }
            }
            let _ = heard.send((id, Heard::Gone));
        });
        Ok(Self { id, child, requests: 0 })
    }

    /// As `kill -9`; when it was certainly dead.
    pub(crate) async fn kill(&mut self) -> io::Result<Moment> {
        self.child.kill().await?;
        Ok(Moment::now())
    }

    /// Asks it to stop gracefully.
    pub(crate) fn stop(&self) -> io::Result<()> {
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("it has ended already"))?;
        Ok(kill_process(pid, Signal::TERM)?)
    }
}
