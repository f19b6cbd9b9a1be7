//! The table at the end, and the verdict in one line.

use crate::{Setup, round::Outcome, scenario::Scenario};
use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use std::time::Duration;

/// One row for each scenario that was played.
pub(crate) fn of(setup: &Setup, scenarios: &[Scenario], outcomes: &[Outcome]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED).set_header([
        "scenario",
        "rounds",
        "promised: takeover within",
        "min",
        "median",
        "max",
        "overlaps",
        "stale writes\nrefused",
    ]);
    for column in [1, 3, 4, 5, 6, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    for scenario in scenarios {
        table.add_row(row(setup, *scenario, outcomes));
    }
    table
}

fn row(setup: &Setup, scenario: Scenario, outcomes: &[Outcome]) -> Vec<String> {
    let own = || outcomes.iter().filter(|outcome| outcome.id.scenario == scenario);
    let mut took: Vec<_> = own().filter_map(|it| it.takeover).map(|it| it.measured).collect();
    took.sort_unstable();
    let operations = own().filter_map(|it| it.takeover).map(|it| it.operations).max();
    let (symbols, since) = scenario.promise_text();
    let promise = scenario.promise(setup.timing).as_secs_f64();
    let time = |it: Option<&Duration>| {
        it.map_or_else(|| "-".to_owned(), |it| format!("{:.3} s", it.as_secs_f64()))
    };
    vec![
        scenario.name().to_owned(),
        own().count().to_string(),
        format!(
            "{symbols} + 2 ops = {promise:.1} s + {:.0} ms\nafter {since}",
            operations.unwrap_or_default().as_secs_f64() * 1e3
        ),
        time(took.first()),
        time(took.get(took.len().saturating_sub(1) / 2)),
        time(took.last()),
        own().map(|it| it.overlaps).sum::<usize>().to_string(),
        own().map(|it| it.refused).sum::<usize>().to_string(),
    ]
}

/// Whether all went well, in one line.
pub(crate) fn summary(outcomes: &[Outcome]) -> Result<String, String> {
    let sum = |what: fn(&Outcome) -> usize| outcomes.iter().map(what).sum::<usize>();
    let faulty = sum(|it| usize::from(!it.faults.is_empty()));
    let overlaps = sum(|it| it.overlaps);
    let refused = sum(|it| it.refused);
    let late = sum(|it| usize::from(it.takeover.is_some_and(|took| !took.is_in_time())));
    let rounds = outcomes.len();
    let again = sum(|it| it.disturbed as usize);
    if faulty == 0 {
        return Ok(format!(
            "passed: {rounds} takeovers, all within the promised bound; 0 overlaps; {refused} \
             stale writes refused{}",
            if again > 0 {
                format!("; {again} rounds begun anew, the disk was too slow")
            } else {
                String::new()
            }
        ));
    }
    Err(format!(
        "FAILED: {faulty} of {rounds} rounds; {overlaps} overlaps, {late} takeovers too late, \
         {refused} stale writes refused; the lines marked FAILED above say what happened"
    ))
}
