//! Did two instances ever act at once? Reads a ledger and says, with the pair if they did.
//!
//! ```console
//! cargo run --example audit -- ledger.jsonl
//! zcat ledger-*.gz | cargo run --example audit
//! ```
//!
//! `lease_core::audit` says what a ledger is, and what is proved by one. The status is 0 if it is
//! proved that no two tenures overlapped, 1 if something went wrong, and 2 if the ledger does not
//! suffice to tell, or cannot be read.

use clap::Parser;
use lease_core::audit::{Auditor, Report, Verdict};
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Write as _},
    path::PathBuf,
    process::ExitCode,
};

#[derive(Parser, Debug)]
#[command(about = "Proves that no two tenures of a ledger overlapped, or prints the pair")]
struct Args {
    /// The files, one ledger in the order given. Default, or `-`: the standard input.
    #[arg(value_name = "LEDGER")]
    ledgers: Vec<PathBuf>,
    /// A torn line is the last that its process wrote, and no gap.
    #[arg(long)]
    torn_lines_are_last_words: bool,
    /// How many tenures of each cluster are remembered at least.
    #[arg(long, value_name = "TENURES", default_value_t = 1 << 16)]
    remember: usize,
}

/// A ledger that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read: {source}", path.display())]
struct Unread {
    path: PathBuf,
    source: io::Error,
}

fn main() -> ExitCode {
    let report = match audit(Args::parse()) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("audit: {error}");
            return ExitCode::from(2);
        }
    };
    // Whoever closed the pipe has seen enough; the status says the rest.
    let _ = io::stdout().write_all(report.to_string().as_bytes());
    ExitCode::from(match report.verdict() {
        Verdict::Proved => 0,
        Verdict::Violated => 1,
        Verdict::Unproved => 2,
    })
}

fn audit(args: Args) -> Result<Report, Unread> {
    let mut auditor = Auditor::new().remember(args.remember);
    if args.torn_lines_are_last_words {
        auditor = auditor.torn_lines_are_last_words();
    }
    let ledgers = match args.ledgers.is_empty() {
        true => vec![PathBuf::from("-")],
        false => args.ledgers,
    };
    for path in ledgers {
        let read = open(&path).and_then(|ledger| auditor.read(ledger));
        read.map_err(|source| Unread { path, source })?;
    }
    Ok(auditor.finish())
}

fn open(path: &PathBuf) -> io::Result<Box<dyn BufRead>> {
    Ok(match path.to_str() {
        Some("-") => Box::new(io::stdin().lock()),
        _ => Box::new(BufReader::new(File::open(path)?)),
    })
}
