//! A lease in a directory beside etcd, Redis and PostgreSQL (`tests/peers.sh`; feature `peers`).

use benches::rows::{Effort, peers};
use std::path::Path;

fn main() {
    if let Some(effort) = Effort::of_bench() {
        let rows = peers::rows(effort, Path::new(env!("CARGO_TARGET_TMPDIR")));
        rows.expect("a disk").iter().for_each(|row| println!("{row}  ({})", row.note));
    }
}
