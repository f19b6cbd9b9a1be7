//! 1, 100, 10 000 and 100 000 leases in one process: memory and processor time for each.

use benches::rows::{Effort, scale};

fn main() {
    if let Some(effort) = Effort::of_bench() {
        scale::rows(effort)
            .expect("a server")
            .iter()
            .for_each(|row| println!("{row}  ({})", row.note));
    }
}
