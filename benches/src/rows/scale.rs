//! Many leases in one process.

use super::{Bar, Effort, Row, Short};
use crate::{
    clocks, paired,
    scale::{Held, InBucket, UnderSession},
};
use std::{io, time::Duration};

/// What a renewal costs with many leases and with one, and what a lease has in memory.
///
/// # Errors
///
/// If no server can be started.
pub fn rows(effort: Effort) -> io::Result<Vec<Row>> {
    let (one, many) = (Held::new(1), Held::new(10_000));
    let (mut renewed_many, mut renewed_one) = (0, 0);
    let window = 2_000;
    let pairs = paired::run_by(
        clocks::thread_time,
        effort.of(100),
        || renewed_many += many.renewals(window),
        || renewed_one += one.renewals(window),
    );
    assert!(one.are_open() && many.are_open(), "all are still held");
    // Timers are a little late, so that not quite as many fit into a window as it is long.
    let count = pairs.count() as f64;
    let [many_each, one_each] = [renewed_many, renewed_one].map(|it: u64| it as f64 / count);
    let [many_took, one_took] = pairs.at(50).map(|it| it.as_secs_f64());
    let each = [many_took / many_each, one_took / one_each];
    let [at_many, at_one] = each.map(|it| Short(Duration::from_secs_f64(it)));
    let hour = 3600.0 / many.renew().as_secs_f64() * each[0] * 1e3;
    let mut rows = vec![
        Row::new(
            "cpu-per-renewal-10000",
            each[0] / each[1],
            Bar::AtMost(1.5),
            "processor time of a renewal in memory with 10 000 leases in the process, beside one lease",
            format!(
                "{at_many} beside {at_one}, all wake-ups included; {hour:.1} ms per lease and hour at R = 10 s"
            ),
        ),
        Row::new(
            "lease-bytes-10000",
            many.bytes_each(),
            Bar::None,
            "bytes on the heap for each of 10 000 independent leases, its record in memory included",
            format!("{:.0} bytes for one", one.bytes_each()),
        ),
    ];
    drop(many);
    if effort == Effort::Full {
        rows.extend(growth());
    }
    rows.extend(sessions());
    rows.extend(bucket(effort)?);
    Ok(rows)
}

/// A thousand leases in a bucket.
fn bucket(effort: Effort) -> io::Result<Vec<Row>> {
    let held = InBucket::new(1_000)?;
    let span = match effort {
        Effort::Full => Duration::from_secs(20),
        Effort::Quick => Duration::from_secs(4),
    };
    let bytes = held.bytes_each();
    let (renewal, put) = (held.renew_for(span), held.put_for(span));
    Ok(vec![
        Row::new(
            "s3-cpu-per-renewal-1000",
            renewal.as_secs_f64() / put.as_secs_f64(),
            Bar::None,
            "processor time of a renewal in a bucket with 1000 leases in the process, beside bare \
             `put_opts` as often",
            format!(
                "{} beside {}; {:.1} ms per lease and hour at R = 10 s",
                Short(renewal),
                Short(put),
                renewal.as_secs_f64() * 360.0 * 1e3
            ),
        ),
        Row::new(
            "s3-lease-bytes-1000",
            bytes,
            Bar::None,
            "bytes on the heap for each of 1000 independent leases in a bucket",
            "the HTTP client that they share included".to_owned(),
        ),
    ])
}

/// Leases that share the renewal of one session.
fn sessions() -> Vec<Row> {
    let many = UnderSession::new(10_000);
    let bytes = many.bytes_each();
    drop(many);
    let [one, thousand] = [1, 1_000].map(|count| UnderSession::new(count).requests_per_hour());
    vec![
        Row::new(
            "session-lease-bytes",
            bytes,
            Bar::AtMost(1024.0),
            "bytes on the heap for each of 10 000 leases held under one session",
            "machine, fence and tenure; what stands in the store is not included".to_owned(),
        ),
        Row::new(
            "session-requests-1000",
            thousand as f64 / one as f64,
            Bar::AtMost(1.1),
            "requests per hour for 1000 leases held under one session, beside one lease",
            format!("{thousand} and {one}"),
        ),
    ]
}

/// How it grows.
fn growth() -> Vec<Row> {
    let names = [
        ("lease-bytes-1", "cpu-per-renewal-us-1", 1),
        ("lease-bytes-100", "cpu-per-renewal-us-100", 100),
        ("lease-bytes-100000", "cpu-per-renewal-us-100000", 100_000),
    ];
    let row = |(bytes, cpu, count)| {
        let held = Held::new(count);
        let (before, mut renewals) = (clocks::thread_time(), 0);
        let window = (count / 5).max(1_000);
        (0..5).for_each(|_| renewals += held.renewals(window));
        let each = (clocks::thread_time() - before).as_secs_f64() / renewals as f64;
        let what = |what: &str| format!("{what}, with {count} leases in the process");
        let hour = 3600.0 / held.renew().as_secs_f64() * each * 1e3;
        [
            Row::new(
                bytes,
                held.bytes_each(),
                Bar::None,
                &what("bytes on the heap for a lease"),
                String::new(),
            ),
            Row::new(
                cpu,
                each * 1e6,
                Bar::None,
                &what("µs of processor time for a renewal"),
                format!("{hour:.1} ms per lease and hour"),
            ),
        ]
    };
    names.into_iter().flat_map(row).collect()
}
