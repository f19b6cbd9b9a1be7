//! What a renewal costs, each way beside the operations that it cannot do without.

mod local;
mod memory;
mod runner;

use criterion::{Criterion, criterion_group};

criterion_group!(benches, memory::renewal, runner::renewal, local::renewal, local::poll);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    local::ratios();
}
