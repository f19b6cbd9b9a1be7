//! What a renewal and a poll cost, counted in system calls.

use crate::{
    children::MARKS,
    support::{CHILD, CHILD_PATH, Skip, skippable},
};
use libtest_mimic::Trial;
use std::{collections::BTreeMap, fs, process::Command};

pub(crate) fn trials() -> Vec<Trial> {
    vec![skippable("one_renewal_is_one_lock_one_read_one_replacement", renewal_and_poll)]
}

/// Calls that make or wait for I/O on files, by the names that any architecture gives them.
const COUNTED: &str = "openat,openat2,?open,?creat,read,pread64,readv,write,pwrite64,writev,fsync,\
    fdatasync,sync,syncfs,?rename,renameat,renameat2,?link,linkat,?unlink,unlinkat,?mkdir,mkdirat,\
    flock,getdents64,ftruncate,fallocate";

fn renewal_and_poll() -> Result<(), Skip> {
    let scratch = tempfile::tempdir().unwrap();
    let trace = scratch.path().join("trace");
    let root = scratch.path().join("ha");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", &format!("trace={COUNTED},?stat,statx,?newfstatat"), "-o"]);
    strace.arg(&trace).arg(std::env::current_exe().unwrap());
    strace.env(CHILD, "renew and poll").env(CHILD_PATH, &root);
    match strace.output() {
        Ok(done) if done.status.success() => {}
        _ => return Err(Skip("strace is missing, or may not trace".into())),
    }
    let trace = fs::read_to_string(&trace).unwrap();
    let at = |mark| trace.find(mark).unwrap();
    let (one, two, three) = (at(MARKS[0]), at(MARKS[1]), at(MARKS[2]));

    // The opens: the root, the directory, the lock, the object, the temporary file. The flocks: lock
    // and unlock. The fsyncs: the file, the directory.
    let renewal =
        [("flock", 2), ("fsync", 2), ("openat", 5), ("read", 1), ("renameat", 1), ("write", 1)];
    assert_eq!(calls(&trace[one..two]), BTreeMap::from(renewal), "{}", &trace[one..two]);
    let poll = [("openat", 3), ("read", 1)];
    assert_eq!(calls(&trace[two..three]), BTreeMap::from(poll), "{}", &trace[two..three]);
    Ok(())
}

fn calls(trace: &str) -> BTreeMap<&str, usize> {
    let mut calls = BTreeMap::new();
    for line in trace.lines().skip(1) {
        let call = line.split_whitespace().nth(1).unwrap_or_default();
        let Some((name, _)) = call.split_once('(') else { continue };
        if !name.contains("stat") {
            *calls.entry(name).or_default() += 1;
        }
    }
    calls
}
