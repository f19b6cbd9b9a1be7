//! The example `shards` as a program: on a directory, on a bucket, and what it refuses.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod program;

use lease_s3::testing::TestServer;
use program::example;
use std::{fs, path::Path, process::Output};

fn shards(scratch: &Path, args: &[&str]) -> Output {
    example("shards").args(args).env("TMPDIR", scratch).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Whether a balance came in time depends on what else this machine does, and is told; that no two held
/// a shard at once does not.
fn held(output: &Output) {
    let printed = text(output);
    assert!(printed.contains("changes=3 overlaps=0 "), "{printed}");
    assert!(printed.contains("proved: no two of "), "{printed}");
    let is_late = printed.contains("NO BALANCE IN TIME");
    assert_eq!(output.status.code(), Some(i32::from(is_late)), "{printed}");
}

const FEW: [&str; 8] = ["--changes", "3", "--shards", "16", "--ttl", "3s", "--renew", "1s"];

#[test]
fn shards_change_hands_and_no_two_hold_one() {
    let scratch = tempfile::tempdir().unwrap();
    held(&shards(scratch.path(), &FEW));
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn in_a_bucket_too_and_what_stays_there_is_told() {
    let scratch = tempfile::tempdir().unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let server = runtime.block_on(TestServer::start()).unwrap();
    let output = example("shards")
        .args(FEW)
        .args(["--store", &server.url("demo")])
        .env("TMPDIR", scratch.path())
        .envs(server.env())
        .output()
        .unwrap();
    held(&output);
    // This server lists nothing, so that nothing can be cleaned up.
    assert!(text(&output).contains("what this run wrote stays behind in s3://"));
}

#[test]
fn what_cannot_work_is_refused_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    for (args, says) in [
        (["--ttl", "1s", "--renew", "900ms"], "--ttl and --renew do not go together"),
        (["--store", "s3://bucket/p?colour=green", "--changes", "1"], "colour"),
        (["--store", "/nowhere/at/all", "--changes", "1"], "give another one with --store DIR"),
    ] {
        let output = shards(scratch.path(), &args);
        let printed = text(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{printed}");
        assert!(printed.contains(says), "{printed}");
    }
}
