//! What is going to happen in a world, in the order in which it does.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    time::Duration,
};

/// Things that are due at some true time. What is due at the same time happens in the order of the
/// numbers that it was given.
#[derive(Debug)]
pub(super) struct Agenda<D> {
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    dues: BTreeMap<u64, D>,
    ordered: u64,
}

impl<D> Agenda<D> {
    pub(super) fn new() -> Self {
        Self { queue: BinaryHeap::new(), dues: BTreeMap::new(), ordered: 0 }
    }

    /// A number larger than all before.
    pub(super) fn number(&mut self) -> u64 {
        self.ordered += 1;
        self.ordered
    }

    pub(super) fn put(&mut self, at: Duration, due: D) {
        let number = self.number();
        self.put_as(number, at, due);
    }

    /// Puts it there under a number that was drawn before.
    pub(super) fn put_as(&mut self, number: u64, at: Duration, due: D) {
        self.queue.push(Reverse((at, number)));
        self.dues.insert(number, due);
    }

    /// The next thing and its time; nothing at that time, if it was taken away meanwhile.
    pub(super) fn next(&mut self) -> Option<(Duration, Option<D>)> {
        let Reverse((at, number)) = self.queue.pop()?;
        Some((at, self.dues.remove(&number)))
    }

    /// Takes away what is of this kind, in the order of the numbers.
    pub(super) fn take(&mut self, is_it: impl Fn(&D) -> bool) -> Vec<D> {
        let (taken, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
            std::mem::take(&mut self.dues).into_iter().partition(|(_, due)| is_it(due));
        self.dues = rest;
        taken.into_values().collect()
    }
}
