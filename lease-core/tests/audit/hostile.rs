//! Whatever is no ledger: typed findings, never a panic.

use super::audit;
use lease_core::{
    audit::{Auditor, Entry, FINDINGS_MAX, Finding, Flaw, LINE_BYTES_MAX, Verdict},
    json::Unreadable,
};
use proptest::prelude::*;

const GOOD: &str = "{\"what\":\"begin\",\"instance\":\"a\",\"epoch\":1,\"at\":0,\"until\":9}\n";

fn flaw(line: &[u8]) -> Flaw {
    Entry::parse(line).unwrap_err()
}

#[test]
fn a_torn_last_line_is_a_finding_or_last_words() {
    for cut in 1..GOOD.len() - 2 {
        let ledger = format!("{GOOD}{}", &GOOD[..cut]);
        let report = audit(&ledger);
        let [Finding::Flawed { line: 2, flaw: Flaw::Torn }] = report.findings() else {
            panic!("{cut}: {report}")
        };
        assert_eq!(report.verdict(), Verdict::Unproved);

        let mut auditor = Auditor::new().torn_lines_are_last_words();
        auditor.read(ledger.as_bytes()).unwrap();
        let report = auditor.finish();
        assert_eq!((report.verdict(), report.last_words()), (Verdict::Proved, 1), "{report}");
        assert!(report.to_string().contains("1 torn"), "{report}");
    }
    // Its line feed alone is missing: the line is whole.
    assert_eq!(audit(GOOD.trim_end()).verdict(), Verdict::Proved);
}

#[test]
fn a_torn_line_that_the_next_one_follows_on_is_no_last_word() {
    // What the second would have said is lost with the first.
    let ledger = format!("{GOOD}{}{GOOD}", &GOOD[..20]);
    let mut auditor = Auditor::new().torn_lines_are_last_words();
    auditor.read(ledger.as_bytes()).unwrap();
    let report = auditor.finish();
    assert!(
        matches!(report.findings(), [Finding::Flawed { line: 2, flaw: Flaw::Unreadable(_) }]),
        "{report}"
    );
    // With a line feed in front, it is kept.
    let ledger = format!("{}\n{GOOD}", &GOOD[..20]);
    let mut auditor = Auditor::new().torn_lines_are_last_words();
    auditor.read(ledger.as_bytes()).unwrap();
    assert_eq!(auditor.finish().verdict(), Verdict::Proved);
}

#[test]
fn each_way_to_be_no_entry_is_told() {
    let field = |field, expected| Flaw::Unreadable(Unreadable::Field { field, expected });
    let what = field("what", "begin, renewed, write, end or note");
    let epoch = field("epoch", "an integer from 1 to 2^64 - 1");
    for (line, expected) in [
        (r#"{"what":"bgin","instance":"a","epoch":1}"#, what),
        (r#"{"what":7,"instance":"a","epoch":1}"#, what),
        (r#"{"what":"end","instance":"a","epoch":0}"#, epoch),
        (r#"{"what":"end","instance":"a","epoch":1e3}"#, epoch),
        (r#"{"what":"end","instance":"a","epoch":18446744073709551616}"#, epoch),
        (r#"{"what":"end","instance":null,"epoch":1}"#, field("instance", "a string")),
        (r#"{"what":"end","instance":"a","epoch":1,"at":-1}"#, field("at", "nanoseconds")),
        (r#"{"what":"end","instance":"a","epoch":1,"at":1.5}"#, field("at", "nanoseconds")),
        (
            r#"{"what":"write","instance":"a","epoch":1,"fence":"ajar"}"#,
            field("fence", "open, shut or unasked"),
        ),
        (
            r#"{"what":"write","instance":"a","epoch":1,"fence":"open","gate":"maybe"}"#,
            field("gate", "admitted or refused"),
        ),
        (
            r#"{"what":"renewed","instance":"a","epoch":1}"#,
            Flaw::Unreadable(Unreadable::Missing { field: "until" }),
        ),
        (r#"{"epoch":1}"#, Flaw::Unreadable(Unreadable::Missing { field: "what" })),
        (
            r#"{"what":"end","instance":"a","epoch":1,"epoch":2}"#,
            Flaw::Unreadable(Unreadable::DuplicateKey),
        ),
        ("[1]", Flaw::Unreadable(Unreadable::NotAnObject)),
    ] {
        assert_eq!(flaw(line.as_bytes()), expected, "{line}");
        let report = audit(&format!("{GOOD}{line}\n"));
        assert_eq!(report.verdict(), Verdict::Unproved, "{line}: {report}");
    }
    assert!(matches!(flaw(b"\xff\xfe}"), Flaw::Unreadable(Unreadable::NotUtf8)));
    assert!(matches!(flaw(b"\xef\xbb\xbf{}"), Flaw::Unreadable(Unreadable::Syntax { .. })));
    assert!(matches!(flaw(b"garbage"), Flaw::Unreadable(Unreadable::Syntax { .. })));
}

#[test]
fn a_line_without_end_is_not_kept_and_the_next_is_read() {
    let long = |length: usize| format!("{{\"what\":\"note\",\"text\":\"{}\"}}", "x".repeat(length));
    let frame = long(0).len();
    let ledger = |line: String| format!("{GOOD}{line}\n{GOOD}");
    let report = audit(&ledger(long(LINE_BYTES_MAX - frame)));
    // The same begin twice, and nothing else.
    assert!(matches!(report.findings(), [Finding::EpochReused { .. }]), "{report}");
    for length in [LINE_BYTES_MAX - frame + 1, LINE_BYTES_MAX, 10 * LINE_BYTES_MAX] {
        let report = audit(&ledger(long(length)));
        let is_too_long =
            |it: &Finding| matches!(it, Finding::Flawed { line: 2, flaw: Flaw::TooLong });
        assert!(report.findings().iter().any(is_too_long), "{length}: {report}");
        assert_eq!((report.findings().len(), report.lines()), (2, 3), "{length}: {report}");
    }
    // What would be an entry, if only its beginning counted.
    let line = format!("{}{}garbage", GOOD.trim_end(), " ".repeat(LINE_BYTES_MAX));
    let report = audit(&line);
    assert!(
        report
            .findings()
            .iter()
            .any(|it| matches!(it, Finding::Flawed { line: 1, flaw: Flaw::TooLong })),
        "{report}"
    );
}

#[test]
fn much_garbage_leaves_room_for_what_went_wrong() {
    let garbage = "x\n".repeat(3 * FINDINGS_MAX);
    let overlap = GOOD.replace("\"a\",\"epoch\":1", "\"b\",\"epoch\":2");
    let report = audit(&format!("{garbage}{GOOD}{overlap}"));
    assert_eq!((report.gaps(), report.violations()), (3 * FINDINGS_MAX as u64, 1));
    assert!(matches!(report.findings().last(), Some(Finding::Overlap { .. })), "{report}");
    assert!(report.to_string().contains("more"), "{report}");
}

#[test]
fn names_do_not_reach_a_terminal_as_they_are() {
    let evil = GOOD.replace("\"a\"", "\"\\u001b[2J\\nproved\"");
    let report = audit(&format!("{evil}{evil}"));
    let text = report.to_string();
    assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}[2J\\nproved"), "{text}");
}

#[test]
fn the_end_of_time_does_not_overflow() {
    let last = u64::MAX;
    let report = audit(&format!(
        "{{\"what\":\"begin\",\"instance\":\"a\",\"epoch\":{last},\"at\":{last},\"until\":{last}}}\n\
         {{\"what\":\"write\",\"instance\":\"a\",\"epoch\":{last},\"at\":{last},\"fence\":\"open\"}}\n"
    ));
    assert_eq!(report.tenures_count(), 1, "{report}");
}

proptest! {
    #[test]
    fn any_bytes_are_audited(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut auditor = Auditor::new();
        auditor.read(&*bytes).unwrap();
        let report = auditor.finish();
        prop_assert!(!report.to_string().is_empty());
        prop_assert!(report.verdict() != Verdict::Proved);
    }

    #[test]
    fn any_damage_to_a_line_is_audited(at in 0..GOOD.len(), byte in any::<u8>()) {
        let mut bytes = GOOD.as_bytes().to_vec();
        bytes[at] = byte;
        let mut auditor = Auditor::new();
        auditor.read(&*bytes).unwrap();
        let _ = auditor.finish().to_string();
    }
}
