//! Arbitrary bytes as a ledger.

use fencing::Epoch;
use lease_core::audit::{Auditor, Entry, Finding, Report, Verdict, What};
use std::io::BufReader;

/// Audits the bytes as a whole, in pieces, with a short memory, and line by line.
pub fn run(data: &[u8]) {
    let whole = audited(Auditor::new(), data, data.len().max(1));
    // However the bytes come, the same is found.
    let pieces = audited(Auditor::new(), data, 7);
    assert_eq!(whole.findings(), pieces.findings());
    assert_eq!(whole.to_string(), pieces.to_string());

    let violations = whole.findings().iter().filter(|it| it.is_violation()).count() as u64;
    assert!(violations <= whole.violations());
    let expected = match (whole.violations(), whole.gaps()) {
        (0, 0) => Verdict::Proved,
        (0, _) => Verdict::Unproved,
        _ => Verdict::Violated,
    };
    assert_eq!(whole.verdict(), expected);
    shuts_out_overlaps(&whole);

    // Who forgets may know less, and never calls proved what is not.
    let forgetful = audited(Auditor::new().remember(1), data, 64);
    if whole.verdict() == Verdict::Violated {
        assert_ne!(forgetful.verdict(), Verdict::Proved, "{whole}\n{forgetful}");
    }
    lines(data, &whole);
}

fn audited(mut auditor: Auditor, data: &[u8], piece: usize) -> Report {
    auditor.read(BufReader::with_capacity(piece, data)).expect("memory can be read");
    auditor.finish()
}

/// What is proved is so: no two spans of one cluster meet, and epochs grow with them.
fn shuts_out_overlaps(report: &Report) {
    if report.verdict() != Verdict::Proved {
        return;
    }
    assert!(report.tenures_count() > 0);
    for pair in report.tenures().windows(2) {
        let (one, two) = (&pair[0].span, &pair[1].span);
        if one.tenure.cluster != two.tenure.cluster {
            continue;
        }
        assert!(one.tenure.epoch < two.tenure.epoch, "{report}");
        assert!(one.from <= two.from, "{report}");
        let is_same = one.tenure.instance == two.tenure.instance;
        let is_empty = one.from == one.to || two.from == two.to;
        assert!(is_same || is_empty || one.to <= two.from, "{report}");
    }
}

/// Every line by itself: what reads is written as something that reads as the same.
fn lines(data: &[u8], whole: &Report) {
    let (mut flaws, mut entries) = (0, Auditor::new());
    let mut largest: Option<Epoch> = None;
    for line in data.split(|byte| *byte == b'\n') {
        match Entry::parse(line) {
            Ok(Some(entry)) => {
                let again = Entry::parse(entry.to_line().as_bytes());
                assert_eq!(again.as_ref(), Ok(&Some(entry.clone())));
                if matches!(entry.what, What::Begin { .. }) {
                    largest = largest.max(Some(entry.epoch));
                }
                entries.note(&entry);
            }
            Ok(None) => {}
            Err(flaw) => {
                flaws += 1;
                assert!(!flaw.to_string().is_empty());
            }
        }
    }
    let told = |it: &&Finding| matches!(it, Finding::Flawed { .. });
    let told = whole.findings().iter().filter(told).count();
    assert!(told == flaws || told == lease_core::audit::FINDINGS_MAX / 2, "{told} of {flaws}");
    let entries = entries.finish();
    // By order alone, lines that are left out change nothing but the numbers.
    assert_eq!(entries.violations(), whole.violations(), "{entries}\n{whole}");
    assert_eq!(entries.tenures_count(), whole.tenures_count());
    let is_large = |it: &lease_core::audit::TenureReport| Some(it.span.tenure.epoch) == largest;
    if entries.gaps() == 0 && largest.is_some() {
        assert!(entries.tenures().iter().any(is_large), "{entries}");
    }
}
