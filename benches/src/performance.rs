//! `docs/performance.md`: the table of a run, its plots, and the notes that people write.

use crate::rows::{Effort, Figure, Row};
use std::{fmt::Write as _, fs, io, path::Path};

/// What people write about the figures.
const NOTES: &str = include_str!("../notes.md");

/// One plot: the file's name, and what it shows.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The file, in the directory `performance` beside the page.
    pub file: &'static str,
    /// What it shows, as text for who does not see it.
    pub shows: &'static str,
    /// The SVG itself.
    pub svg: String,
}

/// Writes the page `performance.md` and its plots into `docs`.
///
/// # Errors
///
/// What the file system says.
pub fn write(docs: &Path, effort: Effort, rows: &[Row], plots: &[Plot]) -> io::Result<()> {
    let directory = docs.join("performance");
    fs::create_dir_all(&directory)?;
    for plot in plots {
        fs::write(directory.join(plot.file), &plot.svg)?;
    }
    fs::write(docs.join("performance.md"), page(effort, rows, plots))
}

fn page(effort: Effort, rows: &[Row], plots: &[Plot]) -> String {
    let mut page = String::from(
        "# Performance\n\n\
         Written by `cargo run --release -p benches --bin report`; the notes below are `benches/notes.md`.\n\n\
         All figures are ratios, medians of pairs that were measured in turn in one run: machines differ, \
         and what one does to both sides of a ratio cancels out. A bar that is missed says *short*; what \
         cannot be measured yet says *pending*; what this machine lacked something for says *skipped*.\n\n",
    );
    if effort == Effort::Quick {
        page += "**This run was a quick one (`--quick`): go by its figures for nothing.**\n\n";
    }
    page += &machine();
    page +=
        "\n| path | figure | bar | | what it is | how |\n| --- | --- | --- | --- | --- | --- |\n";
    for row in rows {
        let Row { path, what, bar, note, .. } = row;
        let (shown, verdict) = (row.shown(), emphasised(row));
        // Writing to a string cannot fail.
        let _ = writeln!(page, "| `{path}` | {shown} | {bar} | {verdict} | {what} | {note} |");
    }
    for Plot { file, shows, .. } in plots {
        let _ = write!(page, "\n![{shows}](performance/{file})\n");
    }
    page + "\n" + NOTES
}

fn emphasised(row: &Row) -> String {
    match (&row.figure, row.verdict()) {
        (Figure::Measured(_), verdict @ "short") => format!("**{verdict}**"),
        (_, "shown") => String::new(),
        (_, verdict) => verdict.to_owned(),
    }
}

/// What tells one machine from another, without its name.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (system, kernel) = (std::env::consts::OS, kernel.trim());
    format!("Measured on {cores} cores, {system} {kernel}.\n")
}
