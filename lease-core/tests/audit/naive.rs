//! The auditor against a naive reading of the same ledger: every definition as it is written down,
//! every pair looked at, nothing streamed and nothing forgotten.

use lease_core::{
    audit::{Auditor, Entry, FenceSaid, Finding, GateSaid, Report, TenureId, Verdict, What},
    fencing::{Epoch, MonotonicTime},
};
use proptest::prelude::*;
use std::collections::BTreeSet;

type Key = (String, u64, String);

#[derive(Debug)]
struct Naive {
    key: Key,
    begun: bool,
    from: u64,
    to: u64,
    bound: Option<u64>,
    done: Option<u64>,
}

/// What is found, by kind, each with whom it is about.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    overlaps: BTreeSet<(Key, Key)>,
    went_back: BTreeSet<Key>,
    reused: BTreeSet<u64>,
    stale: BTreeSet<u64>,
    shut: BTreeSet<u64>,
    past_end: BTreeSet<Key>,
    end_unknown: BTreeSet<Key>,
    no_begin: BTreeSet<Key>,
    is_empty: bool,
}

impl Found {
    fn is_violated(&self) -> bool {
        !(self.overlaps.is_empty()
            && self.went_back.is_empty()
            && self.reused.is_empty()
            && self.stale.is_empty()
            && self.shut.is_empty()
            && self.past_end.is_empty())
    }

    fn verdict(&self) -> Verdict {
        let has_gaps = self.is_empty || !self.end_unknown.is_empty() || !self.no_begin.is_empty();
        match (self.is_violated(), has_gaps) {
            (true, _) => Verdict::Violated,
            (false, true) => Verdict::Unproved,
            (false, false) => Verdict::Proved,
        }
    }

    fn of(report: &Report) -> Self {
        let key = |id: &TenureId| -> Key {
            (id.cluster.to_string(), id.epoch.as_u64(), id.instance.to_string())
        };
        let mut found = Self::default();
        for finding in report.findings() {
            match finding {
                Finding::Overlap { first, second } => {
                    let (one, other) = (key(&first.tenure), key(&second.tenure));
                    found.overlaps.insert((one.clone().min(other.clone()), one.max(other)));
                }
                Finding::EpochWentBack { after, .. } => {
                    found.went_back.insert(key(after));
                }
                Finding::EpochReused { second, .. } => {
                    found.reused.insert(second.line);
                }
                Finding::StaleAdmitted { line, .. } => {
                    found.stale.insert(*line);
                }
                Finding::WroteAlthoughShut { line, .. } => {
                    found.shut.insert(*line);
                }
                Finding::ActedPastEnd { span, .. } => {
                    found.past_end.insert(key(&span.tenure));
                }
                Finding::EndUnknown { tenure } => {
                    found.end_unknown.insert(key(tenure));
                }
                Finding::NoBegin { tenure } => {
                    found.no_begin.insert(key(tenure));
                }
                Finding::Empty => found.is_empty = true,
                other => panic!("{other}"),
            }
        }
        found
    }
}

fn takes_effect(entry: &Entry) -> bool {
    match entry.what {
        What::Write { gate: GateSaid::Admitted, .. } => true,
        What::Write { fence, gate: GateSaid::Unasked } => fence != FenceSaid::Shut,
        _ => false,
    }
}

/// One tenure, from all entries about it.
fn tenure(key: Key, lines: &[(u64, &Entry)], timed: bool) -> Option<Naive> {
    let position = |(line, entry): &(u64, &Entry)| match timed {
        true => entry.at.unwrap().as_nanos(),
        false => *line,
    };
    let all = |test: &dyn Fn(&Entry) -> bool| -> Vec<u64> {
        lines.iter().filter(|(_, entry)| test(entry)).map(position).collect()
    };
    let begins = all(&|entry| matches!(entry.what, What::Begin { .. }));
    let ends = all(&|entry| entry.what == What::End);
    let done = all(&|entry| {
        let open = matches!(entry.what, What::Write { fence: FenceSaid::Open, .. });
        takes_effect(entry) || (timed && open)
    });
    let deadline = lines.iter().filter_map(|(_, entry)| match entry.what {
        What::Begin { until } => until,
        What::Renewed { until } => Some(until),
        _ => None,
    });
    let deadline = deadline.map(MonotonicTime::as_nanos).max().filter(|_| timed);
    let from = *begins.iter().chain(&done).min()?;
    let bound = ends.into_iter().chain(deadline).min();
    let done = done.into_iter().max();
    let to = bound.unwrap_or(from).max(done.map_or(from, |last| last + 1));
    Some(Naive { key, begun: !begins.is_empty(), from, to, bound, done })
}

fn naive(entries: &[Entry]) -> Found {
    let lines: Vec<_> = (1..).zip(entries).collect();
    let clusters: BTreeSet<_> = entries.iter().map(|entry| entry.cluster.as_str()).collect();
    let mut found = Found::default();
    let mut count = 0;
    for cluster in clusters {
        let lines: Vec<_> =
            lines.iter().copied().filter(|(_, entry)| entry.cluster == cluster).collect();
        let timed = lines[0].1.at.is_some();
        let keys: BTreeSet<_> =
            lines.iter().map(|(_, it)| (it.epoch.as_u64(), it.instance.as_str())).collect();
        let tenures = keys.into_iter().filter_map(|(epoch, instance)| {
            let of =
                |(_, it): &&(u64, &Entry)| it.epoch.as_u64() == epoch && it.instance == instance;
            let lines: Vec<_> = lines.iter().filter(of).copied().collect();
            tenure((cluster.into(), epoch, instance.into()), &lines, timed)
        });
        let tenures: Vec<_> = tenures.collect();
        count += tenures.len();
        pairs(&tenures, &mut found);
        orders(&lines, &mut found);
    }
    found.is_empty = count == 0;
    found
}

fn pairs(tenures: &[Naive], found: &mut Found) {
    for one in tenures {
        if one.done.zip(one.bound).is_some_and(|(done, bound)| done >= bound) {
            found.past_end.insert(one.key.clone());
        }
        if !one.begun {
            found.no_begin.insert(one.key.clone());
        }
        let order = |it: &Naive| (it.from, it.key.1, it.key.2.clone());
        if one.bound.is_none() && tenures.iter().any(|other| order(other) > order(one)) {
            found.end_unknown.insert(one.key.clone());
        }
        for other in tenures {
            if other.from < one.from && other.key.1 > one.key.1 {
                found.went_back.insert(one.key.clone());
            }
            if order(one) >= order(other) {
                continue;
            }
            // `one` began first.
            let is_same = one.key.2 == other.key.2;
            let is_overlap = match is_same {
                true => one.done.is_some_and(|last| last >= other.from),
                false => one.from.max(other.from) < one.to.min(other.to),
            };
            if is_overlap {
                let (one, other) = (one.key.clone(), other.key.clone());
                found.overlaps.insert((one.clone().min(other.clone()), one.max(other)));
            }
        }
    }
}

fn orders(lines: &[(u64, &Entry)], found: &mut Found) {
    let is_begin = |entry: &Entry| matches!(entry.what, What::Begin { .. });
    for (index, (line, entry)) in lines.iter().enumerate() {
        let before = &lines[..index];
        if is_begin(entry)
            && before.iter().any(|(_, other)| is_begin(other) && other.epoch == entry.epoch)
        {
            found.reused.insert(*line);
        }
        if let What::Write { fence, gate: GateSaid::Admitted } = entry.what {
            if fence == FenceSaid::Shut {
                found.shut.insert(*line);
            }
            let is_newer = |(_, other): &(u64, &Entry)| {
                matches!(other.what, What::Write { gate: GateSaid::Admitted, .. })
                    && other.epoch > entry.epoch
            };
            if before.iter().any(is_newer) {
                found.stale.insert(*line);
            }
        }
    }
}

fn what() -> impl Strategy<Value = What> {
    let until = (0..60_u64).prop_map(MonotonicTime::from_nanos);
    let fence = prop_oneof![3 => Just(FenceSaid::Open), 1 => Just(FenceSaid::Shut), 1 => Just(FenceSaid::Unasked)];
    let gate =
        prop_oneof![Just(GateSaid::Admitted), Just(GateSaid::Refused), Just(GateSaid::Unasked)];
    prop_oneof![
        4 => proptest::option::of(until.clone()).prop_map(|until| What::Begin { until }),
        1 => until.prop_map(|until| What::Renewed { until }),
        4 => (fence, gate).prop_map(|(fence, gate)| What::Write { fence, gate }),
        2 => Just(What::End),
    ]
}

/// Anything at all. Few names and short times, so that everything meets.
fn anything() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (0..2_usize, 0..3_usize, 1..6_u64, 0..50_u64, what());
    let timed = any::<[bool; 2]>();
    (proptest::collection::vec(entry, 0..24), timed).prop_map(|(entries, timed)| {
        let entry = |(cluster, instance, epoch, at, what): (usize, usize, u64, u64, What)| {
            let epoch = Epoch::new(epoch).unwrap();
            let entry = Entry::new(["", "c"][cluster], ["a", "b", "d"][instance], epoch, what);
            if timed[cluster] { entry.at(MonotonicTime::from_nanos(at)) } else { entry }
        };
        entries.into_iter().map(entry).collect()
    })
}

/// Tenures one behind the other, as they should be, except that each may begin a little too early or
/// end a little too late.
fn nearly_good() -> impl Strategy<Value = Vec<Entry>> {
    let tenure = (0..3_usize, 0..8_u64, 1..20_u64, 0..4_u64, any::<bool>());
    proptest::collection::vec(tenure, 1..10).prop_map(|tenures| {
        let (mut now, mut entries) = (10_u64, Vec::new());
        for (epoch, (instance, gap, length, early, ends)) in (1..).zip(tenures) {
            let from = (now + gap).saturating_sub(early);
            let until = from + length;
            let epoch = Epoch::new(epoch).unwrap();
            let entry = |what, at| {
                let instance = ["a", "b", "d"][instance];
                Entry::new("c", instance, epoch, what).at(MonotonicTime::from_nanos(at))
            };
            let deadline = Some(MonotonicTime::from_nanos(until + 5 * u64::from(ends)));
            entries.push(entry(What::Begin { until: deadline }, from));
            let write = What::Write { fence: FenceSaid::Open, gate: GateSaid::Admitted };
            entries.push(entry(write, from + length / 2));
            if ends {
                entries.push(entry(What::End, until));
            }
            now = until;
        }
        entries
    })
}

fn audited(entries: &[Entry], remembered: usize) -> Report {
    let mut auditor = Auditor::new().remember(remembered);
    // By way of the text, which has to carry all of it.
    let text: String = entries.iter().map(Entry::to_line).collect();
    auditor.read(text.as_bytes()).unwrap();
    auditor.finish()
}

fn agree(entries: &[Entry]) -> Result<(), TestCaseError> {
    let expected = naive(entries);
    let report = audited(entries, 1000);
    prop_assert_eq!(Found::of(&report), &expected, "{}", report);
    prop_assert_eq!(report.verdict(), expected.verdict());
    // With a short memory there may be gaps, but nothing that went wrong is passed over.
    let forgetful = audited(entries, 1);
    if expected.is_violated() {
        prop_assert_ne!(forgetful.verdict(), Verdict::Proved, "{}", forgetful);
    }
    let knows_all = !forgetful.findings().iter().any(|it| matches!(it, Finding::Forgotten { .. }));
    if knows_all {
        prop_assert_eq!(forgetful.verdict(), expected.verdict(), "{}", forgetful);
    }
    Ok(())
}

impl PartialEq<&Found> for Found {
    fn eq(&self, other: &&Found) -> bool {
        self == *other
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn anything_is_judged_as_a_naive_reading_does(entries in anything()) {
        agree(&entries)?;
    }

    #[test]
    fn what_nearly_holds_is_judged_as_a_naive_reading_does(entries in nearly_good()) {
        agree(&entries)?;
    }
}
