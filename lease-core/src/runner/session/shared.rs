//! What the handles and the driver of a session share.
//!
//! What a handle *asks* for goes through a channel with a bound: whoever asks for too much waits. What
//! a handle *leaves behind* when it is dropped cannot wait; it goes into a list in which nothing is
//! twice, so that it is no longer than the handles that there were.

use super::super::shared::locked;
use crate::{
    ObjectKey,
    session::{DenyReason, LeaseEndReason, NamedSeen, WishError},
};
use fencing::{Epoch, Fence, FenceControl, FenceShut};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How many wishes may wait for the driver before whoever has one more waits itself.
pub(super) const WISHES: usize = 256;

/// What a handle asks for.
pub(super) enum Command {
    Acquire { lease: ObjectKey, ticket: u64, wait: bool, answer: oneshot::Sender<Acquired> },
    Watch { lease: ObjectKey, answer: oneshot::Sender<Watched> },
}

pub(super) type Acquired = Result<Arc<Named>, Refusal>;
pub(super) type Watched = Result<watch::Receiver<Option<NamedSeen>>, WishError>;

/// Why a wish came to nothing.
#[derive(Debug)]
pub(super) enum Refusal {
    Denied(DenyReason),
    Wish(WishError),
}

/// What a handle leaves behind.
pub(super) enum Left {
    /// Nobody waits for this any more.
    Acquisition { lease: ObjectKey, ticket: u64 },
    /// The handle of this tenure has a last wish.
    Tenure(Arc<Named>),
    /// One watcher less.
    Watch(ObjectKey),
}

/// Between a [`SessionManager`](super::SessionManager) and its driver.
pub(super) struct Shared {
    pub(super) commands: mpsc::Sender<Command>,
    left: Mutex<Vec<Left>>,
    is_stopped: Mutex<bool>,
    tickets: Mutex<u64>,
    pub(super) wake: Notify,
    /// How long work may take to end after it was told to.
    pub(super) step_down_budget: Duration,
    /// A stop was asked for: work has to end, nothing new is begun.
    pub(super) stopping: CancellationToken,
    /// The manager was dropped: everything ends now.
    pub(super) abort: CancellationToken,
    /// The driver is gone; nothing will happen any more.
    pub(super) gone: CancellationToken,
}

impl Shared {
    pub(super) fn new(commands: mpsc::Sender<Command>, step_down_budget: Duration) -> Self {
        Self {
            commands,
            left: Mutex::default(),
            is_stopped: Mutex::default(),
            tickets: Mutex::default(),
            wake: Notify::new(),
            step_down_budget,
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
            gone: CancellationToken::new(),
        }
    }

    pub(super) fn leave(&self, left: Left) {
        locked(&self.left).push(left);
        self.wake.notify_one();
    }

    pub(super) fn take_left(&self) -> Vec<Left> {
        std::mem::take(&mut *locked(&self.left))
    }

    pub(super) fn ticket(&self) -> u64 {
        let mut tickets = locked(&self.tickets);
        *tickets += 1;
        *tickets
    }

    pub(super) fn stop(&self) {
        *locked(&self.is_stopped) = true;
        self.wake.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        *locked(&self.is_stopped)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// One tenure of a named lease, as its holder and the driver see it. Kept small: there may be many.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) lease: ObjectKey,
    inner: Mutex<Inner>,
    /// The tenure is over, or the manager is being stopped: its work has to end.
    pub(super) lost: CancellationToken,
    told: Notify,
}

#[derive(Debug)]
struct Inner {
    control: FenceControl,
    wish: Wish,
    /// In a box: this is empty while the tenure lasts.
    end: Option<Box<LeaseEndReason>>,
}

/// What its holder wants of a tenure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wish {
    Hold,
    /// The fence is shut; nothing must free the lease before T.
    Lapse,
    /// The fence is shut, and nothing acts under it any more.
    Release,
}

impl Named {
    pub(super) fn new(lease: ObjectKey, control: FenceControl, lost: CancellationToken) -> Self {
        let inner = Mutex::new(Inner { control, wish: Wish::Hold, end: None });
        Self { lease, inner, lost, told: Notify::new() }
    }

    pub(super) fn fence(&self) -> Fence {
        locked(&self.inner).control.fence()
    }

    pub(super) fn epoch(&self) -> Epoch {
        locked(&self.inner).control.fence().epoch()
    }

    pub(super) fn with_control(
        &self,
        order: impl FnOnce(&mut FenceControl) -> Result<(), FenceShut>,
    ) -> Result<(), FenceShut> {
        order(&mut locked(&self.inner).control)
    }

    pub(super) fn wish(&self) -> Wish {
        locked(&self.inner).wish
    }

    /// Shuts the fence and says what is to become of the lease. The first wish stands; whether this
    /// is it.
    pub(super) fn leave(&self, wish: Wish) -> bool {
        let mut inner = locked(&self.inner);
        inner.control.shut();
        let is_first = inner.wish == Wish::Hold;
        if is_first {
            inner.wish = wish;
        }
        is_first
    }

    pub(super) fn end(&self, reason: LeaseEndReason) {
        let mut inner = locked(&self.inner);
        inner.control.shut();
        inner.end.get_or_insert_with(|| Box::new(reason));
        drop(inner);
        self.lost.cancel();
        self.told.notify_waiters();
    }

    pub(super) fn end_reason(&self) -> Option<LeaseEndReason> {
        locked(&self.inner).end.as_deref().cloned()
    }

    pub(super) async fn ended(&self) -> LeaseEndReason {
        loop {
            // Registered before the look, so that the end is not missed between the two.
            let told = self.told.notified();
            if let Some(reason) = self.end_reason() {
                return reason;
            }
            told.await;
        }
    }
}
