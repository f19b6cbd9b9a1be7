//! Measures everything that has a bar in one go, prints `path ratio bar verdict` a line, and writes
//! `docs/performance.md` with its plots.

use benches::{
    performance,
    rows::{self, Effort, Row},
};
use clap::Parser;
use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
};

/// Measures everything that has a bar, and prints `path ratio bar ok|short` a line.
#[derive(Parser, Debug)]
#[command(name = "report")]
struct Args {
    /// Be done in less than a minute: shows that it works, and about where everything stands.
    #[arg(long)]
    quick: bool,

    /// Measure only groups of this name (fence, machine, local, s3). May be given several times;
    /// nothing is written then.
    #[arg(long = "only", value_name = "GROUP")]
    only: Vec<String>,

    /// A directory on the disk that renewals are measured on. Default: below the target directory.
    #[arg(long, value_name = "DIR")]
    disk: Option<PathBuf>,

    /// Where the page and its plots are written. Default: the project's own.
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,

    /// How it came about, below each line.
    #[arg(long)]
    notes: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("report: {error}");
            ExitCode::FAILURE
        }
    }
}

type Measure<'a> = &'a dyn Fn() -> io::Result<Vec<Row>>;

fn run(args: &Args) -> io::Result<()> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let disk = args.disk.clone().unwrap_or_else(beside_this_program);
    let groups: [(&str, Measure<'_>); 4] = [
        ("fence", &|| Ok(rows::fence::rows(effort))),
        ("machine", &|| Ok(rows::machine::rows(effort))),
        ("local", &|| rows::local::rows(effort, &disk)),
        ("s3", &|| rows::s3::rows(effort)),
    ];
    let mut measured = Vec::new();
    for (name, measure) in groups {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        for row in measure()? {
            println!("{row}");
            if args.notes && !row.note.is_empty() {
                println!("    {}", row.note);
            }
            measured.push(row);
        }
    }
    if args.only.is_empty() {
        let docs = args
            .docs
            .clone()
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"));
        performance::write(&docs, effort, &measured, &[])?;
        eprintln!("written: {}", docs.join("performance.md").display());
    }
    Ok(())
}

/// The system's directory for temporary files is often in memory.
fn beside_this_program() -> PathBuf {
    let program = std::env::current_exe().ok();
    program.and_then(|it| it.parent().map(Path::to_path_buf)).unwrap_or_else(|| ".".into())
}
