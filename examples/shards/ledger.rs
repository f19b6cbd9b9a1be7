//! Who worked on which shard when, and whether two ever did at once.
//!
//! An interval is never taken to be shorter than it was: it ends when the process said that the work had
//! ended, or when the process was seen to be dead.

use crate::{member::MemberId, wire::Moment};
use fencing::Epoch;
use lease_core::audit::{Auditor, Entry, Report, What};

/// One period of work on a shard.
#[derive(Clone, Copy, Debug)]
struct Work {
    shard: u16,
    member: MemberId,
    epoch: Epoch,
    begin: Moment,
    end: Option<Moment>,
}

/// Everything that the processes said of their work.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    works: Vec<Work>,
}

impl Ledger {
    pub(crate) fn begin(&mut self, shard: u16, member: MemberId, epoch: Epoch, begin: Moment) {
        self.works.push(Work { shard, member, epoch, begin, end: None });
    }

    pub(crate) fn end(&mut self, shard: u16, member: MemberId, epoch: Epoch, end: Moment) {
        let is_it =
            |work: &&mut Work| (work.shard, work.member, work.epoch) == (shard, member, epoch);
        if let Some(work) = self.works.iter_mut().rev().find(is_it) {
            work.end = Some(end);
        }
    }

    /// The process is dead.
    pub(crate) fn died(&mut self, member: MemberId, at: Moment) {
        for work in self.works.iter_mut().filter(|work| work.member == member) {
            work.end.get_or_insert(at);
        }
    }

    /// How many shards a process works on.
    pub(crate) fn held(&self, member: MemberId) -> usize {
        self.works.iter().filter(|work| work.member == member && work.end.is_none()).count()
    }

    /// Who works on a shard.
    pub(crate) fn holder(&self, shard: u16) -> Option<MemberId> {
        let is_it = |work: &&Work| work.shard == shard && work.end.is_none();
        self.works.iter().rev().find(is_it).map(|work| work.member)
    }

    /// What `lease_core::audit` makes of it: each shard is a lease of its own.
    pub(crate) fn audit(&self) -> Report {
        let mut auditor = Auditor::new();
        for work in &self.works {
            let entry = |at: Moment, what| {
                let (shard, member) = (format!("{:03}", work.shard), work.member.to_string());
                Entry::new(&shard, &member, work.epoch, what).at(at.monotonic())
            };
            auditor.note(&entry(work.begin, What::Begin { until: None }));
            if let Some(end) = work.end {
                auditor.note(&entry(end, What::End));
            }
        }
        auditor.finish()
    }
}
