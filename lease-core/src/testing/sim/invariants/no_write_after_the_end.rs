//! Nothing is written under an epoch once it ended, and nothing but a release once its fence was
//! shut.

use super::{Invariant, Scene};
use crate::{
    machine::Request,
    testing::sim::trace::{Step, Tenure},
};
use std::collections::BTreeMap;

/// See the [module](super).
#[derive(Debug, Default)]
pub struct NoWriteAfterTheEnd {
    last: BTreeMap<usize, State>,
}

#[derive(Debug)]
struct State {
    tenure: Tenure,
    is_shut: bool,
    is_over: bool,
}

impl Invariant for NoWriteAfterTheEnd {
    fn name(&self) -> &'static str {
        "no write after the end"
    }

    fn observe(&mut self, step: &Step, _: &Scene<'_>) -> Result<(), String> {
        match step {
            Step::TakingOver { tenure, .. } => {
                let state = State { tenure: *tenure, is_shut: false, is_over: false };
                self.last.insert(tenure.host, state);
            }
            Step::Shut { tenure } | Step::Ended { tenure, .. } => {
                if let Some(state) = self.last.get_mut(&tenure.host)
                    && state.tenure == *tenure
                {
                    state.is_shut = true;
                    state.is_over |= matches!(step, Step::Ended { .. });
                }
            }
            Step::Sent {
                host,
                request: Request::Create(draft) | Request::Replace(draft, _),
                ..
            } => {
                let Some(state) = self.last.get(host) else { return Ok(()) };
                if state.tenure.epoch != draft.epoch {
                    return Ok(());
                }
                let tenure = state.tenure;
                if state.is_over {
                    return Err(format!("{tenure} has ended, and is written again"));
                }
                if state.is_shut && draft.held {
                    return Err(format!("{tenure} has shut its fence, and renews"));
                }
                if !state.is_shut && !draft.held {
                    return Err(format!("{tenure} is released before its fence is shut"));
                }
            }
            // Another process knows nothing of it, and may try a number again that was never in use.
            Step::Trouble { host: Some(host), what: super::super::PROCESS_DIES } => {
                self.last.remove(host);
            }
            _ => {}
        }
        Ok(())
    }
}
