//! Processes that share a gate and are killed at random points.

use crate::{
    file::epoch,
    support::{CHILD_PATH, child, test},
};
use fencing::{
    FileGate,
    durable::{Directory, WriteError},
    gate::FileGateError,
};
use libtest_mimic::Trial;
use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, Stdio},
    sync::mpsc,
};

const ROUNDS: usize = 150;
const WRITERS: usize = 3;

pub(crate) fn trials() -> Vec<Trial> {
    vec![test("processes_that_are_killed_never_take_the_mark_back", killed)]
}

/// What a child does, by the name that its test gave it.
pub(crate) fn run_child(mode: &str) {
    let path = PathBuf::from(std::env::var_os(CHILD_PATH).unwrap());
    let gate = FileGate::open(path).unwrap();
    let words: Vec<&str> = mode.split(' ').collect();
    match words[..] {
        ["hold", token] => {
            let _admitted = gate.admit(epoch(token.parse().unwrap())).unwrap();
            loop {
                std::thread::park(); // until it is killed
            }
        }
        ["raise", token, "twice"] => {
            for _ in 0..2 {
                println!("{}", told(gate.raise(epoch(token.parse().unwrap()))));
            }
        }
        ["write", seed] => write_for_ever(&gate, seed.parse().unwrap()),
        _ => panic!("no such child: {mode}"),
    }
}

fn told(result: Result<(), FileGateError>) -> &'static str {
    match result {
        Ok(()) => "admitted",
        Err(FileGateError::NotDurable(WriteError::InDoubt { .. })) => "in doubt",
        Err(FileGateError::NotDurable(_)) => "not written",
        Err(FileGateError::NotSynced { .. }) => "not synced",
        Err(other) => panic!("{other}"),
    }
}

/// Tokens around the mark, some stale, some far ahead; each that is admitted is reported while the
/// admission is held.
fn write_for_ever(gate: &FileGate, seed: u64) {
    let (mut random, mut out) = (seed, std::io::stdout());
    loop {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let around = gate.highest().unwrap().map_or(1, |mark| mark.as_u64());
        let token = epoch((around + (random >> 60)).saturating_sub(6).max(1));
        match gate.admit(token) {
            Ok(admitted) => writeln!(out, "{}", admitted.token()).unwrap(),
            Err(error) => assert!(error.stale().is_some(), "{error}"),
        }
    }
}

/// A child that ends with its test, however that ends.
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    pub(crate) fn now(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A child, and what it reports.
struct Writer(Killed, mpsc::Receiver<u64>);

fn start(path: &std::path::Path, seed: u64) -> Writer {
    let mode = format!("write {seed}");
    let mut writer = child(&mode, path).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(writer.stdout.take().unwrap()).lines();
    let (sender, reports) = mpsc::channel();
    std::thread::spawn(move || {
        // A line that the kill cut short is no report.
        for token in lines.map_while(Result::ok).map_while(|line| line.parse().ok()) {
            if sender.send(token).is_err() {
                return;
            }
        }
    });
    Writer(Killed(writer), reports)
}

fn killed() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("mark");
    let gate = FileGate::open(&path).unwrap();
    let mut random = u64::from(std::process::id()) | 1;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let (mut reported, mut last, mut in_a_write) = (0, 0, 0);
    for round in 0..ROUNDS {
        let mut writers: Vec<Writer> = (0..WRITERS).map(|_| start(&path, next())).collect();
        for Writer(process, reports) in &mut writers {
            for _ in 0..next() % 4 {
                reported = reported.max(reports.recv().unwrap());
            }
            for _ in 0..next() % 300_000 {
                std::hint::spin_loop();
            }
            process.0.kill().unwrap();
        }
        for Writer(process, reports) in &mut writers {
            process.now();
            reported = reports.iter().fold(reported, u64::max);
        }
        // By a handle that has seen all along, and by one that sees it for the first time.
        let mark = gate.highest().unwrap().map_or(0, |mark| mark.as_u64());
        assert_eq!(
            FileGate::open(&path).unwrap().highest().unwrap().map_or(0, |m| m.as_u64()),
            mark
        );
        assert!(mark >= reported, "round {round}: {reported} was admitted, the mark is {mark}");
        assert!(mark >= last, "round {round}: the mark went back from {last} to {mark}");
        last = mark;
        let directory = Directory::open(scratch.path()).unwrap();
        in_a_write += directory.sweep_temporaries("mark".as_ref()).unwrap();
    }
    println!(
        "{ROUNDS} rounds, {} processes killed, {in_a_write} of them within a write; \
         mark {last}, highest admitted {reported}, 0 went back",
        ROUNDS * WRITERS
    );
    assert!(last > 1, "nothing was written: it proves nothing");
}
