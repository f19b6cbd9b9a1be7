//! Tokens for whoever grants: from the clock and a counter, nothing persisted.
//!
//! A lock server that keeps its locks in memory forgets them with its process, and still must never
//! hand out a token that is not larger than all before. So a token is the unix second of the latest
//! grant and a counter within it:
//!
//! ```text
//!  bit 52            21 20              0
//!  │ unix second (32)  │ counter (21)   │      below 2^53 until the year 2106
//! ```
//!
//! - *Within a process* tokens grow strictly, whatever the wall clock does: while it stands still or
//!   steps back, the counter goes on; a counter that is full carries into the next second.
//! - *From one process to the next* they grow as long as the new clock is not behind the old one and
//!   a second lies between the last grant of the old and the first of the new. A takeover takes
//!   longer than that. What is left is the clock, so two machines that relieve each other need NTP,
//!   and a new process asks [`TokenSource::after`] about a token that it knows of: the resource's
//!   mark, or the last one of a peer.
//!
//! More than 2 097 152 grants within one second run ahead of the clock; [`TokenSource::lead`] tells
//! by how much, and a process that follows must wait that much longer.
//!
//! Every token is an exact integer in JSON and in JavaScript. The leases of `lease-core` use the same
//! layout as the floor of their epochs ([`clock_floor`]).

use crate::{
    clock::{Clock, SystemClock, WallTime},
    token::Epoch,
};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

/// How many bits of a token count within one second.
pub const COUNTER_BITS: u32 = 21;
/// The largest token, 2^53 − 1: the last integer that JavaScript tells from its neighbours.
pub const LARGEST: u64 = (1 << (32 + COUNTER_BITS)) - 1;

/// How long a wait for the clock sleeps at most before it looks again: the clock may be set.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The smallest token of the second that `wall` shows; 1 in the first second of 1970, and that of the
/// year 2106 for all times after it.
///
/// ```
/// use fencing::{WallTime, source::clock_floor};
///
/// assert_eq!(clock_floor(WallTime::from_unix_seconds(3)).as_u64(), 3 << 21);
/// ```
#[must_use]
pub fn clock_floor(wall: WallTime) -> Epoch {
    let second = u32::try_from(wall.unix_seconds()).unwrap_or(u32::MAX);
    Epoch::new(u64::from(second) << COUNTER_BITS).unwrap_or(Epoch::MIN)
}

/// Grants tokens. Lock-free, shared by reference or in an `Arc`.
///
/// ```
/// use fencing::TokenSource;
///
/// let source = TokenSource::new();
/// let (first, second) = (source.next()?, source.next()?);
/// assert!(first < second);
/// assert!(second.as_u64() < 1 << 53);
/// # Ok::<(), fencing::source::TokensExhausted>(())
/// ```
///
/// Before the first grant of a process that relieves another:
///
/// ```
/// use fencing::{Clock as _, TokenSource, source::clock_floor, testing::ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let seen = clock_floor(clock.wall());           // the resource has met a token of this second,
/// clock.jump_wall(-1);                            // and this machine's clock is a second behind
/// let source = TokenSource::with_clock(clock.clone());
/// let behind = source.after(seen).unwrap_err();
/// assert_eq!(behind.by, Duration::from_secs(2));
///
/// clock.advance(behind.by);                       // on an async runtime: sleep for that long
/// source.after(seen)?;
/// assert!(source.next()? > seen);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct TokenSource<C = SystemClock> {
    /// Every further token is above this: the last one granted, or one that was seen.
    last: AtomicU64,
    clock: C,
}

impl TokenSource {
    /// A source on the machine's wall clock.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_clock(SystemClock::new())
    }
}

impl<C> TokenSource<C> {
    /// A source on the wall clock of `clock`.
    #[must_use]
    pub const fn with_clock(clock: C) -> Self {
        Self { last: AtomicU64::new(0), clock }
    }
}

impl<C: Clock> TokenSource<C> {
    /// Grants a token that is larger than all before it.
    ///
    /// # Errors
    ///
    /// [`TokensExhausted`] if the clock shows a time after the year 2106, or that year's tokens are
    /// used up. A token above all that can follow it would shut out everybody for ever, so it is not
    /// granted.
    pub fn next(&self) -> Result<Epoch, TokensExhausted> {
        let wall = self.clock.wall();
        if wall.unix_seconds() > u64::from(u32::MAX) {
            return Err(TokensExhausted);
        }
        let floor = clock_floor(wall).as_u64();
        let above = |last: u64| floor.max(last + 1);
        let step = |last| Some(above(last)).filter(|token| *token <= LARGEST);
        let before = self.last.fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
        let token = before.ok().map(above).and_then(Epoch::new);
        token.ok_or(TokensExhausted)
    }

    /// How far the latest token is ahead of the clock. Zero unless the clock was set back, or more
    /// than 2 097 152 tokens were granted within a second.
    ///
    /// A process that takes over from this one grants smaller tokens for that much longer.
    #[must_use]
    pub fn lead(&self) -> Duration {
        let second = second_of(self.last.load(Ordering::Acquire));
        until(WallTime::from_unix_seconds(second), self.clock.wall())
    }

    /// Makes sure that every further token is larger than `seen`, and than all others of its second.
    ///
    /// # Errors
    ///
    /// [`ClockBehind`] says for how long the clock does not allow that yet. The source is unchanged:
    /// what it grants meanwhile may be smaller. Wait and ask again, or use
    /// [`wait_after`](Self::wait_after).
    pub fn after(&self, seen: Epoch) -> Result<(), ClockBehind> {
        let next_second = second_of(seen.as_u64()) + 1;
        let now = self.clock.wall();
        if now.unix_seconds() < next_second {
            let by = until(WallTime::from_unix_seconds(next_second), now);
            return Err(ClockBehind { seen, by });
        }
        // The clock may be set back before the first grant.
        self.last.fetch_max(seen.as_u64(), Ordering::AcqRel);
        Ok(())
    }

    /// The same, waiting until the clock allows it, for at most `limit`.
    ///
    /// Blocks the thread; on an async runtime sleep for [`ClockBehind::by`] instead.
    ///
    /// # Errors
    ///
    /// [`ClockBehind`], at once, where the wait would be longer than what is left of `limit`.
    pub fn wait_after(&self, seen: Epoch, limit: Duration) -> Result<(), ClockBehind> {
        let end = self.clock.monotonic() + limit;
        while let Err(behind) = self.after(seen) {
            if self.clock.monotonic() + behind.by > end {
                return Err(behind);
            }
            thread::park_timeout(behind.by.min(LOOK_AGAIN));
        }
        Ok(())
    }

    /// Makes every further token larger than `seen`, whatever the clock shows.
    ///
    /// For a `seen` that is known to be the largest ever granted. Where it may not be (a resource
    /// has seen only what was presented to it), wait for the clock with [`after`](Self::after).
    ///
    /// # Errors
    ///
    /// [`TokensExhausted`] if `seen` is not below [`LARGEST`]; the source is unchanged.
    pub fn advance_past(&self, seen: Epoch) -> Result<(), TokensExhausted> {
        if seen.as_u64() >= LARGEST {
            return Err(TokensExhausted);
        }
        self.last.fetch_max(seen.as_u64(), Ordering::AcqRel);
        Ok(())
    }
}

const fn second_of(token: u64) -> u64 {
    token >> COUNTER_BITS
}

/// From `now` to `then`; zero if that has passed.
fn until(then: WallTime, now: WallTime) -> Duration {
    Duration::from_nanos(then.unix_nanos().saturating_sub(now.unix_nanos()))
}

/// The wall clock is behind the second of a token that was seen: tokens granted now could be smaller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the wall clock is {by:?} short of the second after token {seen}, which has been seen already: \
     tokens granted now would be refused as stale; wait that long, and see whether NTP runs here \
     and on the machine that granted it"
)]
#[non_exhaustive]
pub struct ClockBehind {
    /// The token that was asked about.
    pub seen: Epoch,
    /// How long it takes until the clock shows the second after that of the token.
    pub by: Duration,
}

/// No token is left: they end with the year 2106, below 2^53.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "no token is granted above 2^53 - 1, which is reached in the year 2106: set the clock of this \
     machine, and see what else has met tokens of that time"
)]
pub struct TokensExhausted;
