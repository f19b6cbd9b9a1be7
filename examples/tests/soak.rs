//! The soak and the auditor as programs; and that the soak can fail.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod program;

use fencing::{Clock as _, SystemClock};
use program::example;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn soak(scratch: &Path, args: &[&str]) -> Output {
    example("soak").args(args).env("TMPDIR", scratch).output().unwrap()
}

/// The number behind `name=` in the closing line.
fn closing(printed: &str, name: &str) -> u64 {
    let line = printed
        .lines()
        .find(|line| line.starts_with("kills="))
        .unwrap_or_else(|| panic!("{printed}"));
    let number = line.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    number.unwrap().parse().unwrap()
}

#[test]
fn the_soak_passes_and_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let output = soak(
        scratch.path(),
        &[
            "--minutes",
            "0.4",
            "--clusters",
            "2",
            "--renewals",
            "2",
            "--only",
            "kill",
            "--only",
            "freeze",
        ],
    );
    let printed = text(&output);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("proved: no two of "), "{printed}");
    assert!(printed.contains("takeovers after a kill"), "{printed}");
    assert!(closing(&printed, "kills") > 0 && closing(&printed, "freezes") > 0, "{printed}");
    assert_eq!(closing(&printed, "overlaps"), 0);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn processes_that_ignore_their_fence_are_found_with_the_pair() {
    let scratch = tempfile::tempdir().unwrap();
    let ledger = scratch.path().join("ledger.jsonl");
    let output = soak(
        scratch.path(),
        &["--minutes", "0.2", "--clusters", "2", "--only", "freeze", "--break", "ignore-fence"]
            .into_iter()
            .chain(["--ledger", ledger.to_str().unwrap()])
            .collect::<Vec<_>>(),
    );
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("two tenures overlapped for "), "{printed}");
    assert!(closing(&printed, "overlaps") > 0, "{printed}");
    // The ledger says the same to whoever audits it again.
    let again = example("audit").arg("--torn-lines-are-last-words").arg(&ledger).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again).contains("two tenures overlapped for "), "{}", text(&again));
}

#[test]
fn a_gate_that_lets_everything_in_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    // A process that is frozen between its check and its write: no fence helps, only the gate.
    let args = ["--minutes", "0.3", "--clusters", "3", "--only", "freeze", "--break", "open-gate"];
    let output = soak(scratch.path(), &args);
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("its write of line "), "{printed}");
}

#[test]
fn too_few_kills_are_a_failure() {
    let scratch = tempfile::tempdir().unwrap();
    let args = ["--minutes", "0.02", "--clusters", "1", "--only", "stop", "--kills", "3"];
    let output = soak(scratch.path(), &args);
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("FAILED: 0 kills, and 3 were asked for"), "{printed}");
}

#[test]
fn nothing_is_left_when_the_soak_is_killed_while_a_process_is_frozen() {
    let scratch = tempfile::tempdir().unwrap();
    let ledger = scratch.path().join("ledger.jsonl");
    let mut soak = example("soak")
        .args(["--minutes", "5", "--clusters", "1", "--only", "freeze", "--ledger"])
        .arg(&ledger)
        .env("TMPDIR", scratch.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("a process to be frozen", || {
        fs::read_to_string(&ledger).is_ok_and(|text| text.contains("frozen for "))
    });
    assert!(!processes_of(scratch.path()).is_empty());
    let pid = Pid::from_raw(i32::try_from(soak.id()).unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    soak.wait().unwrap();
    until("all processes to end", || processes_of(scratch.path()).is_empty());
}

/// Looks again and again: nobody tells of processes that belong to nobody.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    while !is_so() {
        assert!(clock.monotonic() - begun < Duration::from_secs(60), "still waiting for {what}");
        std::thread::yield_now();
    }
}

/// The processes that were told of this directory.
fn processes_of(scratch: &Path) -> Vec<String> {
    let scratch = scratch.to_str().unwrap();
    let running = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        (line.contains(" child ") && line.contains(scratch)).then_some(line)
    });
    running.collect()
}

#[test]
fn what_the_soak_cannot_do_is_refused_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let there = scratch.path().join("there");
    fs::write(&there, "").unwrap();
    for (args, expected) in [
        (&["--minutes", "0"][..], "give minutes, as in 0.5 or 30"),
        (&["--minutes", "NaN"], "give minutes"),
        (&["--ttl", "1s", "--renew", "600ms"], "below half of the ttl"),
        (&["--clusters", "0"], "1..=64"),
        (&["--only", "flood"], "kill"),
        (&["--store", "ftp://bucket/ha"], "use s3://"),
        (&["--ledger", there.to_str().unwrap()], "give a ledger that is not there yet"),
    ] {
        let output = soak(scratch.path(), args);
        let printed = text(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {printed}");
        assert!(printed.contains(expected), "{args:?}: {printed}");
    }
}

const PROVED: &str = "{\"what\":\"begin\",\"instance\":\"a\",\"epoch\":1,\"at\":0,\"until\":9}\n";
const OVERLAP: &str = "{\"what\":\"begin\",\"instance\":\"b\",\"epoch\":2,\"at\":8,\"until\":20}\n";

#[test]
fn the_auditor_reads_files_and_its_input_and_its_status_is_its_verdict() {
    let scratch = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = scratch.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let (proved, overlap) = (file("proved", PROVED), file("overlap", OVERLAP));
    let garbage = file("garbage", "garbage\n");
    for (files, status, expected) in [
        (&[&proved][..], 0, "proved: no two of 1 tenures overlapped"),
        (&[&proved, &overlap], 1, "two tenures overlapped for 1ns"),
        (&[&proved, &garbage], 2, "line 2 is no entry"),
    ] {
        let output = example("audit").args(files).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output));
        assert!(text(&output).contains(expected), "{}", text(&output));
    }
    let missing = scratch.path().join("missing");
    let output = example("audit").arg(&missing).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("missing cannot be read"), "{}", text(&output));

    let mut reading =
        example("audit").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = reading.stdin.take().unwrap();
    input.write_all(format!("{PROVED}{OVERLAP}").as_bytes()).unwrap();
    drop(input);
    let output = reading.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
}
