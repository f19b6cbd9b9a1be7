//! What a child asks of the system, call by call.

use crate::{
    child::{BEGIN, END},
    support::{CHILD, CHILD_PATH, Skip},
};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A system call that concerns files, between the two marks.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Which call of this name it is, from the start of the process and from 1: how strace counts.
    pub(crate) nth: usize,
    /// All of it, as strace writes it, with the paths of handles.
    pub(crate) text: String,
}

impl Call {
    /// The strings among its arguments.
    pub(crate) fn strings(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut characters = self.text.chars();
        while characters.by_ref().any(|c| c == '"') {
            let mut string = String::new();
            while let Some(c) = characters.next() {
                match c {
                    '"' => break,
                    '\\' => string.extend(characters.next()),
                    c => string.push(c),
                }
            }
            found.push(string);
        }
        found
    }

    /// The file name of the handle that is its first argument.
    pub(crate) fn handle(&self) -> Option<PathBuf> {
        let (_, rest) = self.text.split_once('<')?;
        Some(rest.split_once('>')?.0.into())
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.text.rsplit_once(" = ").is_some_and(|(_, result)| !result.starts_with('-'))
    }
}

/// Calls that say nothing about files, or that end the process in ways of their own.
const OTHERS: [&str; 3] = ["mmap", "execve", "readlink"];

/// Runs the child `mode` on `directory` and returns its calls between the two marks, with its exit
/// code.
pub(crate) fn record(mode: &str, directory: &Path) -> Result<(Vec<Call>, i32), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("trace");
    let mut strace = strace(mode, directory);
    strace.args(["-y", "-s", "100000", "-e", "trace=%file,%desc", "-e", "signal=none", "-o"]);
    let output = strace.arg(&file).arg(std::env::current_exe().unwrap()).output();
    let Ok(output) = output else { return Err(Skip("strace is missing".into())) };
    let Ok(trace) = fs::read_to_string(&file) else {
        return Err(Skip("strace may not trace".into()));
    };
    if !trace.contains(BEGIN) {
        return Err(Skip(format!("strace may not trace: {output:?}")));
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut calls, mut inside) = (Vec::new(), false);
    for line in trace.lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        let nth = counts.entry(name).or_default();
        *nth += 1;
        if line.contains(END) {
            break;
        }
        if inside && !OTHERS.contains(&name) {
            calls.push(Call { name: name.into(), nth: *nth, text: line.into() });
        }
        inside |= line.contains(BEGIN);
    }
    Ok((calls, output.status.code().unwrap()))
}

/// Runs the child with faults, each as strace's `-e inject=` takes it. `None`: it was killed.
pub(crate) fn run(mode: &str, directory: &Path, faults: &[String]) -> Option<i32> {
    let mut strace = strace(mode, directory);
    strace.args(["-o", "/dev/null"]);
    if faults.iter().all(|fault| fault.contains(":error=")) {
        // Only the calls that fail are stopped at, by a filter in the kernel: several times as fast.
        // (Signals are not delivered so.)
        let names: Vec<_> = faults.iter().filter_map(|fault| fault.split(':').next()).collect();
        strace.args(["-f", "--seccomp-bpf", "-e", &format!("trace={}", names.join(","))]);
    }
    for fault in faults {
        strace.args(["-e", &format!("inject={fault}")]);
    }
    let output = strace.arg(std::env::current_exe().unwrap()).output().unwrap();
    let code = output.status.code();
    assert!(
        code.is_none_or(|code| [0, 10, 11, 12, 13].contains(&code)),
        "{faults:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    code
}

fn strace(mode: &str, directory: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.arg("-qq").env(CHILD, mode).env(CHILD_PATH, directory);
    strace
}

/// What is injected at each of `calls`, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The process is killed before the call is made.
    Kill,
    /// The call fails, and so does every one after it.
    AllFromHere,
    /// The call fails, and nothing else.
    This,
}

impl Fault {
    /// For strace: this fault at `calls[at]`.
    pub(crate) fn at(self, calls: &[Call], at: usize) -> Vec<String> {
        let Call { name, nth, .. } = &calls[at];
        match self {
            Self::Kill => vec![format!("{name}:signal=KILL:when={nth}")],
            Self::This => vec![format!("{name}:error=EIO:when={nth}")],
            Self::AllFromHere => {
                let mut first: BTreeMap<&str, usize> = BTreeMap::new();
                for call in &calls[at..] {
                    first.entry(&call.name).or_insert(call.nth);
                }
                // Of the names that are not called any more without a fault, all later calls: an
                // error may lead to them.
                for call in &calls[..at] {
                    let later = call.nth + 1;
                    let known = first.entry(&call.name).or_insert(later);
                    if !calls[at..].iter().any(|c| c.name == call.name) {
                        *known = later;
                    }
                }
                first.iter().map(|(name, nth)| format!("{name}:error=EIO:when={nth}+")).collect()
            }
        }
    }
}
