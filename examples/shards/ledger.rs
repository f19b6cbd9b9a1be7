//! Who worked on which shard when, and whether two ever did at once.
//!
//! An interval is never taken to be shorter than it was: it ends when the process said that the work had
//! ended, or when the process was seen to be dead.

use crate::{member::MemberId, wire::Moment};
use fencing::Epoch;

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

    /// What is wrong: work of two on one shard at once, or epochs that do not grow.
    pub(crate) fn audit(&self) -> Vec<String> {
        let mut works = self.works.clone();
        works.sort_by_key(|work| (work.shard, work.begin));
        let pairs = works.windows(2).filter_map(|pair| match pair {
            [first, second] if first.shard == second.shard => wrong(first, second),
            _ => None,
        });
        pairs.collect()
    }
}

fn wrong(first: &Work, second: &Work) -> Option<String> {
    let overlaps = first.end.is_none_or(|end| end > second.begin);
    if !overlaps && first.epoch < second.epoch {
        return None;
    }
    let what = if overlaps { "overlap" } else { "epochs do not grow" };
    Some(format!("shard {}: {what}: {first:?} and {second:?}", first.shard))
}
