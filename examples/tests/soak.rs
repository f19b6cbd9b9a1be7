//! The soak and the auditor as programs; and that the soak can fail.
//!
//! Where `libfaketime` is not installed (Debian: faketime), the jumps of wall clocks are reported as
//! *ignored*.
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

#[path = "../evidence/soak/faketime.rs"]
#[allow(dead_code, reason = "the test only looks for the library")]
mod faketime;
mod program;

use fencing::{Clock as _, SystemClock};
use lease_s3::testing::TestServer;
use libtest_mimic::{Arguments, Trial};
use program::example;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Output, Stdio},
    time::Duration,
};

macro_rules! trial {
    ($test:ident) => {
        Trial::test(stringify!($test), || {
            $test();
            Ok(())
        })
    };
}

fn main() {
    let has_no_library = faketime::library().is_none();
    let trials = vec![
        trial!(the_soak_passes_and_leaves_nothing),
        trial!(processes_that_ignore_their_fence_are_found_with_the_pair),
        trial!(a_gate_that_lets_everything_in_is_found),
        trial!(too_few_kills_are_a_failure),
        trial!(nothing_is_left_when_the_soak_is_killed_while_a_process_is_frozen),
        trial!(what_the_soak_cannot_do_is_refused_with_what_to_do),
        trial!(the_auditor_reads_files_and_its_input_and_its_status_is_its_verdict),
        trial!(networks_fail_on_a_bucket_and_nothing_is_left_in_it),
        trial!(clocks_jump_and_the_fence_shuts).with_ignored_flag(has_no_library),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

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

fn clocks_jump_and_the_fence_shuts() {
    let scratch = tempfile::tempdir().unwrap();
    // Among so many jumps there is one forward of an active process.
    let args = ["--minutes", "0.2", "--clusters", "3", "--only", "jump"];
    let output = soak(scratch.path(), &args);
    let printed = text(&output);
    assert!(output.status.success(), "{printed}");
    assert!(closing(&printed, "jumps") > 3, "{printed}");
    assert!(printed.contains("nothing has to happen"), "{printed}");
    assert!(printed.contains("the fence shut, and somebody is active again"), "{printed}");
}

fn networks_fail_on_a_bucket_and_nothing_is_left_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let server = runtime.block_on(TestServer::start()).unwrap();
    let output = example("soak")
        .args(["--minutes", "0.4", "--clusters", "3", "--only", "cut"])
        .args(["--store", &server.url("demo")])
        .env("TMPDIR", scratch.path())
        .envs(server.env())
        .output()
        .unwrap();
    let printed = text(&output);
    assert!(output.status.success(), "{printed}");
    assert!(closing(&printed, "cuts") > 3, "{printed}");
    assert_eq!(server.keys(), [""; 0], "nothing stays behind");
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing stays behind");
}

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
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "only the ledger stays behind");
    // It says the same to whoever audits it again.
    let again = example("audit").arg("--torn-lines-are-last-words").arg(&ledger).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(text(&again).contains("two tenures overlapped for "), "{}", text(&again));
}

fn a_gate_that_lets_everything_in_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    // A process that is frozen between its check and its write: no fence helps, only the gate.
    let args = ["--minutes", "0.3", "--clusters", "3", "--only", "freeze", "--break", "open-gate"];
    let output = soak(scratch.path(), &args);
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("its write of line "), "{printed}");
}

fn too_few_kills_are_a_failure() {
    let scratch = tempfile::tempdir().unwrap();
    let args = ["--minutes", "0.02", "--clusters", "1", "--only", "stop", "--kills", "3"];
    let output = soak(scratch.path(), &args);
    let printed = text(&output);
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(printed.contains("FAILED: 0 kills, and 3 were asked for"), "{printed}");
}

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
