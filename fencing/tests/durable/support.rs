//! What the tests of this binary share.

use fencing::{Clock as _, SystemClock};
use libtest_mimic::{Completion, Failed, Trial};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// The variable that makes this binary a child of one of its tests; says what the child does.
pub(crate) const CHILD: &str = "HOLDFAST_TEST_CHILD";
/// The path that a child works on.
pub(crate) const CHILD_PATH: &str = "HOLDFAST_TEST_PATH";

/// Why a test cannot run here.
pub(crate) struct Skip(pub(crate) String);

pub(crate) fn test(name: &'static str, body: fn()) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

/// A test that reports itself as skipped, with its reason, where it cannot run.
pub(crate) fn skippable(name: &'static str, body: fn() -> Result<(), Skip>) -> Trial {
    Trial::ignorable_test(name, move || -> Result<Completion, Failed> {
        match body() {
            Ok(()) => Ok(Completion::Completed),
            Err(Skip(why)) => {
                eprintln!("skipped: {name}: {why}");
                Ok(Completion::ignored_with(why))
            }
        }
    })
}

/// Waits for what another process or thread will bring about; fails after 30 s.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    let end = clock.monotonic() + Duration::from_secs(30);
    while !holds() {
        assert!(clock.monotonic() < end, "gave up waiting: {what}");
        std::thread::yield_now();
    }
}

/// This binary again, as a child that does `mode` to `path`.
pub(crate) fn child(mode: &str, path: &Path) -> Command {
    with_child(Command::new(std::env::current_exe().unwrap()), mode, path)
}

/// The same with a system call that fails: `inject` is what strace's `-e inject=` takes. With `only`,
/// calls on that file alone.
pub(crate) fn child_with_fault(
    mode: &str,
    path: &Path,
    inject: &str,
    only: Option<&Path>,
) -> Result<Command, Skip> {
    let works = Command::new("strace").args(["-qq", "-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        return Err(Skip("strace is missing, or may not trace".into()));
    }
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={inject}")]);
    if let Some(file) = only {
        // Its path for calls on a handle, its name for those that open it relative to its directory.
        strace.arg("-P").arg(file).arg("-P").arg(file.file_name().unwrap());
    }
    strace.arg(std::env::current_exe().unwrap());
    Ok(with_child(strace, mode, path))
}

fn with_child(mut command: Command, mode: &str, path: &Path) -> Command {
    command.env(CHILD, mode).env(CHILD_PATH, path);
    command
}

/// A tmpfs of its own, unmounted when dropped.
pub(crate) struct Mount(
    PathBuf,
    #[expect(dead_code, reason = "removed when dropped")] tempfile::TempDir,
);

impl Mount {
    pub(crate) fn tmpfs(options: &str) -> Result<Self, Skip> {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("mount");
        fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path);
        match mount.output() {
            Ok(done) if done.status.success() => Ok(Self(path, scratch)),
            _ => Err(Skip("cannot mount a tmpfs here (not root?)".into())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn remount(&self, options: &str) {
        let mut mount = Command::new("mount");
        let done = mount.args(["-o", &format!("remount,{options}")]).arg(&self.0).status().unwrap();
        assert!(done.success());
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
