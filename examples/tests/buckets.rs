//! The examples on a bucket: of an S3 server in this process.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod program;

use lease_core::{LeaseManager, Timing, auth::ClusterSecret, runner::LeaseBuilder};
use lease_s3::testing::{Quirk, TestServer};
use program::example;
use std::{process::Output, time::Duration};
use tokio::runtime::Runtime;

const SECRET: &str = "kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb";
const LEASE: &str = "demo/orders/lease.json";

/// A server on threads of its own.
fn s3() -> (Runtime, TestServer) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let server = runtime.block_on(TestServer::start()).unwrap();
    (runtime, server)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_demonstration_passes_on_a_bucket_and_leaves_nothing_in_it() {
    let scratch = tempfile::tempdir().unwrap();
    let (_runtime, server) = s3();
    let output = example("failover")
        .args(["--store", &server.url("demo")])
        .args(["--ttl", "1.5s", "--renew", "0.5s", "--rounds", "1", "--seed", "21"])
        .env("TMPDIR", scratch.path())
        .envs(server.env())
        .output()
        .unwrap();
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}{}", text(&output.stderr));
    assert!(
        printed.contains("passed: 6 takeovers in time, 0 overlaps, stale writes refused: 1"),
        "{printed}"
    );
    assert_eq!(server.keys(), [""; 0], "nothing stays behind");
    assert_eq!(std::fs::read_dir(scratch.path()).unwrap().count(), 0, "nothing stays behind");
}

#[test]
fn urls_of_stores_that_cannot_be_used_are_refused_with_what_to_do() {
    let scratch = tempfile::tempdir().unwrap();
    let (_runtime, server) = s3();
    let refused = |url: &str, status, expected: &str| {
        for (program, args) in
            [("failover", &["--store", url][..]), ("s3_inspect", &[url, "--cluster", "orders"])]
        {
            let mut command = example(program);
            command.args(args).env("TMPDIR", scratch.path()).envs(server.env());
            let output = command.env("AWS_SECRET_ACCESS_KEY", "SECRET").output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(output.status.code(), Some(status), "{program} {url}: {said}");
            assert!(said.contains(expected), "{program} {url}: {said}");
            let all = said + &text(&output.stdout);
            assert!(!all.contains("SECRET"), "{program} {url}: {all}");
        }
    };
    refused("ftp://bucket/ha", 2, "use s3://");
    refused("s3://key:SECRET@bucket/ha", 2, "credentials come from the environment");
    refused("s3://bucket/ha?colour=SECRET", 2, "no option `colour`");
    refused("s3://bucket/ha?ca=/no/such/file", 2, "the path leads to no file");
    refused("s3://bucket/ha?endpoint=http://127.0.0.1:1", 1, "check the endpoint");
    refused(&server.url("ha"), 1, "the secret access key is wrong");
}

/// What the inspector says, and its status.
fn inspect(server: &TestServer, args: &[&str]) -> (String, i32) {
    let mut command = example("s3_inspect");
    command.arg(server.url("demo")).args(["--cluster", "orders"]).args(args);
    let Output { status, stdout, stderr } =
        command.envs(server.env()).env("ORDERS_SECRET", SECRET).output().unwrap();
    let all = text(&stdout) + &text(&stderr);
    assert!(!all.contains(SECRET) && !all.contains("test-secret-key"), "{all}");
    (all, status.code().unwrap())
}

/// Looks for each of the lines, whatever the number of blanks, and for the status.
fn assert_tells(server: &TestServer, args: &[&str], expected: &[&str], status: i32) {
    let (said, was) = inspect(server, args);
    let lines: Vec<_> =
        said.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in expected {
        assert!(lines.iter().any(|it| it.contains(line)), "no \"{line}\" in\n{said}");
    }
    assert_eq!(was, status, "{said}");
}

async fn lease(server: &TestServer) -> LeaseBuilder {
    let store = server.options("demo").connect().await.unwrap();
    let timing = Timing::short(Duration::from_millis(1_500), Duration::from_millis(500)).unwrap();
    LeaseManager::builder(store, "orders")
        .timing(timing)
        .ephemeral_instance()
        .instance_name("orders-0")
        .secret(ClusterSecret::new(SECRET.as_bytes()).unwrap())
}

#[test]
fn the_inspector_tells_who_holds_a_lease_and_since_when() {
    let (runtime, server) = s3();
    let nobody = ["probe passed:", "versions are sent back quoted", "there is no lease"];
    assert_tells(&server, &[], &nobody, 0);
    assert_eq!(server.keys(), [""; 0], "the probe's objects are removed");

    let with_secret = ["--secret-env", "ORDERS_SECRET"];
    let (manager, tenure) = runtime.block_on(async {
        let manager = lease(&server).await.start().await.unwrap();
        let tenure = manager.acquire().await.unwrap();
        (manager, tenure)
    });
    let epoch = format!("epoch {}", tenure.epoch());
    let held =
        ["holder orders-0 (instance", &epoch, "as the epoch says", "ttl 1.5s", "within the ttl"];
    assert_tells(&server, &with_secret, &held, 0);
    assert_tells(&server, &with_secret, &["verdict authentic"], 0);
    assert_tells(&server, &["--no-probe"], &["probe left out", "verdict unsigned", "no secret"], 0);
    let before = server.writes();
    runtime.block_on(tenure.release());
    assert_tells(
        &server,
        &with_secret,
        &["holder nobody: it was released", "verdict authentic"],
        0,
    );
    runtime.block_on(manager.stop());
    assert!(server.writes() > before);
}

#[test]
fn the_inspector_tells_what_is_not_to_be_believed_and_which_store_is_not_fit() {
    let (_runtime, server) = s3();
    let with_secret = ["--no-probe", "--secret-env", "ORDERS_SECRET"];
    let record = |cluster: &str, mac: &str| {
        format!(
            r#"{{"cluster":"{cluster}","holder":"s-1","epoch":7,"seq":1,"ttl_seconds":30{mac}}}"#
        )
    };
    server.put_by_hand(LEASE, record("orders", ""));
    let counter = ["holder s-1", "epoch 7", "the epoch is a counter", "verdict unsigned"];
    assert_tells(&server, &with_secret, &counter, 0);
    let forged = record("orders", r#","mac":"00","key_id":"another""#);
    server.put_by_hand(LEASE, forged);
    assert_tells(&server, &with_secret, &["verdict FORGED", "it names another key"], 1);
    server.put_by_hand(LEASE, record("billing", ""));
    assert_tells(&server, &with_secret, &["verdict FORGED", "names another cluster"], 1);
    server.put_by_hand(LEASE, "no lease at all");
    assert_tells(&server, &with_secret, &["verdict UNREADABLE"], 1);
    server.put_by_hand(LEASE, vec![b' '; 70_000]);
    assert_tells(&server, &with_secret, &["verdict UNREADABLE"], 1);

    // A store that is not fit can be looked at nevertheless.
    server.put_by_hand(LEASE, record("orders", ""));
    server.set_quirks(&[Quirk::IgnoresIfMatch]);
    assert_tells(
        &server,
        &[],
        &["probe NOT FIT FOR A LEASE", "`If-Match` is ignored", "holder s-1"],
        1,
    );
    server.set_quirks(&[Quirk::ObjectLock]);
    assert_tells(&server, &[], &["has object lock", "holder s-1"], 1);
    server.set_quirks(&[]);

    for (args, expected) in [
        (&["--secret-env", "NOT_SET"], "NOT_SET"),
        (&["--secret-file", "/no/such/file"], "/no/such/file"),
    ] {
        assert_tells(&server, args, &[expected], 2);
    }
}
