//! Headers in takeover order, until the caller has enough.

use super::{Catalog, ListedSnapshot, Verdict, read};
use futures_util::future::join_all;
use std::collections::VecDeque;

/// How many headers are read at a time.
pub const PAGE: usize = 8;

/// One snapshot and what it is worth.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checked {
    /// The stored version.
    pub listed: ListedSnapshot,
    /// What it is worth.
    pub verdict: Verdict,
}

/// Checks the snapshots of a listing in takeover order; see [`Catalog::walk`].
#[derive(Debug)]
pub struct Walk<'a> {
    catalog: &'a Catalog,
    ahead: &'a [ListedSnapshot],
    page: VecDeque<Checked>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(catalog: &'a Catalog, listed: &'a [ListedSnapshot]) -> Self {
        Self { catalog, ahead: listed, page: VecDeque::new() }
    }

    /// The next snapshot and its verdict; `None` after the last.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, the next call gives what this one would have given.
    pub async fn next(&mut self) -> Option<Checked> {
        if self.page.is_empty() {
            // A page is read whole before any of it is given, so that all of it is remembered.
            let (page, ahead) = self.ahead.split_at(self.ahead.len().min(PAGE));
            let verdicts = self.catalog.read_page(page).await;
            let checked = page.iter().cloned().zip(verdicts);
            self.page.extend(checked.map(|(listed, verdict)| Checked { listed, verdict }));
            self.ahead = ahead;
        }
        self.page.pop_front()
    }

    /// All that are left.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, those that it had are lost to this walk, and remembered by the catalog.
    pub async fn rest(mut self) -> Vec<Checked> {
        let mut all = Vec::new();
        while let Some(checked) = self.next().await {
            all.push(checked);
        }
        all
    }
}

impl Catalog {
    /// The verdicts on a few snapshots, in their order. Only those that are not known are read.
    async fn read_page(&self, page: &[ListedSnapshot]) -> Vec<Verdict> {
        if let Some(all) = page.iter().map(|listed| self.0.cache.find(listed)).collect() {
            return all;
        }
        let _reading = self.0.reading.lock().await;
        join_all(page.iter().map(|listed| self.known_or_read(listed))).await
    }

    /// The verdict on one, for whoever holds the lock: another may have read it meanwhile.
    pub(super) async fn known_or_read(&self, listed: &ListedSnapshot) -> Verdict {
        if let Some(known) = self.0.cache.find(listed) {
            return known;
        }
        let verdict = read::verdict(&self.0, listed).await;
        self.0.cache.keep(listed, &verdict);
        verdict
    }
}
