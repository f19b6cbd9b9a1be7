//! One child process as its parent sees it.

use crate::{
    ledger::Side,
    processes::{line, place::Place},
    wire::{Moment, Say, Tell},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{collections::VecDeque, io, path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
};

/// How many lines of each process are kept, to be shown if a round fails.
const LINES_KEPT: usize = 6;

/// How a child is started.
pub(crate) struct Plan<'a> {
    pub(crate) side: Side,
    pub(crate) program: &'a Path,
    /// Where the lease is, and whose it is.
    pub(crate) store: &'a Place,
    pub(crate) cluster: &'a str,
    /// Where the instance keeps what it remembers.
    pub(crate) instance: &'a Path,
    pub(crate) ttl: Duration,
    pub(crate) renew: Duration,
    pub(crate) first: bool,
    pub(crate) phase_lock: bool,
}

/// Something that a child did.
#[derive(Debug)]
pub(crate) enum Heard {
    Said(Say),
    /// A line of its log.
    Logged(String),
    /// It closed its output: it has ended.
    Gone,
}

/// A running child. Dropping it kills the process.
pub(crate) struct Member {
    child: Child,
    tells: mpsc::UnboundedSender<Tell>,
    last_lines: VecDeque<String>,
    pub(crate) started_at: Option<Moment>,
    pub(crate) has_seen_lease: bool,
    /// When it read the lease.
    pub(crate) reads: Vec<Moment>,
    /// How close behind the renewals it reads, once it has found when they come.
    pub(crate) phase: Option<Duration>,
    pub(crate) is_gone: bool,
    /// From when until when it was stopped by SIGSTOP.
    pub(crate) frozen: Vec<(Moment, Option<Moment>)>,
    pub(crate) dead_at: Option<Moment>,
    pub(crate) was_killed: bool,
}

impl Member {
    pub(crate) fn start(
        plan: &Plan<'_>,
        heard: &mpsc::UnboundedSender<(Side, Heard)>,
    ) -> io::Result<Self> {
        let name = plan.side.name();
        let mut child = Command::new(plan.program)
            .arg("child")
            .args(["--store", &plan.store.to_string()])
            .args(["--cluster", plan.cluster])
            .arg("--instance")
            .arg(plan.instance)
            .args(["--name", name])
            .args(["--ttl-ms", &plan.ttl.as_millis().to_string()])
            .args(["--renew-ms", &plan.renew.as_millis().to_string()])
            .args(["--parent", &std::process::id().to_string()])
            .args(plan.first.then_some("--first"))
            .args((!plan.phase_lock).then_some("--no-phase-lock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("the child was started without its pipes");
        let (tells, told) = mpsc::unbounded_channel();
        tokio::spawn(tell(child.stdin.take().ok_or_else(missing)?, told));
        let said = child.stdout.take().ok_or_else(missing)?;
        let logged = child.stderr.take().ok_or_else(missing)?;
        let understood = |text: String| match line::decode(&text) {
            Some(say) => Heard::Said(say),
            None => Heard::Logged(text),
        };
        tokio::spawn(listen(said, plan.side, heard.clone(), understood, Some(Heard::Gone)));
        tokio::spawn(listen(logged, plan.side, heard.clone(), Heard::Logged, None));
        Ok(Self {
            child,
            tells,
            last_lines: VecDeque::new(),
            started_at: None,
            has_seen_lease: false,
            reads: Vec::new(),
            phase: None,
            is_gone: false,
            frozen: Vec::new(),
            dead_at: None,
            was_killed: false,
        })
    }

    pub(crate) fn hear(&mut self, heard: &Heard) {
        let line = match heard {
            // Too many to be worth a place among the last lines.
            Heard::Said(Say::Write { .. }) => return,
            Heard::Said(Say::Read { at }) => return self.reads.push(*at),
            Heard::Said(say) => {
                match say {
                    Say::Started { at } => self.started_at = Some(*at),
                    Say::Seen { .. } => self.has_seen_lease = true,
                    Say::Phase { behind, .. } => self.phase = *behind,
                    _ => {}
                }
                line::encode(say)
            }
            Heard::Logged(line) => line.clone(),
            Heard::Gone => {
                self.is_gone = true;
                self.dead_at.get_or_insert_with(Moment::now);
                "(it ended)".to_owned()
            }
        };
        if self.last_lines.len() == LINES_KEPT {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line.trim_end().to_owned());
    }

    pub(crate) fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.last_lines.iter().map(String::as_str)
    }

    pub(crate) fn tell(&self, tell: Tell) {
        // If the child is gone, that is heard.
        let _ = self.tells.send(tell);
    }

    /// SIGKILL; returns once the process is dead.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        self.child.kill().await?;
        self.dead_at = Some(Moment::now());
        self.was_killed = true;
        Ok(())
    }

    /// SIGTERM: stop gracefully.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP.
    pub(crate) fn freeze(&mut self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        self.frozen.push((Moment::now(), None));
        Ok(())
    }

    /// SIGCONT.
    pub(crate) fn thaw(&mut self) -> io::Result<()> {
        if let Some((_, until)) = self.frozen.last_mut() {
            *until = Some(Moment::now());
        }
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process has ended already"))?;
        Ok(kill_process(pid, signal)?)
    }
}

async fn tell(mut stdin: ChildStdin, mut tells: mpsc::UnboundedReceiver<Tell>) {
    while let Some(tell) = tells.recv().await {
        if stdin.write_all(line::encode(&tell).as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn listen(
    from: impl AsyncRead + Unpin,
    side: Side,
    heard: mpsc::UnboundedSender<(Side, Heard)>,
    understood: impl Fn(String) -> Heard,
    at_the_end: Option<Heard>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        // Nobody listens any more once the round is over.
        let _ = heard.send((side, understood(line)));
    }
    if let Some(end) = at_the_end {
        let _ = heard.send((side, end));
    }
}
