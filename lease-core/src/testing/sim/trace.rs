//! What happened in a world, step by step, and how a person reads it.

use crate::{
    machine::{EndReason, Predecessor, Reply, Request, Sighting},
    record::Nonce,
    store::StoreErrorKind,
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::{
    collections::hash_map::DefaultHasher,
    fmt,
    hash::{Hash, Hasher},
    time::Duration,
};

/// One tenure of a world.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tenure {
    /// Tenures are numbered in the order in which they were taken.
    pub number: u32,
    /// The host that has it, counted from 0.
    pub host: usize,
    /// Its epoch.
    pub epoch: Epoch,
}

impl fmt::Display for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tenure {} of host {} (epoch {})", self.number, self.host, self.epoch)
    }
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// The resource admitted a write of this tenure.
    Admitted {
        /// Whose write it was.
        tenure: Tenure,
    },
    /// The store carried out a write of the lease.
    Applied {
        /// Who had sent it; nobody if people did it by hand.
        host: Option<usize>,
        /// The nonce that the object has now, if it is a record.
        nonce: Option<Nonce>,
    },
    /// A host got the answer to a request.
    Answered {
        /// Which.
        host: usize,
        /// The answer.
        reply: Reply,
    },
    /// A tenure ended.
    Ended {
        /// Which.
        tenure: Tenure,
        /// Why.
        reason: EndReason,
    },
    /// The fence of a tenure got a later deadline, or refused it.
    Extended {
        /// Which.
        tenure: Tenure,
        /// When the renewal that proves it was sent.
        sent: Reading,
        /// For how long that is good.
        window: Duration,
        /// The fence took it.
        accepted: bool,
    },
    /// The application looked at its fence.
    Looked {
        /// Of which tenure.
        tenure: Tenure,
        /// What it saw.
        is_open: bool,
    },
    /// The fence of a tenure opened, or refused to.
    Opened {
        /// Which.
        tenure: Tenure,
        /// When the write that proves it was sent.
        sent: Reading,
        /// For how long that is good.
        window: Duration,
        /// The fence took it.
        accepted: bool,
    },
    /// From here on nothing goes wrong.
    Peace,
    /// The resource refused a write of this tenure, since it had seen a larger token.
    Refused {
        /// Whose write it was.
        tenure: Tenure,
    },
    /// A host has done all it can for now.
    Rested {
        /// Which.
        host: usize,
        /// When it wants to be woken, on its own clock.
        wake: Option<MonotonicTime>,
    },
    /// A host sent a request to the store.
    Sent {
        /// Which.
        host: usize,
        /// The request.
        request: Request,
        /// Both its clocks right before.
        at: Reading,
    },
    /// The fence of a tenure was shut by its owner, or its process is gone.
    Shut {
        /// Which.
        tenure: Tenure,
    },
    /// A host holds the lease, its fence is still shut.
    TakingOver {
        /// The tenure.
        tenure: Tenure,
        /// What was there before.
        predecessor: Predecessor,
        /// It is held back until then, on its own clock.
        held_back_until: Option<MonotonicTime>,
    },
    /// Something went wrong, or right again.
    Trouble {
        /// With which host; with the store, if with none.
        host: Option<usize>,
        /// What.
        what: &'static str,
    },
}

impl Step {
    /// The host that it is about.
    #[must_use]
    pub const fn host(&self) -> Option<usize> {
        match self {
            Self::Admitted { tenure }
            | Self::Ended { tenure, .. }
            | Self::Extended { tenure, .. }
            | Self::Looked { tenure, .. }
            | Self::Opened { tenure, .. }
            | Self::Refused { tenure }
            | Self::Shut { tenure }
            | Self::TakingOver { tenure, .. } => Some(tenure.host),
            Self::Answered { host, .. } | Self::Rested { host, .. } | Self::Sent { host, .. } => {
                Some(*host)
            }
            Self::Applied { host, .. } | Self::Trouble { host, .. } => *host,
            Self::Peace => None,
        }
    }

    /// Too small and too many to be shown to a person.
    const fn is_minor(&self) -> bool {
        matches!(
            self,
            Self::Rested { .. }
                | Self::Looked { .. }
                | Self::Answered { reply: Reply::Read(Sighting::NotModified), .. }
                | Self::Sent { request: Request::Read { .. }, .. }
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Admitted { tenure } => write!(f, "resource admits a write of {tenure}"),
            Self::Applied { host: Some(_), .. } => f.write_str("its write is carried out"),
            Self::Applied { host: None, .. } => f.write_str("the lease is changed by hand"),
            Self::Answered { reply, .. } => write!(f, "is answered: {}", Answer(reply)),
            Self::Ended { tenure, reason } => write!(f, "ENDS {tenure}: {reason}"),
            Self::Extended { tenure, window, accepted, .. } => {
                let verb = if *accepted { "extends" } else { "may not extend" };
                write!(f, "{verb} the fence of {tenure} to {window:?} after it sent the renewal")
            }
            Self::Looked { tenure, is_open } => {
                let seen = if *is_open { "open" } else { "shut" };
                write!(f, "looks at the fence of {tenure}: {seen}")
            }
            Self::Opened { tenure, accepted, .. } => {
                let verb = if *accepted { "OPENS" } else { "may not open" };
                write!(f, "{verb} the fence of {tenure}")
            }
            Self::Peace => f.write_str("peace: from here on nothing goes wrong"),
            Self::Refused { tenure } => write!(f, "resource refuses a write of {tenure}"),
            Self::Rested { wake, .. } => write!(f, "rests until {wake:?}"),
            Self::Sent { request, .. } => match request {
                Request::Create(draft) => write!(f, "sends: create, epoch {}", draft.epoch),
                Request::Read { .. } => f.write_str("sends: read"),
                Request::Replace(draft, _) if !draft.held => {
                    write!(f, "sends: release of epoch {}", draft.epoch)
                }
                Request::Replace(draft, version) => write!(
                    f,
                    "sends: replace {} by epoch {}, seq {}",
                    version.tag(),
                    draft.epoch,
                    draft.seq
                ),
            },
            Self::Shut { tenure } => write!(f, "SHUTS the fence of {tenure}"),
            Self::TakingOver { tenure, predecessor, held_back_until } => {
                write!(f, "TAKES {tenure} over from {predecessor:?}")?;
                match held_back_until {
                    Some(until) => write!(f, ", held back until {until:?}"),
                    None => Ok(()),
                }
            }
            Self::Trouble { what, .. } => f.write_str(what),
        }
    }
}

struct Answer<'a>(&'a Reply);

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reply::Failed(StoreErrorKind::Precondition) => f.write_str("the condition fails"),
            Reply::Failed(error) => write!(f, "{error:?}"),
            Reply::Read(Sighting::Found { version, verdict, facts, .. }) => {
                write!(f, "found {} ({verdict:?}", version.tag())?;
                match facts {
                    None => f.write_str(")"),
                    Some(facts) => match &facts.holder {
                        Some(holder) => write!(f, ", epoch {} held by {holder})", facts.epoch),
                        None => write!(f, ", epoch {} released)", facts.epoch),
                    },
                }
            }
            Reply::Read(Sighting::Missing) => f.write_str("missing"),
            Reply::Read(Sighting::NotModified) => f.write_str("not modified"),
            Reply::Written(version) => write!(f, "written as {}", version.tag()),
        }
    }
}

/// A step and when it happened, in true time since the world began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record<S = Step> {
    /// When.
    pub at: Duration,
    /// What.
    pub step: S,
}

/// Everything so far as one number; all of it, if somebody wants to see it.
#[derive(Debug)]
pub(super) struct Trace<S = Step> {
    digest: u64,
    steps: u64,
    records: Option<Vec<Record<S>>>,
}

impl<S> Default for Trace<S> {
    fn default() -> Self {
        Self { digest: 0, steps: 0, records: None }
    }
}

impl<S: Clone + Hash> Trace<S> {
    pub(super) fn recorded() -> Self {
        Self { records: Some(Vec::new()), ..Self::default() }
    }

    pub(super) fn note(&mut self, at: Duration, step: &S) {
        let mut hasher = DefaultHasher::new();
        (self.digest, at, step).hash(&mut hasher);
        self.digest = hasher.finish();
        self.steps += 1;
        if let Some(records) = &mut self.records {
            records.push(Record { at, step: step.clone() });
        }
    }

    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    pub(super) fn into_records(self) -> Vec<Record<S>> {
        self.records.unwrap_or_default()
    }
}

/// A time line of `records` for people: who did what, and in a column for each host whether its
/// fence is open (`#`), its lease held with the fence shut (`:`), or neither.
///
/// Reads that show nothing new are left out.
#[must_use]
pub fn time_line(records: &[Record]) -> String {
    let hosts = records.iter().filter_map(|it| it.step.host()).max().map_or(0, |most| most + 1);
    let mut lanes = vec![' '; hosts];
    let mut lines = String::new();
    for Record { at, step } in records {
        if let (Some(host), Some(lane)) = (step.host(), lane(step)) {
            lanes[host] = lane;
        }
        if step.is_minor() {
            continue;
        }
        let who = match step.host() {
            Some(host) => format!("host {host} "),
            None => String::new(),
        };
        let lanes: String = lanes.iter().flat_map(|lane| [*lane, ' ']).collect();
        lines.push_str(&format!("{:>10.4} s  {lanes} {who}{step}\n", at.as_secs_f64()));
    }
    lines
}

fn lane(step: &Step) -> Option<char> {
    match step {
        Step::Opened { accepted: true, .. } => Some('#'),
        Step::TakingOver { .. } => Some(':'),
        Step::Shut { .. } | Step::Ended { .. } => Some(' '),
        _ => None,
    }
}
