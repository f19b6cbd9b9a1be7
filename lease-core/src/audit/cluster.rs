//! The tenures of one cluster, and how they are held against each other.

use super::{
    entry::{Entry, FenceSaid, GateSaid, What},
    finding::{Finding, Scale, Span, TenureId},
    report::Findings,
    tenure::{Acts, Judged, Place, Seen},
};
use fencing::Epoch;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

#[derive(Debug)]
pub(super) struct Cluster {
    name: Arc<str>,
    instances: BTreeSet<Arc<str>>,
    tenures: BTreeMap<(Epoch, Arc<str>), Seen>,
    /// As the first entry had it.
    scale: Scale,
    clock: Option<String>,
    is_time_missing: bool,
    has_two_clocks: bool,
    /// The largest token that a gate let in, and where.
    admitted: Option<(Epoch, u64)>,
    forgotten: Option<Forgotten>,
    closest: Option<(u64, Span, Span)>,
    counts: Acts,
    count: u64,
}

/// What is left of the tenures that are no longer remembered.
#[derive(Debug)]
struct Forgotten {
    /// The largest of their epochs.
    epoch: Epoch,
    /// The one that ended last and the one that began last, often the same. Whatever still comes and
    /// overlaps any of them overlaps the first, or began before the second.
    marks: Vec<Judged>,
}

/// What a cluster comes to.
pub(super) struct Judgement {
    pub(super) judged: Vec<Judged>,
    pub(super) closest: Option<(u64, Span, Span)>,
    pub(super) counts: Acts,
    pub(super) tenures: u64,
    pub(super) instances: usize,
    pub(super) scale: Scale,
}

impl Cluster {
    pub(super) fn new(first: &Entry) -> Self {
        Self {
            name: first.cluster.as_str().into(),
            instances: BTreeSet::new(),
            tenures: BTreeMap::new(),
            scale: if first.at.is_some() { Scale::Time } else { Scale::Order },
            clock: first.clock.clone(),
            is_time_missing: false,
            has_two_clocks: false,
            admitted: None,
            forgotten: None,
            closest: None,
            counts: Acts::default(),
            count: 0,
        }
    }

    pub(super) fn take_in(&mut self, entry: &Entry, line: u64, found: &mut Findings) {
        let at = self.time_of(entry, line, found);
        let instance = self.instance(&entry.instance);
        if self.forgotten.as_ref().is_some_and(|forgotten| entry.epoch <= forgotten.epoch) {
            return found.add(Finding::Forgotten { line, epoch: entry.epoch });
        }
        if matches!(entry.what, What::Begin { .. }) {
            self.look_for_another_begin(entry.epoch, &instance, line, found);
        }
        if let What::Write { fence, gate } = entry.what {
            self.look_at_the_gate(entry.epoch, &instance, (fence, gate), line, found);
        }
        let seen = self.tenures.entry((entry.epoch, instance)).or_insert_with(|| Seen::new(line));
        seen.take_in(entry, Place { line, at });
    }

    /// The time of an entry, if it has one that can be compared with those of the others.
    fn time_of(&mut self, entry: &Entry, line: u64, found: &mut Findings) -> Option<u64> {
        if self.scale == Scale::Order {
            return None;
        }
        if entry.at.is_none() && !std::mem::replace(&mut self.is_time_missing, true) {
            found.add(Finding::TimeMissing { line });
        }
        if entry.clock != self.clock {
            if !std::mem::replace(&mut self.has_two_clocks, true) {
                found.add(Finding::TwoClocks { line });
            }
            return None;
        }
        entry.at.map(|at| at.as_nanos())
    }

    fn instance(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.instances.get(name) {
            return Arc::clone(known);
        }
        let name: Arc<str> = name.into();
        self.instances.insert(Arc::clone(&name));
        name
    }

    fn id(&self, epoch: Epoch, instance: &Arc<str>, line: u64) -> TenureId {
        let (cluster, instance) = (Arc::clone(&self.name), Arc::clone(instance));
        TenureId { cluster, epoch, instance, line }
    }

    fn look_for_another_begin(
        &self,
        epoch: Epoch,
        instance: &Arc<str>,
        line: u64,
        found: &mut Findings,
    ) {
        let of_epoch = self.tenures.range((epoch, Arc::from(""))..);
        let mut of_epoch = of_epoch.take_while(|((other, _), _)| *other == epoch);
        let earlier = of_epoch.find_map(|((_, who), seen)| Some((who, seen.begin?.line)));
        if let Some((who, begun)) = earlier {
            let first = self.id(epoch, who, begun);
            found.add(Finding::EpochReused { first, second: self.id(epoch, instance, line) });
        }
    }

    fn look_at_the_gate(
        &mut self,
        epoch: Epoch,
        instance: &Arc<str>,
        (fence, gate): (FenceSaid, GateSaid),
        line: u64,
        found: &mut Findings,
    ) {
        if gate != GateSaid::Admitted {
            return;
        }
        let key = (epoch, Arc::clone(instance));
        let begun = self.tenures.get(&key).and_then(|seen| seen.begin).map_or(line, |it| it.line);
        if fence == FenceSaid::Shut {
            found.add(Finding::WroteAlthoughShut { tenure: self.id(epoch, instance, begun), line });
        }
        match self.admitted {
            Some((newer, newer_line)) if newer > epoch => {
                let tenure = self.id(epoch, instance, begun);
                found.add(Finding::StaleAdmitted { tenure, line, newer, newer_line });
            }
            Some((same, _)) if same == epoch => {}
            _ => self.admitted = Some((epoch, line)),
        }
    }

    /// How many tenures are remembered.
    pub(super) fn len(&self) -> usize {
        self.tenures.len()
    }

    /// Judges the oldest and forgets them, all but `count`.
    pub(super) fn forget_all_but(&mut self, count: usize, found: &mut Findings) {
        let Some(last) = self.tenures.len().checked_sub(count + 1) else { return };
        let Some(epoch) = self.tenures.keys().nth(last).map(|(epoch, _)| *epoch) else { return };
        let mut judged = self.judge(Some(epoch), found);
        self.tenures.retain(|(other, _), _| *other > epoch);
        judged.extend(self.forgotten.take().into_iter().flat_map(|forgotten| forgotten.marks));
        let ended_last = judged.iter().max_by_key(|judged| judged.span.to);
        let began_last = judged.iter().max_by_key(|judged| judged.span.from);
        let mut marks: Vec<_> = ended_last.into_iter().chain(began_last).cloned().collect();
        marks.dedup_by(|one, other| one.span.tenure == other.span.tenure);
        self.forgotten = Some(Forgotten { epoch, marks });
    }

    pub(super) fn finish(mut self, found: &mut Findings) -> Judgement {
        let judged = self.judge(None, found);
        Judgement {
            judged,
            closest: self.closest,
            counts: self.counts,
            tenures: self.count,
            instances: self.instances.len(),
            scale: self.scale,
        }
    }

    /// Tells what is wrong with the tenures up to `last` (all), by themselves and beside all others
    /// that are remembered. Returns them by their begins.
    fn judge(&mut self, last: Option<Epoch>, found: &mut Findings) -> Vec<Judged> {
        let marks = self.forgotten.as_ref().map_or(&[][..], |forgotten| &forgotten.marks);
        let since = self.forgotten.as_ref().map(|forgotten| forgotten.epoch);
        // What is not due is looked at again later, beside what comes until then.
        let is_due = |epoch: Epoch| Some(epoch) > since && last.is_none_or(|last| epoch <= last);
        let mut all = marks.to_vec();
        for ((epoch, instance), seen) in &self.tenures {
            all.extend(seen.judged((&self.name, instance), *epoch, self.scale));
            if is_due(*epoch) {
                self.counts.add(seen.counts);
            }
        }
        all.sort_by(|one, other| order(one).cmp(&order(other)));
        let is_due = |judged: &Judged| is_due(judged.span.tenure.epoch);
        let is_young = |judged: &Judged| last.is_some_and(|last| judged.span.tenure.epoch > last);
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                if other.span.from >= one.span.to {
                    break;
                }
                if (is_due(one) || is_due(other)) && one.overlaps(other) {
                    let (first, second) = (one.span.clone(), other.span.clone());
                    found.add_once(Finding::Overlap { first, second });
                }
            }
            let is_followed = index + 1 < all.len();
            if is_followed && one.bound.is_none() && !is_young(one) {
                // What nobody follows may last for ever.
                found.add_once(Finding::EndUnknown { tenure: one.span.tenure.clone() });
            }
            if is_due(one) {
                alone(one, found);
                self.count += 1;
            }
        }
        went_back(&all, &is_due, found);
        for pair in all.windows(2).filter(|pair| is_due(&pair[0])) {
            nearer(&mut self.closest, &pair[0], &pair[1]);
        }
        all.retain(is_due);
        all
    }
}

fn order(judged: &Judged) -> (u64, Epoch, &str) {
    (judged.span.from, judged.span.tenure.epoch, &judged.span.tenure.instance)
}

/// What is wrong with a tenure by itself.
fn alone(judged: &Judged, found: &mut Findings) {
    if let (Some(end), Some(done)) = (judged.bound, judged.done_until)
        && done > end
    {
        found.add(Finding::ActedPastEnd { span: judged.span.clone(), end });
    }
    if !judged.has_begun {
        found.add(Finding::NoBegin { tenure: judged.span.tenure.clone() });
    }
}

/// Epochs have to grow from begin to begin.
fn went_back(all: &[Judged], is_due: &impl Fn(&Judged) -> bool, found: &mut Findings) {
    let mut largest: Option<&Judged> = None;
    for one in all {
        match largest {
            Some(before) if before.span.tenure.epoch > one.span.tenure.epoch => {
                if is_due(one) || is_due(before) {
                    let (before, after) = (before.span.tenure.clone(), one.span.tenure.clone());
                    found.add_once(Finding::EpochWentBack { before, after });
                }
            }
            _ => largest = Some(one),
        }
    }
}

fn nearer(closest: &mut Option<(u64, Span, Span)>, one: &Judged, other: &Judged) {
    if one.span.tenure.instance == other.span.tenure.instance {
        return;
    }
    let apart = other.span.from.saturating_sub(one.span.to);
    if closest.as_ref().is_none_or(|(least, ..)| apart < *least) {
        *closest = Some((apart, one.span.clone(), other.span.clone()));
    }
}
