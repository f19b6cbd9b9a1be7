//! How many instructions the paths that are always there take, counted by callgrind, beside how many they
//! took when that was written down: more than 5 % more is a failure.
//!
//! A count is the difference of two runs, one of which does the same more often: what a process needs to
//! start is in both. Counts of one compiler say nothing about those of another.

use benches::{holder::Steps, record::Bed};
use clap::{Parser, Subcommand};
use fencing::{Clock as _, Epoch, FenceControl, testing::ManualClock};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    error::Error,
    fs,
    hint::black_box,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::Arc,
    time::Duration,
};

/// How much more than written down is a failure, in per cent.
const MORE_MAX: f64 = 5.0;
/// Behind everything that happens once: lazily bound symbols, buffers that grow.
const FEW: u32 = 200;
const MANY: u32 = 1_200;

/// Counts the instructions of a check, a machine step, and a record written and read, under callgrind, and
/// compares them with `benches/instructions.json`.
#[derive(Parser, Debug)]
#[command(name = "instructions")]
struct Args {
    /// Write down what is counted instead.
    #[arg(long)]
    update: bool,

    #[command(subcommand)]
    counted: Option<Counted>,
}

#[derive(Subcommand, Debug)]
enum Counted {
    /// What is counted; started under callgrind by this program itself.
    #[command(hide = true)]
    Run { what: String, times: u32 },
}

/// What was written down.
#[derive(Serialize, Deserialize, Debug)]
struct Written {
    /// `rustc --version`.
    rustc: String,
    /// `valgrind --version`.
    valgrind: String,
    /// Instructions of each.
    instructions: BTreeMap<String, u64>,
}

const PATHS: [&str; 5] =
    ["fence-check", "machine-step", "record-decode", "record-encode-mac", "record-judge"];

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.counted {
        Some(Counted::Run { what, times }) => run(&what, times).map(|()| true),
        None => count(args.update),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(what: &str, times: u32) -> Result<(), Box<dyn Error>> {
    let act: Box<dyn FnMut()> = match what {
        "fence-check" => {
            // Not the system's clock: rustix looks for the vDSO where valgrind shows none.
            let clock = ManualClock::new();
            let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
            control.open(clock.reading(), Duration::from_secs(60))?;
            let fence = control.fence();
            Box::new(move || {
                let _open = &control;
                black_box(&fence).check().expect("its clock stands still");
            })
        }
        "machine-step" => {
            let mut steps = Steps::active();
            Box::new(move || steps.renew())
        }
        "record-decode" | "record-encode-mac" | "record-judge" => {
            let (bed, what) = (Bed::new(), what.to_owned());
            match &*what {
                "record-decode" => Box::new(move || drop(black_box(bed.decode()))),
                "record-judge" => Box::new(move || drop(black_box(bed.judge()))),
                _ => Box::new(move || drop(black_box(bed.encode()))),
            }
        }
        _ => return Err(format!("{what} is none of {PATHS:?}").into()),
    };
    let mut act = act;
    (0..times).for_each(|_| act());
    Ok(())
}

/// True unless something takes too many.
fn count(update: bool) -> Result<bool, Box<dyn Error>> {
    let Some(valgrind) = version("valgrind") else {
        println!("skipped: {}: there is no valgrind here", PATHS.join(", "));
        return Ok(true);
    };
    let rustc = version("rustc").unwrap_or_default();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("instructions.json");
    if !update {
        let written: Written = serde_json::from_slice(&fs::read(&file)?)?;
        for (what, written, here) in
            [("rustc", &written.rustc, &rustc), ("valgrind", &written.valgrind, &valgrind)]
        {
            if written != here {
                let paths = PATHS.join(", ");
                println!("skipped: {paths}: counted with {what} `{written}`, and this is `{here}`");
                return Ok(true);
            }
        }
        return compare(&written.instructions);
    }
    let counted = PATHS.map(|what| Ok::<_, Box<dyn Error>>((what.to_owned(), instructions(what)?)));
    let instructions = counted.into_iter().collect::<Result<BTreeMap<_, _>, _>>()?;
    let written = Written { rustc, valgrind, instructions };
    let text = serde_json::to_string_pretty(&written)? + "\n";
    print!("{text}");
    fs::write(file, text)?;
    Ok(true)
}

fn compare(written: &BTreeMap<String, u64>) -> Result<bool, Box<dyn Error>> {
    let mut holds = true;
    for what in PATHS {
        let counted = instructions(what)?;
        let before = *written.get(what).ok_or_else(|| format!("{what} is not written down"))?;
        let more = 100.0 * (counted as f64 / before as f64 - 1.0);
        let is_ok = more <= MORE_MAX;
        holds &= is_ok;
        println!("{what} {counted} {before} {more:+.1}% {}", if is_ok { "ok" } else { "MORE" });
    }
    if !holds {
        println!("more than {MORE_MAX} % more: find out why, or write it down with --update");
    }
    Ok(holds)
}

/// Instructions of one time.
fn instructions(what: &str) -> Result<u64, Box<dyn Error>> {
    let [few, many] = [FEW, MANY].map(|times| total(what, times));
    Ok((many? - few?) / u64::from(MANY - FEW))
}

/// Instructions of a whole process.
fn total(what: &str, times: u32) -> Result<u64, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let out: PathBuf = directory.path().join("callgrind.out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args(["run", what, &times.to_string()])
        .stdin(Stdio::null())
        .output()?;
    if !output.status.success() {
        return Err(format!("{what}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let told = fs::read_to_string(&out)?;
    let total = told.lines().find_map(|line| line.strip_prefix("summary: "));
    Ok(total.ok_or("callgrind tells no sum")?.trim().parse()?)
}

fn version(program: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
