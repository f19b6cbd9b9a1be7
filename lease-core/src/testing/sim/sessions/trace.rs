//! What happened in a world of sessions, step by step, and how a person reads it.

use super::super::trace::Record;
use crate::{
    machine::RequestId,
    record::Nonce,
    session::{
        DenyReason, Draft, LeaseEndReason, Life, Object, Reply, Request, SessionState, Sighting,
    },
    store::StoreErrorKind,
};
use fencing::{Epoch, MonotonicTime, Reading};
use std::{fmt, time::Duration};

/// One tenure of a named lease.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tenure {
    /// Tenures are numbered in the order in which they begin.
    pub number: u32,
    /// The host that has it, counted from 0.
    pub host: usize,
    /// Which lease, counted from 0.
    pub name: usize,
    /// Its epoch.
    pub epoch: Epoch,
}

impl fmt::Display for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, host, name, epoch } = self;
        write!(f, "tenure {number} of lease {name} by host {host} (epoch {epoch})")
    }
}

/// What a process was asked to do with a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Wish {
    /// [`acquire`](crate::session::SessionMachine::acquire).
    Acquire,
    /// [`give_up`](crate::session::SessionMachine::give_up).
    GiveUp,
    /// [`release`](crate::session::SessionMachine::release).
    Release,
    /// [`try_acquire`](crate::session::SessionMachine::try_acquire).
    TryAcquire,
    /// [`unwatch`](crate::session::SessionMachine::unwatch).
    Unwatch,
    /// [`watch`](crate::session::SessionMachine::watch).
    Watch,
}

/// What was done to the fence of a session or of a lease.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Move {
    /// It was opened; otherwise it was extended.
    pub opens: bool,
    /// When the request that proves it was sent.
    pub sent: Reading,
    /// For how long that is good; for ever, as long as the session is, if this is the most there is.
    pub window: Duration,
    /// The fence took it.
    pub accepted: bool,
}

/// One thing that happened.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Step {
    /// A lease is held and its fence open.
    Acquired {
        /// The tenure.
        tenure: Tenure,
    },
    /// The resource under a lease admitted a write of this tenure.
    Admitted {
        /// Whose write it was.
        tenure: Tenure,
    },
    /// The store carried out a write.
    Applied {
        /// Who had sent it; nobody if people did it by hand.
        host: Option<usize>,
        /// What was written.
        object: Object,
        /// The nonce that it has now, if it is a record.
        nonce: Option<Nonce>,
    },
    /// A host got the answer to a request.
    Answered {
        /// Which.
        host: usize,
        /// To which.
        id: RequestId,
        /// The answer.
        reply: Reply,
    },
    /// A wish was denied.
    Denied {
        /// To which host.
        host: usize,
        /// Which lease.
        name: usize,
        /// Why.
        reason: DenyReason,
    },
    /// A process is gone.
    Died {
        /// That of this host.
        host: usize,
    },
    /// A tenure ended.
    Ended {
        /// Which.
        tenure: Tenure,
        /// Why.
        reason: LeaseEndReason,
    },
    /// A host does not wait for an answer any more.
    Forgot {
        /// Which.
        host: usize,
        /// To which request.
        id: RequestId,
    },
    /// Every lease has been wanted long enough; each is given back once from here on.
    HandOver,
    /// A lease is held, its fence stays shut for now.
    HeldBack {
        /// The tenure.
        tenure: Tenure,
        /// Until when, on its host's own clock.
        until: MonotonicTime,
    },
    /// A host ended a session that was silent.
    Killed {
        /// Which host.
        host: usize,
        /// The life that it ended.
        life: Life,
    },
    /// The fence of a lease was moved, or refused to.
    LeaseFence {
        /// Of which tenure.
        tenure: Tenure,
        /// How.
        moved: Move,
    },
    /// The fence of a lease was shut by its owner, or its process is gone.
    LeaseShut {
        /// Of which tenure.
        tenure: Tenure,
    },
    /// The application looked at the fence of a lease.
    Looked {
        /// Of which tenure.
        tenure: Tenure,
        /// What it saw.
        is_open: bool,
        /// What that of the session showed right before.
        session_is_open: bool,
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
        /// The request's own number.
        id: RequestId,
        /// About what.
        object: Object,
        /// What.
        request: Request,
        /// Both its clocks right before.
        at: Reading,
    },
    /// The fence of a session was moved, or refused to.
    SessionFence {
        /// Of which host.
        host: usize,
        /// Of which life.
        epoch: Epoch,
        /// How.
        moved: Move,
    },
    /// The fence of a session was shut by its owner.
    SessionShut {
        /// Of which host.
        host: usize,
        /// Of which life.
        epoch: Epoch,
    },
    /// A lease was changed by hand in a way that the token alone covers: from here on nothing is
    /// claimed of it but what its resource admits and how its tenures end.
    TokenAlone {
        /// Which.
        name: usize,
    },
    /// Something went wrong, or right again.
    Trouble {
        /// With which host; with the store, if with none.
        host: Option<usize>,
        /// What.
        what: &'static str,
    },
    /// The application of a host asked for something.
    Wished {
        /// Which host.
        host: usize,
        /// Which lease.
        name: usize,
        /// What.
        wish: Wish,
    },
}

impl Step {
    /// The host that it is about.
    #[must_use]
    pub const fn host(&self) -> Option<usize> {
        match self {
            Self::Acquired { tenure }
            | Self::Admitted { tenure }
            | Self::Ended { tenure, .. }
            | Self::HeldBack { tenure, .. }
            | Self::LeaseFence { tenure, .. }
            | Self::LeaseShut { tenure }
            | Self::Looked { tenure, .. }
            | Self::Refused { tenure } => Some(tenure.host),
            Self::Answered { host, .. }
            | Self::Denied { host, .. }
            | Self::Died { host }
            | Self::Forgot { host, .. }
            | Self::Killed { host, .. }
            | Self::Rested { host, .. }
            | Self::Sent { host, .. }
            | Self::SessionFence { host, .. }
            | Self::SessionShut { host, .. }
            | Self::Wished { host, .. } => Some(*host),
            Self::Applied { host, .. } | Self::Trouble { host, .. } => *host,
            Self::HandOver | Self::Peace | Self::TokenAlone { .. } => None,
        }
    }

    /// Too small and too many to be shown to a person.
    const fn is_minor(&self) -> bool {
        matches!(
            self,
            Self::Rested { .. }
                | Self::Looked { .. }
                | Self::Forgot { .. }
                | Self::Answered {
                    reply: Reply::Lease(Sighting::NotModified)
                        | Reply::Session(Sighting::NotModified),
                    ..
                }
                | Self::Sent { request: Request::Read { .. }, .. }
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquired { tenure } => write!(f, "has acquired {tenure}"),
            Self::Admitted { tenure } => write!(f, "resource admits a write of {tenure}"),
            Self::Applied { host: Some(_), object, nonce } => {
                write!(f, "its write is carried out: {} {}", Named(object), Short(*nonce))
            }
            Self::Applied { host: None, object, nonce } => {
                write!(f, "{} is changed by hand {}", Named(object), Short(*nonce))
            }
            Self::Answered { id, reply, .. } => write!(f, "is answered {id:?}: {}", Answer(reply)),
            Self::Denied { name, reason, .. } => write!(f, "is denied lease {name}: {reason}"),
            Self::Died { .. } => f.write_str(super::super::PROCESS_DIES),
            Self::Ended { tenure, reason } => write!(f, "ENDS {tenure}: {reason}"),
            Self::Forgot { id, .. } => write!(f, "forgets {id:?}"),
            Self::HandOver => f.write_str("each lease is given back once from here on"),
            Self::HeldBack { tenure, until } => {
                write!(f, "TAKES {tenure}, held back until {until:?}")
            }
            Self::Killed { life, .. } => write!(f, "has killed the life {}", life.epoch),
            Self::LeaseFence { tenure, moved } => write!(f, "{moved} the fence of {tenure}"),
            Self::LeaseShut { tenure } => write!(f, "SHUTS the fence of {tenure}"),
            Self::Looked { tenure, is_open, .. } => {
                let seen = if *is_open { "open" } else { "shut" };
                write!(f, "looks at the fence of {tenure}: {seen}")
            }
            Self::Peace => f.write_str("peace: from here on nothing goes wrong"),
            Self::Refused { tenure } => write!(f, "resource refuses a write of {tenure}"),
            Self::Rested { wake, .. } => write!(f, "rests until {wake:?}"),
            Self::Sent { id, object, request, .. } => {
                write!(f, "sends {id:?}: {} {}", Asked(request), Named(object))
            }
            Self::SessionFence { epoch, moved, .. } => {
                write!(f, "{moved} the fence of its session's life {epoch}")
            }
            Self::SessionShut { epoch, .. } => {
                write!(f, "SHUTS the fence of its session's life {epoch}")
            }
            Self::TokenAlone { name } => {
                write!(f, "lease {name} is covered by its token alone from here on")
            }
            Self::Trouble { what, .. } => f.write_str(what),
            Self::Wished { name, wish, .. } => write!(f, "is asked for {wish:?} of lease {name}"),
        }
    }
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.opens, self.accepted) {
            (true, true) => "OPENS",
            (true, false) => "may not open",
            (false, true) => "extends",
            (false, false) => "may not extend",
        })
    }
}

struct Named<'a>(&'a Object);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Object::Lease(key) => write!(f, "lease {key}"),
            Object::Session(instance) => write!(f, "session {instance}"),
        }
    }
}

/// The beginning of a nonce, enough to tell writes apart.
struct Short(Option<Nonce>);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(nonce) => write!(f, "({:.6})", nonce.to_string()),
            None => f.write_str("(no record)"),
        }
    }
}

struct Asked<'a>(&'a Request);

impl fmt::Display for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, draft, over) = match self.0 {
            Request::Create(draft) => ("create", draft, String::new()),
            Request::Read { .. } => return f.write_str("read"),
            Request::Replace(draft, version) => {
                ("replace", draft, format!(" over {:.6}", version.tag()))
            }
        };
        let nonce = |draft: &crate::machine::Draft| Short(Some(draft.nonce)).to_string();
        match draft {
            Draft::Lease(named) => {
                let state = match (named.lease.held, named.held_back) {
                    (false, _) => "released",
                    (true, true) => "held, handing its hold-back on",
                    (true, false) => "held",
                };
                let (epoch, life) = (named.lease.epoch, named.life.epoch);
                write!(
                    f,
                    "{verb}{over} {}: {state}, epoch {epoch}, life {life},",
                    nonce(&named.lease)
                )
            }
            Draft::Session(session) => {
                let (epoch, seq) = (session.lease.epoch, session.lease.seq);
                let (state, nonce) = (session.state, nonce(&session.lease));
                write!(f, "{verb}{over} {nonce}: {state:?}, life {epoch}, seq {seq},")
            }
        }
    }
}

struct Answer<'a>(&'a Reply);

impl fmt::Display for Answer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Reply::Failed(StoreErrorKind::Precondition) => f.write_str("the condition fails"),
            Reply::Failed(error) => write!(f, "{error:?}"),
            Reply::Lease(Sighting::Found { version, verdict, facts, .. }) => {
                write!(f, "found {:.6} ({verdict:?}", version.tag())?;
                let Some(facts) = facts else { return f.write_str(")") };
                let (epoch, life) = (facts.lease.epoch, facts.life.epoch);
                match &facts.lease.holder {
                    Some(holder) => write!(f, ", epoch {epoch} held by {holder}, life {life})"),
                    None => write!(f, ", epoch {epoch} released, life {life})"),
                }
            }
            Reply::Session(Sighting::Found { version, verdict, facts, .. }) => {
                write!(f, "found {:.6} ({verdict:?}", version.tag())?;
                match facts {
                    None => f.write_str(")"),
                    Some(facts) => {
                        let (state, epoch): (SessionState, _) = (facts.state, facts.lease.epoch);
                        write!(f, ", {state:?}, life {epoch}, seq {})", facts.lease.seq)
                    }
                }
            }
            Reply::Lease(Sighting::Missing) | Reply::Session(Sighting::Missing) => {
                f.write_str("missing")
            }
            Reply::Lease(Sighting::NotModified) | Reply::Session(Sighting::NotModified) => {
                f.write_str("not modified")
            }
            Reply::Written(version) => write!(f, "written as {:.6}", version.tag()),
        }
    }
}

/// A time line of `records` for people: who did what, and in a column for each host how many of its
/// leases have an open fence (`.` for none).
///
/// Reads that show nothing new are left out.
#[must_use]
pub fn time_line(records: &[Record<Step>]) -> String {
    let hosts = records.iter().filter_map(|it| it.step.host()).max().map_or(0, |most| most + 1);
    let mut open: Vec<Vec<Tenure>> = vec![Vec::new(); hosts];
    let mut lines = String::new();
    for Record { at, step } in records {
        follow(&mut open, step);
        if step.is_minor() {
            continue;
        }
        let who = match step.host() {
            Some(host) => format!("host {host} "),
            None => String::new(),
        };
        let lane = |open: &Vec<Tenure>| match open.len() {
            0 => ". ".to_owned(),
            count => format!("{count} "),
        };
        let lanes: String = open.iter().map(lane).collect();
        lines.push_str(&format!("{:>10.4} s  {lanes} {who}{step}\n", at.as_secs_f64()));
    }
    lines
}

fn follow(open: &mut [Vec<Tenure>], step: &Step) {
    let Some(lane) = step.host().and_then(|host| open.get_mut(host)) else { return };
    match step {
        Step::LeaseFence { tenure, moved: Move { opens: true, accepted: true, .. } } => {
            lane.push(*tenure);
        }
        Step::LeaseShut { tenure } | Step::Ended { tenure, .. } => lane.retain(|it| it != tenure),
        Step::SessionShut { .. } | Step::Died { .. } => lane.clear(),
        _ => {}
    }
}
