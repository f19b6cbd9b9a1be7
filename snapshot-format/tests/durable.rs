//! A snapshot in a directory is on disk before a write returns: its calls as `strace` shows them.
//! Without `strace` each is reported as *ignored*.
#![allow(clippy::unwrap_used, reason = "these are tests, whatever they are called")]

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use snapshot_format::{
    Writer,
    fencing::{Clock as _, FenceControl, SystemClock},
    lease_core::key::InstanceId,
    local,
};
use std::{
    env, fs,
    future::pending,
    io::Cursor,
    path::Path,
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};
use support::{CIPHER, epoch, layout};

const CHILD: &str = "HOLDFAST_TEST_CHILD";
const SINGLE_PUT_MAX: usize = 1000;
/// One that is put, and one that is sent in parts.
const SIZES: [usize; 2] = [SINGLE_PUT_MAX, SINGLE_PUT_MAX + 1];

fn main() -> ExitCode {
    if let Ok(directory) = env::var(CHILD) {
        return store(Path::new(&directory));
    }
    let traced = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    let is_missing = !traced.is_ok_and(|status| status.success());
    let trials = [
        Trial::test("file_and_directory_are_synced_before_a_write_returns", synced),
        Trial::test("a_snapshot_that_is_not_synced_is_not_told_as_stored", not_synced),
    ];
    let trials = trials.map(|trial| trial.with_ignored_flag(is_missing));
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

/// The child: fails if either write does.
fn store(directory: &Path) -> ExitCode {
    let store = Arc::new(local::open(directory).unwrap());
    let clock = SystemClock::new();
    let mut control = FenceControl::new(epoch(7), Arc::new(clock));
    control.open(clock.reading(), Duration::from_secs(600)).unwrap();
    let mut writer = Writer::new(store, layout(), CIPHER.clone(), InstanceId::new("s-1").unwrap())
        .single_put_max(SINGLE_PUT_MAX);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut failed = 0;
    for bytes in SIZES {
        let database = Cursor::new(vec![b'x'; bytes]);
        let written = runtime.block_on(writer.write(&control.fence(), database, pending()));
        failed += u8::from(written.is_err());
    }
    ExitCode::from(failed)
}

/// The calls of a child, with the paths of their handles, and how many of its writes failed.
fn traced(directory: &Path, more: &[&str]) -> Result<(Vec<String>, i32), Failed> {
    let log = directory.join("calls");
    let kept = directory.join("kept");
    fs::create_dir(&kept)?;
    let status = Command::new("strace")
        .args([
            "-f",
            "-qq",
            "-y",
            "-e",
            "trace=fsync,fdatasync,?link,linkat,?rename,renameat,renameat2",
        ])
        .args(more)
        .arg("-o")
        .arg(&log)
        .arg(env::current_exe()?)
        .env(CHILD, &kept)
        .stdout(Stdio::null())
        .status()?;
    let calls = fs::read_to_string(log)?.lines().map(str::to_owned).collect();
    Ok((calls, status.code().unwrap_or(-1)))
}

fn synced() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let (calls, failed) = traced(scratch.path(), &[])?;
    assert_eq!(failed, 0, "{calls:#?}");
    let parent = format!("{}>", layout().prefix());
    let mut named = 0;
    for (at, call) in calls.iter().enumerate() {
        if !(call.contains("link") || call.contains("rename")) || !call.contains(".db.age") {
            continue;
        }
        named += 1;
        let is_sync_of = |call: &String, what: &str| call.contains("sync(") && call.contains(what);
        assert!(calls[..at].iter().any(|call| is_sync_of(call, ".db.age")), "{calls:#?}");
        assert!(calls[at..].iter().any(|call| is_sync_of(call, &parent)), "{calls:#?}");
    }
    assert_eq!(named, SIZES.len(), "each gets its name once: {calls:#?}");
    Ok(())
}

fn not_synced() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let (calls, failed) = traced(scratch.path(), &["-e", "inject=fsync,fdatasync:error=EIO"])?;
    assert_eq!(failed, i32::try_from(SIZES.len())?, "{calls:#?}");
    Ok(())
}
