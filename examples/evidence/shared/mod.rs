//! What the two programs over the simulator share: all cores, and a progress bar.

use indicatif::{ProgressBar, ProgressStyle};
use std::{num::NonZero, ops::Range, thread};

/// Splits the seeds into blocks and runs these on all cores, each in turn.
pub(crate) fn in_parallel<T: Send>(
    seeds: Range<u64>,
    work: impl Fn(Range<u64>) -> T + Sync,
) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let share = (seeds.end - seeds.start).div_ceil(u64::try_from(cores).unwrap_or(1)).max(1);
    let blocks = (seeds.start..seeds.end).step_by(usize::try_from(share).unwrap_or(usize::MAX));
    let end = seeds.end;
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = blocks
            .map(|first| scope.spawn(move || work(first..first.saturating_add(share).min(end))))
            .collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    })
}

/// A bar that people see and pipes do not.
pub(crate) fn bar(total: u64, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}, {eta} left");
    ProgressBar::new(total)
        .with_message(what)
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
