//! The table at the end, and the verdict in one line.

use crate::{Setup, round::Outcome, scenario::Scenario};
use comfy_table::{CellAlignment, ContentLineStyle, LineStyle, Table, TableStyle};
use std::time::Duration;

/// Fits into 80 columns.
const NARROW: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction('┆'))
    .header_separator(LineStyle::none().fill('═').junction('╪'))
    .content_lines(ContentLineStyle::none().junction('┆'));

/// One row for each scenario that was played.
pub(crate) fn of(setup: &Setup, scenarios: &[Scenario], outcomes: &[Outcome]) -> Table {
    let mut table =
        narrow(["scenario", "rounds", "promised", "min", "median", "max", "overlaps", "refused"]);
    for scenario in scenarios {
        table.add_row(row(setup, *scenario, outcomes));
    }
    table
}

/// An empty table: a name, and numbers behind it.
pub(crate) fn narrow(header: [&str; 8]) -> Table {
    let mut table = Table::new();
    table.load_style(NARROW).set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// What the columns mean.
pub(crate) fn notes(setup: &Setup, scenarios: &[Scenario]) -> String {
    let mut notes = String::from("All times in seconds. promised: the other is active within\n");
    for scenario in scenarios {
        let (symbols, since) = scenario.promise_text();
        notes += &format!("  {:<8} {symbols} + 2 ops after {since}\n", scenario.name());
    }
    let history = match setup.operations.count_history() {
        true => ", and one write of a file as the\n  history of an instance is written",
        false => "",
    };
    notes += &format!(
        "2 ops: one read and one replace of the store{history}, measured beside the rounds (median\n  \
         {:.3}); for each takeover the slowest meanwhile counts; the largest is shown\n",
        setup.operations.median().as_secs_f64()
    );
    notes + "refused: stale writes that the resource refused because of their token\n"
}

fn row(setup: &Setup, scenario: Scenario, outcomes: &[Outcome]) -> Vec<String> {
    let own = || outcomes.iter().filter(|outcome| outcome.id.scenario == scenario);
    let mut took: Vec<_> = own().filter_map(|it| it.takeover).map(|it| it.measured).collect();
    took.sort_unstable();
    let operations = own().filter_map(|it| it.takeover).map(|it| it.operations).max();
    let time = |it: Option<&Duration>| {
        it.map_or_else(|| "-".to_owned(), |it| format!("{:.3}", it.as_secs_f64()))
    };
    vec![
        scenario.name().to_owned(),
        own().count().to_string(),
        format!(
            "{:.1} + {:.3}",
            scenario.promise(setup.timing).as_secs_f64(),
            operations.unwrap_or_default().as_secs_f64()
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
        let again = match again {
            0 => String::new(),
            _ => format!("; {again} begun anew, since the store was too slow"),
        };
        return Ok(format!(
            "passed: {rounds} takeovers in time, 0 overlaps, stale writes refused: {refused}{again}"
        ));
    }
    Err(format!(
        "FAILED: {faulty} of {rounds} rounds ({overlaps} overlaps, {late} takeovers too late); the \
         lines marked FAILED\nabove say what happened"
    ))
}
