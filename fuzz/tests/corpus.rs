//! The seed corpus, on any toolchain: each input passes, and there are as many as there should be.

use std::{fs, path::Path};

fn replay(target: &str, count: usize, run: impl Fn(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let mut seeds = 0;
    for entry in fs::read_dir(directory).expect("there is a corpus") {
        let path = entry.expect("an entry").path();
        println!("{}", path.display());
        run(&fs::read(&path).expect("a seed"));
        seeds += 1;
    }
    assert_eq!(seeds, count, "a seed of `{target}` was added or lost");
}

#[test]
fn records() {
    replay("record", 34, holdfast_fuzz::record::run);
}

#[test]
fn session_records() {
    replay("session_record", 48, holdfast_fuzz::session_record::run);
}

#[test]
fn histories() {
    replay("history", 15, holdfast_fuzz::history::run);
}

#[test]
fn schedules() {
    replay("machine", 39, holdfast_fuzz::machine::run);
}

#[test]
fn snapshots() {
    replay("snapshot", 38, holdfast_fuzz::snapshot::run);
}

#[test]
fn ledgers() {
    replay("audit", 22, holdfast_fuzz::audit::run);
}
