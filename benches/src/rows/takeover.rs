//! How soon a standby takes over, and how often it reads for that.

use super::{Bar, Effort, Row};
use crate::takeover::{
    Kills,
    simulated::{self, Travel},
};
use serde::{Deserialize, Serialize};
use std::thread;

/// Kills with phase lock and without.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Compared {
    /// The standby reads right behind the renewals.
    pub locked: Kills,
    /// It reads every R, whenever that is.
    pub unlocked: Kills,
}

/// As many simulated kills as there is time for, both side by side.
#[must_use]
pub fn simulate(effort: Effort, travel: Travel) -> Compared {
    let count = match effort {
        Effort::Full => 1_000_000,
        Effort::Quick => 10_000,
    };
    thread::scope(|scope| {
        let unlocked = scope.spawn(move || simulated::kills(count, travel, false, 2));
        let locked = simulated::kills(count, travel, true, 1);
        Compared { locked, unlocked: unlocked.join().expect("it holds what is promised") }
    })
}

/// The bars of a comparison on a store that is near, and what it is on one that is not.
#[must_use]
pub fn rows(near: &Compared, far: &Compared) -> Vec<Row> {
    const WHAT: &str =
        "simulated median takeover after the last renewal was sent, less T, in parts of R";
    let note =
        |it: &Compared| format!("{}; without phase lock {}", told(&it.locked), told(&it.unlocked));
    vec![
        Row::new(
            "takeover-p50-after-T-in-R",
            after_ttl(&near.locked),
            Bar::AtMost(0.1),
            &format!("{WHAT}; phase-locked, on a store at most 2 ms away"),
            note(near),
        ),
        Row::new(
            "takeover-p50-after-T-in-R-bucket",
            after_ttl(&far.locked),
            Bar::None,
            &format!("{WHAT}; phase-locked, on a store 5 to 20 ms away"),
            note(far),
        ),
        requests("takeover-requests", "simulated", near),
    ]
}

/// The bars of kills of real processes.
#[must_use]
pub fn real_rows(paths: [&'static str; 2], store: &str, kills: &Compared) -> Vec<Row> {
    let note = format!("{}; without phase lock {}", told(&kills.locked), told(&kills.unlocked));
    let what = format!(
        "processes killed, {store}: median takeover after the last renewal was sent, less T, in parts of R"
    );
    vec![
        Row::new(paths[0], after_ttl(&kills.locked), Bar::AtMost(0.1), &what, note),
        requests(paths[1], store, kills),
    ]
}

fn requests(path: &'static str, of: &str, kills: &Compared) -> Row {
    let [locked, unlocked] = [&kills.locked, &kills.unlocked].map(|it| it.reads_per_renew);
    Row::new(
        path,
        locked / unlocked,
        Bar::AtMost(1.1),
        &format!("reads of a standby with phase lock, beside without; {of}"),
        format!("{locked:.3} and {unlocked:.3} for each R"),
    )
}

fn after_ttl(kills: &Kills) -> f64 {
    let timing = simulated::timing();
    (kills.at(500).as_secs_f64() - timing.ttl().as_secs_f64()) / timing.renew().as_secs_f64()
}

/// `p50 3.08 s, p90 …`.
#[must_use]
pub fn told(kills: &Kills) -> String {
    let [p50, p90, p99, max] = kills.percentiles().map(|it| it.as_secs_f64());
    format!(
        "p50 {p50:.3} s, p90 {p90:.3} s, p99 {p99:.3} s, max {max:.3} s of {} kills",
        kills.count()
    )
}
