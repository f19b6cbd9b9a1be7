//! The auditor: overlaps that were planted, a naive reading of the same ledger, and whatever is no
//! ledger.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod hostile;
mod naive;
mod planted;

use lease_core::audit::{Auditor, Report};

fn audit(ledger: &str) -> Report {
    let mut auditor = Auditor::new();
    auditor.read(ledger.as_bytes()).unwrap();
    auditor.finish()
}
