//! Measures everything that has a bar in one go, prints `path ratio bar verdict` a line, and writes
//! `docs/performance.md` with its plots.

use benches::{
    performance, plots,
    rows::{
        self, Bar, Effort, Row,
        takeover::{self, Compared},
    },
    takeover::simulated::{FAR, NEAR},
};
use clap::Parser;
use std::{
    error::Error,
    fs, io,
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

    /// Measure only groups of this name (fence, machine, local, peers, s3, scale, takeover). May be given several times;
    /// nothing is written then.
    #[arg(long = "only", value_name = "GROUP")]
    only: Vec<String>,

    /// A bucket on a server that is a process of its own, to measure renewals there too. Its keys come from
    /// the environment, as for the examples.
    #[arg(long, value_name = "URL")]
    store: Option<String>,

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

fn run(args: &Args) -> Result<(), Box<dyn Error>> {
    let effort = if args.quick { Effort::Quick } else { Effort::Full };
    let disk = args.disk.clone().unwrap_or_else(beside_this_program);
    let groups: [(&str, Measure<'_>); 6] = [
        ("fence", &|| Ok(rows::fence::rows(effort))),
        ("machine", &|| Ok(rows::machine::rows(effort))),
        ("local", &|| rows::local::rows(effort, &disk)),
        ("peers", &|| rows::peers::rows(effort, &disk)),
        ("s3", &|| rows::s3::rows(effort, args.store.as_deref())),
        ("scale", &|| rows::scale::rows(effort)),
    ];
    let is_wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let mut measured = Vec::new();
    let mut tell = |rows: Vec<Row>| {
        for row in rows {
            println!("{row}");
            if args.notes && !row.note.is_empty() {
                println!("    {}", row.note);
            }
            measured.push(row);
        }
    };
    for (name, measure) in groups.into_iter().filter(|(name, _)| is_wanted(name)) {
        tell(measure().map_err(|error| format!("{name}: {error}"))?);
    }
    let mut plots = vec![plots::costs()?];
    if is_wanted("takeover") {
        let [near, far] = [NEAR, FAR].map(|travel| takeover::simulate(effort, travel));
        tell(takeover::rows(&near, &far));
        let mut lines = vec![
            plots::distribution("simulated, phase lock", &near.locked, 0, false),
            plots::distribution("simulated, no phase lock", &near.unlocked, 1, false),
        ];
        for (file, store, paths) in REAL {
            let Ok(kills) = fs::read(results().join(file)) else {
                let why = format!("benches/results/{file} is not there");
                tell(vec![Row::skipped(paths[0], Bar::AtMost(0.1), "processes killed", &why)]);
                continue;
            };
            let kills: Compared = serde_json::from_slice(&kills)?;
            tell(takeover::real_rows(paths, store, &kills));
            let of = |what: &str| format!("processes, {store}, {what}");
            let colour = lines.len();
            lines.push(plots::distribution(&of("phase lock"), &kills.locked, colour, true));
            lines.push(plots::distribution(
                &of("no phase lock"),
                &kills.unlocked,
                colour + 1,
                true,
            ));
        }
        plots.insert(0, plots::takeovers(&lines)?);
    }
    if args.only.is_empty() {
        let docs = args
            .docs
            .clone()
            .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs"));
        performance::write(&docs, effort, &measured, &plots)?;
        eprintln!("written: {}", docs.join("performance.md").display());
    }
    Ok(())
}

/// Kills of real processes, as the example `failover` wrote them with `--results`.
const REAL: [(&str, &str, [&str; 2]); 2] = [
    (
        "kills-local.json",
        "in a directory",
        ["kills-local-p50-after-T-in-R", "kills-local-requests"],
    ),
    ("kills-s3.json", "in a bucket", ["kills-s3-p50-after-T-in-R", "kills-s3-requests"]),
];

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("results")
}

/// The system's directory for temporary files is often in memory.
fn beside_this_program() -> PathBuf {
    let program = std::env::current_exe().ok();
    program.and_then(|it| it.parent().map(Path::to_path_buf)).unwrap_or_else(|| ".".into())
}
