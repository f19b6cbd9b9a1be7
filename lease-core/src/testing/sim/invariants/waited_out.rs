//! Nobody takes a lease that is held before its own T has passed since it first held an answer that
//! showed that version.

use super::{Invariant, Scene};
use crate::{
    machine::{Facts, Reply, Request, Sighting},
    record::Nonce,
    store::Version,
    testing::sim::trace::Step,
};
use fencing::MonotonicTime;
use std::collections::{BTreeMap, HashMap, HashSet};

/// See the [module](super). T is the least that anybody waits for, whatever the record says. What one
/// wrote oneself may be taken back at once, and what was released.
#[derive(Debug, Default)]
pub struct WaitedOut {
    /// When the process of each host first held an answer that showed a version. Answers that come
    /// late may show an older one again, so none is forgotten.
    seen: BTreeMap<usize, HashMap<Version, Seen>>,
    sent: BTreeMap<usize, HashSet<Nonce>>,
}

#[derive(Debug)]
struct Seen {
    since: MonotonicTime,
    has_to_wait: bool,
}

impl WaitedOut {
    fn has_to_wait(&self, host: usize, facts: Option<&Facts>) -> bool {
        let Some(facts) = facts else { return true };
        let is_own = facts
            .nonce
            .is_some_and(|nonce| self.sent.get(&host).is_some_and(|sent| sent.contains(&nonce)));
        facts.holder.is_some() && !is_own
    }
}

impl Invariant for WaitedOut {
    fn name(&self) -> &'static str {
        "waited out"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Answered { host, reply: Reply::Read(Sighting::Found { version, facts, .. }) } => {
                let has_to_wait = self.has_to_wait(*host, facts.as_deref());
                let seen = self.seen.entry(*host).or_default();
                let since = scene.reading(*host).monotonic;
                seen.entry(version.clone()).or_insert(Seen { since, has_to_wait });
            }
            Step::Trouble { host: Some(host), what: super::super::PROCESS_DIES } => {
                self.seen.remove(host);
            }
            Step::Sent { host, request: Request::Create(draft), .. } => {
                self.sent.entry(*host).or_default().insert(draft.nonce);
            }
            Step::Sent { host, request: Request::Replace(draft, version), at } => {
                self.sent.entry(*host).or_default().insert(draft.nonce);
                let watched = self.seen.get(host).and_then(|seen| seen.get(version));
                let ttl = scene.timing(*host).ttl();
                if let Some(seen) = watched.filter(|seen| seen.has_to_wait && draft.seq == 1)
                    && at.monotonic - seen.since < ttl
                {
                    let waited = at.monotonic - seen.since;
                    return Err(format!(
                        "host {host} takes what it saw for {waited:?}, T is {ttl:?}"
                    ));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
