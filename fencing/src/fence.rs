//! The local fence: "do I still hold it, now?"
//!
//! A [`Fence`] belongs to one tenure. Its epoch never changes, it opens at most once, and once shut
//! it stays shut: the next tenure has a fence of its own. Whoever acts under the lease clones it and
//! asks [`Fence::check`] before every side effect.
//!
//! ```text
//!   not open yet ──open──► open until the deadline ──extend──► open until a later one
//!         │                      │       │
//!         └────────shut──────────┘       └─ the first look at or past the deadline latches it
//! ```
//!
//! The check needs nobody's help: it compares the deadline with the clock by itself, so a fence
//! whose owner is starved, stuck or dead still shuts in time. Both clocks count. The monotonic one
//! is compared with the deadline; one's own wall clock with the same span since the last renewal
//! was sent, which shows a suspend on platforms whose monotonic clock stands still in one. A wall
//! clock that was set back neither shortens nor lengthens anything.
//!
//! The interval is half-open: *at* the deadline the fence is shut (protocol, section 2).

use crate::{
    clock::{Clock, MonotonicTime, Reading},
    sync::{AtomicU64, Ordering},
    token::Epoch,
};
use std::{fmt, sync::Arc, time::Duration};

/// Values of [`Cell::deadline`] below this are marks, not times.
const FIRST_TIME: u64 = 4;

/// What the owner and all clones share.
struct Cell {
    epoch: Epoch,
    /// A mark (see [`ShutReason::from_mark`]) or the deadline in monotonic nanoseconds. Changed by
    /// compare-exchange only, and never away from a mark other than "not open yet".
    deadline: AtomicU64,
    /// Unix nanoseconds at which the own wall clock shows that the window has passed. Written
    /// before the deadline it belongs to.
    wall_limit: AtomicU64,
    under: Under,
}

/// What a fence looks at beside its own latch.
enum Under {
    Clock(Arc<dyn Clock>),
    /// The fence that has to be open too; it reads the clocks for both.
    Fence(Fence),
}

/// A fence that was found open.
struct Look {
    /// Its own deadline.
    deadline: u64,
    /// The earliest deadline of the fences above it.
    above: u64,
    now: Reading,
}

impl Cell {
    /// The deadline and the time if the fence is open; latches it if it is found past.
    fn look(&self) -> Result<Look, FenceShut> {
        loop {
            // The limits are loaded before the clock is read, and latched only by compare-exchange:
            // an extension that comes between the two is seen, and nothing that was past when it
            // was looked at is ever extended.
            let deadline = self.deadline.load(Ordering::Acquire);
            if let Some(reason) = ShutReason::from_mark(deadline) {
                return Err(self.shut_because(reason));
            }
            let wall_limit = self.wall_limit.load(Ordering::Relaxed);
            let above = match &self.under {
                Under::Clock(clock) => Ok((u64::MAX, clock.reading())),
                Under::Fence(fence) => {
                    fence.cell.look().map(|look| (look.deadline.min(look.above), look.now))
                }
            };
            let reason = match above {
                // It may still open; this one does not shut for that.
                Err(FenceShut { reason: ShutReason::NotOpen, .. }) => {
                    return Err(self.shut_because(ShutReason::NotOpen));
                }
                Err(shut) => shut.reason,
                Ok((_, now)) if now.monotonic.as_nanos() >= deadline => ShutReason::Expired,
                Ok((_, now)) if now.wall.unix_nanos() >= wall_limit => ShutReason::Suspended,
                Ok((above, now)) => return Ok(Look { deadline, above, now }),
            };
            if self.swap_deadline(deadline, reason.mark()) {
                return Err(self.shut_because(reason));
            }
        }
    }

    fn swap_deadline(&self, from: u64, to: u64) -> bool {
        self.deadline.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn shut_because(&self, reason: ShutReason) -> FenceShut {
        FenceShut { epoch: self.epoch, reason }
    }
}

/// The cheap, cloneable check "do I still hold it, now?"
///
/// Lock-free, without allocation; it costs what reading the two clocks costs.
///
/// ```
/// use fencing::{Clock, Epoch, FenceControl, Reading, SystemClock};
/// use std::{sync::Arc, time::Duration};
///
/// let clock = SystemClock::new();
/// let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock));
/// let fence = control.fence();                    // clone it into every worker
/// assert!(!fence.is_open());                      // shut unless proved open
///
/// let sent = clock.reading();
/// control.open(sent, Duration::from_secs(20))?;
/// fence.check()?;                                 // before every side effect
/// assert!(fence.remaining() <= Duration::from_secs(20));
///
/// drop(control);                                  // nobody renews any more
/// assert!(fence.check().is_err());
/// # Ok::<(), fencing::FenceShut>(())
/// ```
#[derive(Clone)]
pub struct Fence {
    cell: Arc<Cell>,
}

impl Fence {
    /// Asks whether the tenure may act now.
    ///
    /// The answer is about the moment of the call. A process can be paused right behind it: what is
    /// written after a check carries [`Fence::epoch`], and the resource refuses smaller ones.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if it may not. The caller must not act, and must not try again under this
    /// epoch: a fence that was found shut stays shut. (Only one that is
    /// [not open yet](ShutReason::NotOpen) may still open.)
    pub fn check(&self) -> Result<(), FenceShut> {
        self.cell.look().map(drop)
    }

    /// Whether [`Fence::check`] would pass now.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.check().is_ok()
    }

    /// How long it stays open if nothing extends it; zero if it is shut.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        match self.cell.look() {
            Ok(Look { deadline, above, now }) => {
                now.monotonic.until(MonotonicTime::from_nanos(deadline.min(above)))
            }
            Err(_) => Duration::ZERO,
        }
    }

    /// The epoch of the tenure: the token that its writes carry. It never changes.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.cell.epoch
    }
}

impl fmt::Debug for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deadline = self.cell.deadline.load(Ordering::Acquire);
        let mut debug = f.debug_struct("Fence");
        debug.field("epoch", &self.cell.epoch);
        match ShutReason::from_mark(deadline) {
            Some(reason) => debug.field("shut", &reason),
            None => debug.field("deadline", &MonotonicTime::from_nanos(deadline)),
        };
        debug.finish_non_exhaustive()
    }
}

/// The owner's side of one [`Fence`]: opens, extends, shuts. Dropping it shuts the fence.
///
/// Only who renews the lease needs one; everybody else gets [`Fence`]s. Its methods take the
/// [`Reading`] of *before* a renewal was sent, since the renewal may have taken effect at any time
/// after that.
///
/// ```
/// use fencing::{Clock, Epoch, FenceControl, testing::ManualClock};
/// use std::{sync::Arc, time::Duration};
///
/// let (clock, window) = (ManualClock::new(), Duration::from_secs(8));
/// let mut control = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
/// let fence = control.fence();
///
/// control.open(clock.reading(), window)?;
/// clock.advance(Duration::from_secs(3));
/// let sent = clock.reading();                     // a renewal is sent,
/// clock.advance(Duration::from_secs(1));          // and answered a second later
/// control.extend(sent, window)?;
/// assert_eq!(fence.remaining(), Duration::from_secs(7));
/// # Ok::<(), fencing::FenceShut>(())
/// ```
#[derive(Debug)]
pub struct FenceControl {
    fence: Fence,
}

impl FenceControl {
    /// A fence for the tenure `epoch`, not open yet.
    #[must_use]
    pub fn new(epoch: Epoch, clock: Arc<dyn Clock>) -> Self {
        Self::not_open(epoch, Under::Clock(clock))
    }

    /// A fence for the tenure `epoch`, not open yet, that is open only while `above` is as well: its
    /// own latch is open, its own deadline is not past, and the check of `above` passes. One extension
    /// of `above` so extends every fence under it. Both clocks are read once, whatever stands above.
    ///
    /// Found shut, it stays shut, with the reason of whichever shut it. One without a deadline of its
    /// own is opened with a window of [`Duration::MAX`]. It costs some 60 bytes.
    ///
    /// ```
    /// use fencing::{Clock, Epoch, FenceControl, testing::ManualClock};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// let clock = ManualClock::new();
    /// let mut session = FenceControl::new(Epoch::MIN, Arc::new(clock.clone()));
    /// session.open(clock.reading(), Duration::from_secs(8))?;
    ///
    /// let mut lease = FenceControl::under(&session.fence(), Epoch::new(7).unwrap());
    /// lease.open(clock.reading(), Duration::MAX)?;
    /// assert_eq!(lease.fence().remaining(), Duration::from_secs(8));
    ///
    /// session.shut();
    /// assert_eq!(lease.fence().check().unwrap_err().epoch.as_u64(), 7);
    /// # Ok::<(), fencing::FenceShut>(())
    /// ```
    #[must_use]
    pub fn under(above: &Fence, epoch: Epoch) -> Self {
        Self::not_open(epoch, Under::Fence(above.clone()))
    }

    fn not_open(epoch: Epoch, under: Under) -> Self {
        let cell = Cell {
            epoch,
            deadline: AtomicU64::new(ShutReason::NotOpen.mark()),
            wall_limit: AtomicU64::new(0),
            under,
        };
        Self { fence: Fence { cell: Arc::new(cell) } }
    }

    /// The check, to be cloned into every worker.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence.clone()
    }

    /// Opens the fence until `window` after `sent`, the moment when the renewal that proves the
    /// tenure was sent. Works once.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if the fence was open before or is shut for good, or if the window has passed
    /// already by either clock (then it is shut for good now).
    pub fn open(&mut self, sent: Reading, window: Duration) -> Result<(), FenceShut> {
        let cell = &self.fence.cell;
        cell.wall_limit.store((sent.wall + window).unix_nanos(), Ordering::Relaxed);
        if cell.swap_deadline(ShutReason::NotOpen.mark(), deadline(sent, window)) {
            return self.fence.check();
        }
        self.shut();
        self.fence.check()
    }

    /// Moves the deadline to `window` after `sent`, if that is later than where it stands.
    ///
    /// # Errors
    ///
    /// [`FenceShut`] if the fence is shut, or found past its deadline by either clock at this very
    /// moment: a fence never opens again.
    pub fn extend(&mut self, sent: Reading, window: Duration) -> Result<(), FenceShut> {
        let cell = &self.fence.cell;
        let current = cell.look()?.deadline;
        let later = deadline(sent, window);
        if later > current {
            // The limit goes first: whoever sees the new deadline sees its limit too. If a check
            // latches in between, the exchange fails and the limit no longer matters.
            cell.wall_limit.store((sent.wall + window).unix_nanos(), Ordering::Relaxed);
            if !cell.swap_deadline(current, later) {
                return self.fence.check();
            }
        }
        Ok(())
    }

    /// Shuts the fence for good. Does nothing to one that is shut already.
    pub fn shut(&mut self) {
        let cell = &self.fence.cell;
        let mut seen = cell.deadline.load(Ordering::Acquire);
        while seen >= FIRST_TIME || seen == ShutReason::NotOpen.mark() {
            match cell.deadline.compare_exchange(
                seen,
                ShutReason::Closed.mark(),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }
}

impl Drop for FenceControl {
    fn drop(&mut self) {
        self.shut();
    }
}

fn deadline(sent: Reading, window: Duration) -> u64 {
    (sent.monotonic + window).as_nanos().max(FIRST_TIME)
}

/// The fence is shut: the tenure `epoch` must not act.
///
/// The one thing to do about it is to stop the work under that epoch. Whoever acquires the lease
/// again gets another fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the fence of epoch {epoch} is shut ({reason}): do not act under this epoch")]
#[non_exhaustive]
pub struct FenceShut {
    /// The tenure that the fence belongs to.
    pub epoch: Epoch,
    /// Why it is shut.
    pub reason: ShutReason,
}

/// Why a fence is shut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ShutReason {
    /// Its owner shut it or is gone: the lease was lost, released, or the tenure was dropped.
    Closed,
    /// The deadline came before a renewal succeeded.
    Expired,
    /// The takeover is not confirmed yet, or held back. The only reason that can still pass.
    NotOpen,
    /// The own wall clock shows that the window has passed although the monotonic clock does not:
    /// the machine was suspended, or the wall clock was set forward.
    Suspended,
}

impl ShutReason {
    const fn mark(self) -> u64 {
        match self {
            Self::NotOpen => 0,
            Self::Closed => 1,
            Self::Expired => 2,
            Self::Suspended => 3,
        }
    }

    const fn from_mark(mark: u64) -> Option<Self> {
        match mark {
            0 => Some(Self::NotOpen),
            1 => Some(Self::Closed),
            2 => Some(Self::Expired),
            3 => Some(Self::Suspended),
            FIRST_TIME.. => None,
        }
    }
}

impl fmt::Display for ShutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "lost, released or dropped",
            Self::Expired => "no renewal succeeded before its deadline",
            Self::NotOpen => "not open yet: the takeover is not confirmed, or held back",
            Self::Suspended => {
                "the wall clock shows that its window has passed, as after a suspend"
            }
        })
    }
}
