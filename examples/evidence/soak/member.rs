//! One process as its parent sees it.

use crate::{
    faketime::Wall,
    processes::line,
    proxy::Proxy,
    wire::{Plan, Say, Tell},
};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    collections::{BTreeSet, VecDeque},
    io,
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
};

/// How many lines of each process are kept, to be shown if something fails.
const LINES_KEPT: usize = 8;

/// What a process was heard of.
#[derive(Debug)]
pub(crate) enum Heard {
    Said(Say),
    /// A line of its log.
    Logged(String),
    /// It closed its output: it has ended.
    Gone,
}

/// Everything that is heard of one cluster: from which member, and which of its lives.
pub(crate) type Hear = mpsc::UnboundedSender<(usize, u64, Heard)>;

/// A place in a cluster that a process has, and another one after it was killed.
pub(crate) struct Member {
    plan: Plan,
    index: usize,
    program: PathBuf,
    pub(crate) wall: Option<Wall>,
    pub(crate) proxy: Option<Proxy>,
    hear: Hear,
    /// How often it was started.
    pub(crate) life: u64,
    running: Option<Running>,
    pub(crate) is_frozen: bool,
    last_lines: VecDeque<String>,
}

/// Dropping it kills the process.
struct Running {
    child: Child,
    tells: mpsc::UnboundedSender<Tell>,
}

impl Member {
    pub(crate) fn new(index: usize, plan: Plan, program: &Path, hear: Hear) -> Self {
        let (program, last_lines) = (program.to_owned(), VecDeque::new());
        Self {
            plan,
            index,
            program,
            wall: None,
            proxy: None,
            hear,
            life: 0,
            running: None,
            is_frozen: false,
            last_lines,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.plan.instance
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Starts a process in this place.
    pub(crate) fn start(&mut self) -> io::Result<()> {
        self.life += 1;
        let mut command = Command::new(&self.program);
        command.arg("child").arg(line::encode(&self.plan).trim_end());
        if let Some(wall) = &self.wall {
            command.envs(wall.env());
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        // Only its first life finds the cluster new.
        self.plan.is_first = false;
        let missing = || io::Error::other("the process was started without its pipes");
        let (tells, told) = mpsc::unbounded_channel();
        tokio::spawn(tell(child.stdin.take().ok_or_else(missing)?, told));
        let said = child.stdout.take().ok_or_else(missing)?;
        let logged = child.stderr.take().ok_or_else(missing)?;
        let understood = |text: String| match line::decode(&text) {
            Some(say) => Heard::Said(say),
            None => Heard::Logged(text),
        };
        let from = (self.index, self.life);
        tokio::spawn(listen(said, from, self.hear.clone(), understood, Some(Heard::Gone)));
        tokio::spawn(listen(logged, from, self.hear.clone(), Heard::Logged, None));
        self.running = Some(Running { child, tells });
        self.is_frozen = false;
        Ok(())
    }

    /// Keeps what is worth being shown.
    pub(crate) fn hear(&mut self, heard: &Heard) {
        let text = match heard {
            Heard::Said(Say::Renewed { .. }) => return,
            Heard::Said(say) => line::encode(say),
            Heard::Logged(text) => text.clone(),
            Heard::Gone => {
                self.running = None;
                "(it ended)".to_owned()
            }
        };
        if self.last_lines.len() == LINES_KEPT {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(text.trim_end().to_owned());
    }

    pub(crate) fn last_lines(&self) -> impl Iterator<Item = &str> {
        self.last_lines.iter().map(String::as_str)
    }

    pub(crate) fn tell(&self, tell: Tell) {
        if let Some(running) = &self.running {
            // If it is gone, that is heard.
            let _ = running.tells.send(tell);
        }
    }

    /// SIGKILL; returns once the process is dead.
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        if let Some(mut running) = self.running.take() {
            running.child.kill().await?;
        }
        self.is_frozen = false;
        Ok(())
    }

    /// SIGTERM: stop gracefully.
    pub(crate) fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// SIGSTOP.
    pub(crate) fn freeze(&mut self) -> io::Result<()> {
        self.signal(Signal::STOP)?;
        self.is_frozen = true;
        Ok(())
    }

    /// SIGCONT.
    pub(crate) fn thaw(&mut self) -> io::Result<()> {
        self.is_frozen = false;
        self.signal(Signal::CONT)
    }

    /// Whether it holds one of these locks, by their inodes. (A process that is stopped then keeps
    /// everybody else out.)
    pub(crate) fn holds(&self, locks: &BTreeSet<u64>) -> bool {
        let Some(pid) = self.running.as_ref().and_then(|running| running.child.id()) else {
            return false;
        };
        let table = std::fs::read_to_string("/proc/locks").unwrap_or_default();
        table.lines().any(|line| {
            // 1: FLOCK  ADVISORY  WRITE 4321 fe:00:12345 0 EOF; who waits has an arrow behind the number.
            let fields: Vec<_> = line.split_whitespace().collect();
            let [_, "FLOCK", _, _, owner, file, ..] = fields[..] else { return false };
            let inode = file.rsplit(':').next().and_then(|inode| inode.parse().ok());
            owner.parse() == Ok(pid) && inode.is_some_and(|inode| locks.contains(&inode))
        })
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        let id = self.running.as_ref().and_then(|running| running.child.id());
        let pid = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
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
    (index, life): (usize, u64),
    hear: Hear,
    understood: impl Fn(String) -> Heard,
    at_the_end: Option<Heard>,
) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        // Nobody listens any more once the soak is over.
        let _ = hear.send((index, life, understood(text)));
    }
    if let Some(end) = at_the_end {
        let _ = hear.send((index, life, end));
    }
}
