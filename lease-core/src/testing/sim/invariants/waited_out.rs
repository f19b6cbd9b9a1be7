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
use std::collections::{BTreeMap, HashSet};

/// See the [module](super). T is the least that anybody waits for, whatever the record says. What one
/// wrote oneself may be taken back at once, and what was released.
#[derive(Debug, Default)]
pub struct WaitedOut {
    seen: BTreeMap<usize, Seen>,
    sent: BTreeMap<usize, HashSet<Nonce>>,
}

#[derive(Debug)]
struct Seen {
    version: Version,
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
            Step::Answered { host, reply: Reply::Read(Sighting::Found { version, facts, .. }) }
                if self.seen.get(host).is_none_or(|seen| seen.version != *version) =>
            {
                let has_to_wait = self.has_to_wait(*host, facts.as_deref());
                let since = scene.reading(*host).monotonic;
                self.seen.insert(*host, Seen { version: version.clone(), since, has_to_wait });
            }
            Step::Answered { host, reply: Reply::Read(Sighting::Missing) }
            | Step::Trouble { host: Some(host), what: super::super::PROCESS_DIES } => {
                self.seen.remove(host);
            }
            Step::Sent { host, request: Request::Create(draft), .. } => {
                self.sent.entry(*host).or_default().insert(draft.nonce);
            }
            Step::Sent { host, request: Request::Replace(draft, version), at } => {
                self.sent.entry(*host).or_default().insert(draft.nonce);
                let watched = self.seen.get(host).filter(|seen| seen.version == *version);
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
