//! What is done to a cluster.

use crate::{args::Kind, proxy::Network};
use lease_core::Timing;
use std::{fmt, time::Duration};

/// One thing that is done.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fault {
    /// SIGKILL of the active process. Another is started in its place.
    Kill,
    /// SIGSTOP of the active process, and SIGCONT that much later.
    Freeze { span: Duration, at: Stopped },
    /// SIGTERM of the active process: it releases. Another is started in its place.
    Stop,
    /// The wall clock of a process is set that many seconds from the true time.
    Jump { whose: Whose, offset: i64 },
    /// The network between the active process and the server fails that way, for so long.
    Cut { how: Network, span: Duration },
}

/// Where a process is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// Between the check of its fence and its write.
    BetweenCheckAndWrite,
    /// Anywhere, but not where it keeps a lock from all others.
    Anywhere,
}

/// Whose clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whose {
    Active,
    Standby,
}

/// What can be done here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Means {
    pub(crate) jumps: bool,
    pub(crate) cuts: bool,
    /// How far a clock may be off. (A server that checks signatures refuses those far from its time.)
    pub(crate) offset_max: i64,
}

impl Fault {
    /// One that is among those asked for (any), if there can be one.
    pub(crate) fn draw(
        rng: &mut fastrand::Rng,
        timing: &Timing,
        (means, only): (Means, &[Kind]),
    ) -> Self {
        let is_asked = |fault: &Self| only.is_empty() || only.contains(&fault.kind());
        let drawn = (0..1000).map(|_| Self::any(rng, timing, means)).find(is_asked);
        drawn.unwrap_or(Self::Kill)
    }

    /// Of a hundred, about half are kills and a quarter freezes.
    fn any(rng: &mut fastrand::Rng, timing: &Timing, means: Means) -> Self {
        let (ttl, renew) = (timing.ttl(), timing.renew());
        let part = |rng: &mut fastrand::Rng, of: Duration| of.mul_f64(rng.f64());
        match rng.u8(..100) {
            90.. if means.cuts => {
                let long = ttl + renew + part(rng, ttl);
                let how = match rng.u8(..5) {
                    0 | 1 => Network::Cut,
                    2 => Network::HalfOpen,
                    3 => Network::CutReplies,
                    _ => Network::Slow(part(rng, renew)),
                };
                let span = if rng.bool() { long } else { part(rng, ttl) };
                Self::Cut { how, span }
            }
            82.. if means.jumps => {
                let whose = if rng.bool() { Whose::Active } else { Whose::Standby };
                let most = means.offset_max;
                let offset = *rng.choice(&[-most, -1, 0, 1, 30, most]).unwrap_or(&0);
                Self::Jump { whose, offset }
            }
            75.. => Self::Stop,
            65.. => {
                let span = part(rng, timing.window().saturating_sub(renew));
                Self::Freeze { span, at: Stopped::Anywhere }
            }
            50.. => {
                let at = match rng.bool() {
                    true => Stopped::BetweenCheckAndWrite,
                    false => Stopped::Anywhere,
                };
                Self::Freeze { span: ttl + part(rng, ttl), at }
            }
            _ => Self::Kill,
        }
    }

    pub(crate) const fn kind(self) -> Kind {
        match self {
            Self::Kill => Kind::Kill,
            Self::Freeze { .. } => Kind::Freeze,
            Self::Stop => Kind::Stop,
            Self::Jump { .. } => Kind::Jump,
            Self::Cut { .. } => Kind::Cut,
        }
    }

    /// Whether nothing of the active process gets through to the lease from then on, for longer than
    /// the lease lives: somebody else has to take over, and in time.
    pub(crate) fn is_for_good(self, timing: &Timing) -> bool {
        match self {
            Self::Kill => true,
            Self::Freeze { span, .. } => span >= timing.ttl(),
            // What arrives renews the lease, whatever becomes of the answer.
            Self::Cut { how, span } => {
                span >= timing.ttl() && matches!(how, Network::Cut | Network::HalfOpen)
            }
            Self::Stop | Self::Jump { .. } => false,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kill => f.write_str("killed"),
            Self::Freeze { span, at: Stopped::Anywhere } => write!(f, "frozen for {span:.1?}"),
            Self::Freeze { span, .. } => {
                write!(f, "frozen between check and write for {span:.1?}")
            }
            Self::Stop => f.write_str("stopped"),
            Self::Jump { whose: Whose::Active, offset } => write!(f, "clock set {offset:+} s off"),
            Self::Jump { offset, .. } => write!(f, "clock of a standby set {offset:+} s off"),
            Self::Cut { how, span } => write!(f, "network {how:?} for {span:.1?}"),
        }
    }
}
