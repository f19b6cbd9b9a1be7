//! One planted fault of each kind, beside the same ledger without it.

use super::audit;
use lease_core::{
    audit::{Auditor, Finding, Report, Scale, Verdict},
    fencing::Epoch,
};

/// Three tenures of two instances: one released, one killed, one that still runs. The killed one was
/// stopped first, and its write was refused when it woke.
const GOOD: &str = r#"
{"what":"begin","cluster":"c","instance":"a","epoch":1,"at":100,"until":200}
{"what":"write","cluster":"c","instance":"a","epoch":1,"at":110,"fence":"open","gate":"admitted"}
{"what":"renewed","cluster":"c","instance":"a","epoch":1,"at":150,"until":250}
{"what":"write","cluster":"c","instance":"a","epoch":1,"at":190,"fence":"open","gate":"admitted"}
{"what":"end","cluster":"c","instance":"a","epoch":1,"at":195}
{"what":"begin","cluster":"c","instance":"b","epoch":2,"at":196,"until":300}
{"what":"write","cluster":"c","instance":"b","epoch":2,"at":200,"fence":"open","gate":"admitted"}
{"what":"note","text":"b is stopped between its check and its write"}
{"what":"begin","cluster":"c","instance":"a","epoch":3,"at":310,"until":400}
{"what":"write","cluster":"c","instance":"a","epoch":3,"at":311,"fence":"open","gate":"admitted"}
{"what":"write","cluster":"c","instance":"b","epoch":2,"at":299,"fence":"open","gate":"refused"}
{"what":"write","cluster":"c","instance":"b","epoch":2,"at":350,"fence":"shut"}
"#;

/// The same with lines exchanged; each must be there.
fn with(changes: &[(&str, &str)]) -> Report {
    let mut ledger = GOOD.to_owned();
    for (from, to) in changes {
        assert!(ledger.contains(from), "{from}");
        ledger = ledger.replace(from, to);
    }
    audit(&ledger)
}

/// Leaves out every time.
fn without_times(ledger: &str) -> String {
    let mut kept = String::new();
    for line in ledger.lines() {
        let fields = line.trim_start_matches('{').trim_end_matches('}').split(',');
        let fields: Vec<_> =
            fields.filter(|it| !it.starts_with("\"at\"") && !it.starts_with("\"until\"")).collect();
        if line.starts_with('{') && !line.contains("renewed") {
            kept += &format!("{{{}}}\n", fields.join(","));
        }
    }
    kept
}

fn only(report: &Report) -> &Finding {
    assert_eq!(report.findings().len(), 1, "{report}");
    &report.findings()[0]
}

fn epochs(first: u64, second: u64) -> (Epoch, Epoch) {
    (Epoch::new(first).unwrap(), Epoch::new(second).unwrap())
}

#[test]
fn what_holds_is_proved_and_told_in_words() {
    let report = audit(GOOD);
    assert_eq!(report.verdict(), Verdict::Proved, "{report}");
    assert_eq!((report.tenures_count(), report.lines()), (3, 13));
    let acts = report.acts();
    assert_eq!((acts.acted, acts.refused, acts.withheld, acts.renewals), (4, 1, 1, 1));
    let spans: Vec<_> = report.tenures().iter().map(|it| (it.span.from, it.span.to)).collect();
    assert_eq!(spans, [(100, 195), (196, 300), (310, 400)]);
    let (apart, one, other) = report.closest().unwrap();
    assert_eq!((apart.as_nanos(), one.tenure.line, other.tenure.line), (1, 2, 7));
    let text = report.to_string();
    assert!(text.starts_with("proved: no two of 3 tenures overlapped\n"), "{text}");
    for part in ["13 lines: 1 clusters, 2 instances", "4 took effect, 1 refused", "assumed"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_takeover_before_the_end_is_shown_with_the_pair() {
    let report = with(&[("\"epoch\":2,\"at\":196", "\"epoch\":2,\"at\":194")]);
    let Finding::Overlap { first, second } = only(&report) else { panic!("{report}") };
    assert_eq!((first.tenure.epoch, second.tenure.epoch), epochs(1, 2));
    assert_eq!((first.to, second.from, first.scale), (195, 194, Scale::Time));
    let text = report.to_string();
    for part in ["for 1ns", "epoch 1 of a in c (line 2)", "epoch 2 of b in c (line 7)"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_takeover_before_the_deadline_of_whoever_was_killed_is_an_overlap() {
    // b told no end: its fence may have been open until its deadline.
    let report = with(&[("\"epoch\":3,\"at\":310", "\"epoch\":3,\"at\":299")]);
    assert!(matches!(only(&report), Finding::Overlap { second, .. } if second.from == 299));
    let report = with(&[("\"epoch\":3,\"at\":310", "\"epoch\":3,\"at\":300")]);
    assert_eq!(report.verdict(), Verdict::Proved, "half-open: {report}");
}

#[test]
fn a_renewal_that_is_told_late_counts() {
    let late = "{\"what\":\"renewed\",\"cluster\":\"c\",\"instance\":\"b\",\"epoch\":2,\"at\":290,\"until\":311}\n";
    let report = audit(&(GOOD.to_owned() + late));
    assert!(matches!(only(&report), Finding::Overlap { first, .. } if first.to == 311), "{report}");
}

#[test]
fn a_write_through_an_open_fence_past_the_takeover_is_an_overlap() {
    // Although its own deadline had passed, and the gate refused it.
    let report = with(&[("\"at\":299,\"fence\":\"open\"", "\"at\":320,\"fence\":\"open\"")]);
    let [Finding::Overlap { first, .. }, Finding::ActedPastEnd { end: 300, .. }] =
        report.findings()
    else {
        panic!("{report}")
    };
    assert_eq!(first.to, 321);
    // Not asked, and refused: it shows nothing. Not asked, and in effect: it does.
    let report = with(&[("\"at\":299,\"fence\":\"open\"", "\"at\":320,\"fence\":\"unasked\"")]);
    assert_eq!(report.verdict(), Verdict::Proved, "{report}");
    let unasked = r#""at":320,"fence":"unasked"}"#;
    let report = with(&[(r#""at":299,"fence":"open","gate":"refused"}"#, unasked)]);
    assert!(matches!(report.findings()[0], Finding::Overlap { .. }), "{report}");
}

#[test]
fn three_at_once_are_three_pairs() {
    let report = audit(
        r#"{"what":"begin","instance":"a","epoch":1,"at":0,"until":100}
           {"what":"begin","instance":"b","epoch":2,"at":10,"until":90}
           {"what":"begin","instance":"c","epoch":3,"at":20,"until":80}"#,
    );
    assert_eq!((report.overlaps(), report.violations()), (3, 3), "{report}");
}

#[test]
fn tenures_of_two_clusters_may_overlap() {
    let other = GOOD.replace("\"c\"", "\"d\"");
    let report = audit(&(GOOD.to_owned() + &other));
    assert_eq!(report.verdict(), Verdict::Proved, "{report}");
    assert_eq!(report.tenures_count(), 6);
}

#[test]
fn one_instance_that_began_again_was_dead_before_whatever_its_deadline() {
    let again = |done| {
        format!(
            r#"{{"what":"begin","instance":"a","epoch":1,"at":0,"until":100}}
               {{"what":"write","instance":"a","epoch":1,"at":{done},"fence":"open"}}
               {{"what":"begin","instance":"a","epoch":2,"at":50,"until":150}}"#
        )
    };
    assert_eq!(audit(&again(49)).verdict(), Verdict::Proved);
    assert_eq!(audit(&again(50)).overlaps(), 1);
}

#[test]
fn an_epoch_that_is_used_twice_is_found_although_nothing_overlaps() {
    let report = with(&[("\"epoch\":3", "\"epoch\":2")]);
    let Finding::EpochReused { first, second } = only(&report) else { panic!("{report}") };
    assert_eq!((&*first.instance, first.line, &*second.instance, second.line), ("b", 7, "a", 10));
    let twice = GOOD.lines().nth(1).unwrap();
    let report = audit(&format!("{twice}\n{twice}\n"));
    assert!(matches!(only(&report), Finding::EpochReused { .. }), "{report}");
}

#[test]
fn an_epoch_that_goes_back_is_found_although_nothing_overlaps() {
    let report = with(&[("\"epoch\":2", "\"epoch\":4")]);
    let [Finding::StaleAdmitted { .. }, Finding::EpochWentBack { before, after }] =
        report.findings()
    else {
        panic!("{report}")
    };
    assert_eq!((before.epoch, after.epoch), epochs(4, 3));
    let text = report.to_string();
    assert!(text.contains("the epoch went back"), "{text}");
}

#[test]
fn a_stale_write_that_was_admitted_is_found_by_the_order_of_the_ledger() {
    let report = with(&[(
        "\"at\":299,\"fence\":\"open\",\"gate\":\"refused\"",
        "\"at\":299,\"fence\":\"open\",\"gate\":\"admitted\"",
    )]);
    let Finding::StaleAdmitted { tenure, line, newer_line, .. } = only(&report) else {
        panic!("{report}")
    };
    assert_eq!((tenure.line, *line, *newer_line), (7, 12, 11));
}

#[test]
fn a_write_past_a_shut_fence_is_found() {
    let through = "\"at\":350,\"fence\":\"shut\",\"gate\":\"admitted\"";
    let report = with(&[("\"at\":350,\"fence\":\"shut\"", through)]);
    assert!(
        report
            .findings()
            .iter()
            .any(|it| matches!(it, Finding::WroteAlthoughShut { line: 13, .. })),
        "{report}"
    );
    assert_eq!(report.verdict(), Verdict::Violated);
}

#[test]
fn a_write_past_the_own_end_is_found_although_nobody_followed() {
    let report = audit(
        r#"{"what":"begin","instance":"a","epoch":1,"at":0,"until":100}
           {"what":"end","instance":"a","epoch":1,"at":50}
           {"what":"write","instance":"a","epoch":1,"at":50,"fence":"open","gate":"admitted"}"#,
    );
    assert!(matches!(only(&report), Finding::ActedPastEnd { end: 50, .. }), "{report}");
}

#[test]
fn without_times_the_order_of_the_lines_is_judged() {
    let end = "{\"what\":\"end\",\"cluster\":\"c\",\"instance\":\"b\",\"epoch\":2}\n";
    let good = without_times(GOOD).replace(
        "{\"what\":\"begin\",\"cluster\":\"c\",\"instance\":\"a\",\"epoch\":3}\n",
        &format!("{end}{{\"what\":\"begin\",\"cluster\":\"c\",\"instance\":\"a\",\"epoch\":3}}\n"),
    );
    let report = audit(&good);
    assert_eq!(report.verdict(), Verdict::Proved, "{report}\n{good}");
    assert!(report.to_string().contains("their order in the ledger"), "{report}");
    assert!(report.closest().is_none());

    // The same end, behind the begin of the next.
    let late = without_times(GOOD) + end;
    let report = audit(&late);
    let Finding::Overlap { first, second } = &report.findings()[0] else { panic!("{report}") };
    assert_eq!(
        (first.scale, first.tenure.epoch, second.tenure.epoch),
        (Scale::Order, epochs(2, 3).0, epochs(2, 3).1)
    );
    assert!(report.to_string().contains("lines"), "{report}");
}

#[test]
fn what_is_not_told_is_a_gap() {
    // Neither a deadline nor an end, and another follows.
    let report = with(&[(",\"at\":196,\"until\":300", ",\"at\":196")]);
    assert!(matches!(only(&report), Finding::EndUnknown { tenure } if tenure.line == 7));
    assert_eq!(report.verdict(), Verdict::Unproved);
    assert!(report.to_string().starts_with("unproved"), "{report}");
    // Nobody follows: it may last.
    let report = with(&[(",\"at\":310,\"until\":400", ",\"at\":310")]);
    assert_eq!(report.verdict(), Verdict::Proved, "{report}");
    // No begin.
    let report =
        with(&[("\"begin\",\"cluster\":\"c\",\"instance\":\"b\"", "\"note\",\"instance\":\"b\"")]);
    assert!(
        report
            .findings()
            .iter()
            .any(|it| matches!(it, Finding::NoBegin { tenure } if tenure.line == 8)),
        "{report}"
    );
    // A renewal of a takeover that came to nothing is no tenure.
    let taking =
        r#"{"what":"renewed","cluster":"c","instance":"b","epoch":9,"at":311,"until":500}"#;
    let report = audit(&format!("{GOOD}{taking}\n"));
    assert_eq!((report.verdict(), report.tenures_count()), (Verdict::Proved, 3), "{report}");
    // One line without a time, one by another clock.
    let report = with(&[("\"epoch\":3,\"at\":311", "\"epoch\":3")]);
    assert!(matches!(only(&report), Finding::TimeMissing { line: 11 }), "{report}");
    let report = with(&[("\"epoch\":3,\"at\":311", "\"epoch\":3,\"clock\":\"x\",\"at\":11")]);
    assert!(matches!(only(&report), Finding::TwoClocks { line: 11 }), "{report}");
    // Nothing at all.
    for nothing in ["", "\n\n", "{\"what\":\"note\"}\n"] {
        let report = audit(nothing);
        assert!(matches!(only(&report), Finding::Empty), "{report}");
        assert_eq!(report.verdict(), Verdict::Unproved);
    }
}

#[test]
fn what_is_forgotten_is_a_gap_and_what_outlasts_it_is_still_found() {
    let begin = |epoch: u64, at: u64, until: u64| {
        let instance = ["a", "b"][usize::from(epoch.is_multiple_of(2))];
        format!(
            "{{\"what\":\"begin\",\"instance\":\"{instance}\",\"epoch\":{epoch},\"at\":{at},\"until\":{until}}}\n"
        )
    };
    let many: String = (1..=100).map(|epoch| begin(epoch, epoch * 10, epoch * 10 + 10)).collect();
    let remembering = |ledger: &str, tenures| {
        let mut auditor = Auditor::new().remember(tenures);
        auditor.read(ledger.as_bytes()).unwrap();
        auditor.finish()
    };
    let report = remembering(&many, 4);
    assert_eq!((report.verdict(), report.tenures_count()), (Verdict::Proved, 100), "{report}");
    assert!(report.tenures().len() <= 8);
    // A word about an old one.
    let report = remembering(&(many.clone() + &begin(3, 30, 40)), 4);
    assert!(matches!(only(&report), Finding::Forgotten { line: 101, .. }), "{report}");
    // An old one whose deadline reaches far: it overlaps all of the others, each once.
    let long = many.replace("\"at\":30,\"until\":40}", "\"at\":30,\"until\":2000}");
    let (short, whole) = (remembering(&long, 4), remembering(&long, 1000));
    assert_eq!(whole.overlaps(), 48 + 49 - 48, "those of the other instance: {whole}");
    assert_eq!(short.overlaps(), whole.overlaps(), "{short}");
}

#[test]
fn a_tenure_told_late_that_began_before_a_forgotten_one_is_still_found() {
    let begin = |epoch: u64, at: u64, until: u64| {
        format!(
            "{{\"what\":\"begin\",\"instance\":\"a\",\"epoch\":{epoch},\"at\":{at},\"until\":{until}}}\n"
        )
    };
    // The first two are forgotten. The first would last longest, the second began last.
    let mut ledger = begin(10, 10, 1000) + &begin(20, 50, 60) + &begin(30, 60, 70);
    ledger += &begin(25, 40, 45);
    let mut auditor = Auditor::new().remember(1);
    auditor.read(ledger.as_bytes()).unwrap();
    let report = auditor.finish();
    let Finding::EpochWentBack { before, after } = only(&report) else { panic!("{report}") };
    assert_eq!((before.epoch, after.epoch), epochs(25, 20));
}

#[test]
fn what_is_remembered_may_be_told_to_be_over_later() {
    let line = |what: &str, epoch: u64, at: u64| {
        let instance = ["a", "b"][usize::from(epoch.is_multiple_of(2))];
        format!(
            "{{\"what\":\"{what}\",\"instance\":\"{instance}\",\"epoch\":{epoch},\"at\":{at}}}\n"
        )
    };
    // Each end stands behind the begin of the next: whoever was stopped writes late.
    let ledger: String = (1..=20)
        .map(|epoch| {
            let end =
                if epoch > 1 { line("end", epoch - 1, epoch * 10 - 5) } else { String::new() };
            line("begin", epoch, epoch * 10) + &end
        })
        .collect();
    let mut auditor = Auditor::new().remember(2);
    auditor.read(ledger.as_bytes()).unwrap();
    let report = auditor.finish();
    assert_eq!((report.verdict(), report.tenures_count()), (Verdict::Proved, 20), "{report}");
}
