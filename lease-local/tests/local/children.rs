//! What this binary does when one of its tests starts it as a child.

use crate::{all_three, found, key, run, run_on_one_thread, support::CHILD_PATH};
use lease_core::{LeaseStore as _, StoreError, Version};
use lease_local::LocalStore;
use std::{io::Write as _, path::PathBuf};

pub(crate) const KEY: &str = "orders/lease.json";
/// Paths that are never there: asking for them shows in a trace.
pub(crate) const MARKS: [&str; 3] = ["/mark-one", "/mark-two", "/mark-three"];

pub(crate) fn be(mode: &str) {
    let path = PathBuf::from(std::env::var_os(CHILD_PATH).unwrap());
    match mode {
        "open" => match LocalStore::open(path) {
            Ok(_) => println!("opened"),
            Err(error) => println!("{error}"),
        },
        "all three" => {
            let store = LocalStore::open(path).unwrap();
            for object in ["closed/lease.json", "lease.json"] {
                println!("{:?}", run(all_three(&store, &key(object))));
            }
        }
        "replace" => {
            let store = LocalStore::open(path).unwrap();
            let done = run(async {
                let (_, version) = found(&store, &key(KEY)).await;
                store.replace_if_match(&key(KEY), "new".into(), &version).await
            });
            println!("{:?}", done.err().map(|error| error.kind()));
        }
        "doubt" => doubt(&LocalStore::open(path).unwrap()),
        "renew and poll" => renew_and_poll(&LocalStore::open(path).unwrap()),
        count => increments(&LocalStore::open(path).unwrap(), count.parse().unwrap()),
    }
}

/// A write in doubt, the same again, and what reads show then.
fn doubt(store: &LocalStore) {
    run_on_one_thread(async {
        let key = key(KEY);
        let old = Version::new(std::env::var("OLD_VERSION").unwrap());
        for _ in 0..2 {
            let done = store.replace_if_match(&key, "new".into(), &old).await;
            println!("{:?}", done.err().map(|error| error.kind()));
        }
        for _ in 0..2 {
            match store.read_versioned(&key, None).await {
                Ok(read) => println!("{read:?}"),
                Err(error) => println!("{:?}", error.kind()),
            }
        }
    });
}

fn renew_and_poll(store: &LocalStore) {
    run(async {
        let key = key(KEY);
        let mut version = store.create_if_absent(&key, "0".into()).await.unwrap();
        version = store.replace_if_match(&key, "1".into(), &version).await.unwrap();
        mark(0);
        version = store.replace_if_match(&key, "2".into(), &version).await.unwrap();
        mark(1);
        store.read_versioned(&key, Some(&version)).await.unwrap();
        mark(2);
    });
}

fn mark(number: usize) {
    assert!(std::fs::metadata(MARKS[number]).is_err());
}

/// Increments the counter `count` times; says `+` after each that was reported as successful.
fn increments(store: &LocalStore, count: u32) {
    let mut out = std::io::stdout();
    run(async {
        let key = key(KEY);
        for _ in 0..count {
            loop {
                let (content, version) = found(store, &key).await;
                let next = counter(&content).expect("a whole counter") + 1;
                match store.replace_if_match(&key, encode(next).into(), &version).await {
                    Ok(_) => break,
                    Err(StoreError::Precondition(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            out.write_all(b"+").unwrap();
            out.flush().unwrap();
        }
    });
}

/// A counter, so often that a piece of it is told from the whole.
pub(crate) fn encode(count: u64) -> Vec<u8> {
    format!("{count:020}").repeat(200).into_bytes()
}

pub(crate) fn counter(content: &[u8]) -> Option<u64> {
    let count = std::str::from_utf8(content.get(..20)?).ok()?.parse().ok()?;
    (content == encode(count)).then_some(count)
}
