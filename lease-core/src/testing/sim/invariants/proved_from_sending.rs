//! A deadline is never beyond S + T − M of a write of one's own that landed, and never moved once it
//! passed.

use super::{Invariant, Scene};
use crate::{
    machine::Request,
    record::Nonce,
    testing::sim::trace::{Step, Tenure},
};
use fencing::{MonotonicTime, Reading};
use std::collections::BTreeMap;

/// See the [module](super). T − M is computed anew here, from T and R alone.
#[derive(Debug, Default)]
pub struct ProvedFromSending {
    /// When each write of the last tenure of each host was sent, and whether it landed.
    writes: BTreeMap<usize, Vec<Write>>,
    deadlines: BTreeMap<usize, (Tenure, MonotonicTime)>,
}

#[derive(Debug)]
struct Write {
    nonce: Nonce,
    sent: Reading,
    landed: bool,
}

/// More writes than any tenure has unresolved.
const REMEMBERED: usize = 256;

impl ProvedFromSending {
    fn proved(
        &mut self,
        tenure: Tenure,
        sent: Reading,
        window: std::time::Duration,
        scene: &Scene<'_>,
    ) -> Result<(), String> {
        let timing = scene.timing(tenure.host);
        let (ttl, renew) = (timing.ttl(), timing.renew());
        let longest = ttl - renew.max(ttl / 5);
        if window > longest {
            return Err(format!("{tenure} is given {window:?} where T − M is {longest:?}"));
        }
        let is_proof = |write: &Write| write.landed && write.sent == sent;
        if !self.writes.get(&tenure.host).is_some_and(|writes| writes.iter().any(is_proof)) {
            return Err(format!(
                "{tenure} is proved from {sent:?}, when no write that landed was sent"
            ));
        }
        let now = scene.reading(tenure.host).monotonic;
        let deadline = sent.monotonic + window;
        if let Some((same, before)) = self.deadlines.insert(tenure.host, (tenure, deadline))
            && same == tenure
            && before <= now
        {
            return Err(format!("{tenure} is extended at {now:?}, its deadline was {before:?}"));
        }
        if deadline <= now {
            return Err(format!("{tenure} is opened at {now:?}, after its deadline {deadline:?}"));
        }
        Ok(())
    }
}

impl Invariant for ProvedFromSending {
    fn name(&self) -> &'static str {
        "proved from sending"
    }

    fn observe(&mut self, step: &Step, scene: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::Sent {
                host,
                request: Request::Create(draft) | Request::Replace(draft, _),
                at,
            } => {
                let writes = self.writes.entry(*host).or_default();
                if writes.len() == REMEMBERED {
                    writes.remove(0);
                }
                writes.push(Write { nonce: draft.nonce, sent: *at, landed: false });
                Ok(())
            }
            Step::Applied { host: Some(host), nonce: Some(nonce) } => {
                let writes = self.writes.entry(*host).or_default();
                for write in writes.iter_mut().filter(|write| write.nonce == *nonce) {
                    write.landed = true;
                }
                Ok(())
            }
            Step::Opened { tenure, sent, window, accepted: true }
            | Step::Extended { tenure, sent, window, accepted: true } => {
                self.proved(*tenure, *sent, *window, scene)
            }
            _ => Ok(()),
        }
    }
}
