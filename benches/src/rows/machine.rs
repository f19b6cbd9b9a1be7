//! A renewal without I/O, and the record that it writes.

use super::{Bar, Effort, Row, Short};
use crate::{clocks, holder::Steps, paired, record};
use std::hint::black_box;

const BATCH: u32 = 500;
/// Until everything that grows has its size.
const STEADY: u32 = 100;

/// The machine alone, then writing and reading a record, whole and in parts.
#[must_use]
pub fn rows(effort: Effort) -> Vec<Row> {
    let mut rows = steps(effort);
    rows.extend(records(effort));
    rows
}

fn steps(effort: Effort) -> Vec<Row> {
    let mut steps = Steps::active();
    (0..STEADY).for_each(|_| steps.renew());
    let counted =
        allocation_counter::measure(|| (0..1_000).for_each(|_| black_box(&mut steps).renew()));
    // The other side is nothing but the time.
    let took = paired::run_by(
        clocks::thread_time,
        effort.of(1_000),
        paired::times(BATCH, || black_box(&mut steps).renew()),
        || (),
    );
    let one = took.at(50)[0] / BATCH;
    vec![
        Row::new(
            "machine-step-us",
            one.as_secs_f64() * 1e6,
            Bar::AtMost(1.0),
            "µs for one renewal through the state machine, without encode",
            format!("{}; {} at the 10th percentile", Short(one), Short(took.at(10)[0] / BATCH)),
        ),
        Row::new(
            "machine-step-allocations",
            counted.count_total as f64,
            Bar::Exactly(0.0),
            "allocations in 1000 renewals through the state machine, in steady state",
            String::new(),
        ),
    ]
}

fn records(effort: Effort) -> Vec<Row> {
    let bed = record::Bed::new();
    let floor = bed.floor();
    let pairs = effort.of(1_000);
    let run = |ours: &dyn Fn(), bare: &dyn Fn()| {
        let (ours, bare) = (paired::times(BATCH, ours), paired::times(BATCH, bare));
        paired::run_by(clocks::thread_time, pairs, ours, bare)
    };
    let both = || {
        black_box(floor.serialize());
        black_box(floor.mac());
    };
    let written = run(&|| drop(black_box(bed.encode())), &both);
    let encoded = run(&|| drop(black_box(bed.encode_alone())), &|| {
        black_box(floor.serialize());
    });
    let decoded = run(&|| drop(black_box(bed.decode())), &|| floor.deserialize());
    let judged = run(&|| drop(black_box(bed.judge())), &|| {
        floor.deserialize();
        black_box(floor.mac());
    });
    vec![
        Row::of(
            "record-encode-mac",
            &written,
            Bar::AtMost(1.3),
            "a record written with its MAC, beside `serde_json` and HMAC alone",
        ),
        Row::of("record-encode", &encoded, Bar::None, "encoding alone, beside `serde_json`"),
        Row::of(
            "record-decode",
            &decoded,
            Bar::None,
            "decoding, beside `serde_json` without copies",
        ),
        Row::of(
            "record-judge",
            &judged,
            Bar::None,
            "decoding and verifying, beside `serde_json` and HMAC alone",
        ),
    ]
}
