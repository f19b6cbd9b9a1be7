//! What the handles and the driver share: wishes in one direction, the state of a tenure in the
//! other. Nothing in it queues: a wish that is made twice is one wish.

use crate::{
    history::InstanceDir,
    machine::{AbandonReason, EndReason, Event, Inherited, Predecessor},
    record::SnapshotMark,
};
use fencing::{Epoch, Fence, FenceControl, MonotonicTime};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use tokio::sync::{Notify, broadcast, watch};
use tokio_util::sync::CancellationToken;

/// Locks a mutex that guards plain values: whoever panicked while it was held left them whole.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Between a [`LeaseManager`](super::LeaseManager) and its driver.
#[derive(Debug, Default)]
pub(super) struct Shared {
    wishes: Mutex<Wishes>,
    /// The driver's: with it, the directory's lock goes.
    history: OnceLock<Weak<InstanceDir>>,
    /// What the driver tells whoever listens.
    pub(super) events: Events,
    /// Wakes the driver.
    pub(super) wake: Notify,
    /// Wakes whoever waits for [`Shared::take_offer`].
    pub(super) offered: Notify,
    /// A stop was asked for: work has to end, nothing new is begun.
    pub(super) stopping: CancellationToken,
    /// The manager was dropped: everything ends now.
    pub(super) abort: CancellationToken,
    /// The driver is gone; nothing will happen any more.
    pub(super) gone: CancellationToken,
}

/// How many events an [`EventStream`](super::EventStream) may lag behind before it misses some.
const EVENTS: usize = 256;

/// The events of a driver. Their buffer is made when somebody listens: it is larger than all else that a
/// lease needs, and most are never listened to.
#[derive(Debug, Default)]
pub(super) struct Events(Mutex<Listened>);

#[derive(Debug, Default)]
enum Listened {
    #[default]
    Never,
    Once(broadcast::Sender<Event>),
    /// The driver is gone: streams have ended, and new ones are at their end.
    Over,
}

impl Events {
    pub(super) fn send(&self, event: Event) {
        if let Listened::Once(sender) = &*locked(&self.0) {
            // Whoever listened may have gone.
            let _ = sender.send(event);
        }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<Event> {
        let mut listened = locked(&self.0);
        match &*listened {
            Listened::Never => {
                let (sender, receiver) = broadcast::channel(EVENTS);
                *listened = Listened::Once(sender);
                receiver
            }
            Listened::Once(sender) => sender.subscribe(),
            Listened::Over => broadcast::Sender::new(1).subscribe(),
        }
    }

    pub(super) fn end(&self) {
        *locked(&self.0) = Listened::Over;
    }
}

#[derive(Debug, Default)]
struct Wishes {
    wanted: bool,
    stop: bool,
    /// A tenure that began and was not picked up yet.
    offer: Option<Arc<TenureState>>,
}

impl Shared {
    pub(super) fn set_history(&self, history: Option<&Arc<InstanceDir>>) {
        if let Some(history) = history {
            let _ = self.history.set(Arc::downgrade(history));
        }
    }

    pub(super) fn history(&self) -> Option<Arc<InstanceDir>> {
        self.history.get()?.upgrade()
    }

    pub(super) fn want(&self, wanted: bool) {
        locked(&self.wishes).wanted = wanted;
        self.wake.notify_one();
    }

    pub(super) fn is_wanted(&self) -> bool {
        locked(&self.wishes).wanted
    }

    pub(super) fn stop(&self) {
        locked(&self.wishes).stop = true;
        self.wake.notify_one();
    }

    pub(super) fn is_stopped(&self) -> bool {
        locked(&self.wishes).stop
    }

    pub(super) fn offer(&self, tenure: Arc<TenureState>) {
        locked(&self.wishes).offer = Some(tenure);
        self.offered.notify_waiters();
    }

    pub(super) fn take_offer(&self) -> Option<Arc<TenureState>> {
        locked(&self.wishes).offer.take()
    }
}

/// One tenure, as its holder and the driver see it.
#[derive(Debug)]
pub(super) struct TenureState {
    pub(super) epoch: Epoch,
    pub(super) predecessor: Predecessor,
    pub(super) inherited: Inherited,
    pub(super) held_back_until: Option<MonotonicTime>,
    pub(super) fence: Fence,
    control: Mutex<FenceControl>,
    wish: Mutex<Wish>,
    /// The snapshot that the lease is to name.
    snapshot: Mutex<Option<SnapshotMark>>,
    phase: watch::Sender<Phase>,
    /// The tenure is over, or the manager is being stopped: its work has to end.
    pub(super) lost: CancellationToken,
}

/// How far a tenure has come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    TakingOver,
    Active,
    Ended(EndReason),
}

/// What its holder wants of a tenure. Each wish stands above those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Wish {
    Hold,
    Confirm,
    Abandon(Abandon),
    Release,
    Drop,
    Fail,
}

/// [`AbandonReason`] with an order, which that type has no use for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Abandon {
    Application,
    UntrustedPredecessor,
}

impl From<Abandon> for AbandonReason {
    fn from(abandon: Abandon) -> Self {
        match abandon {
            Abandon::Application => Self::Application,
            Abandon::UntrustedPredecessor => Self::UntrustedPredecessor,
        }
    }
}

impl TenureState {
    pub(super) fn new(
        control: FenceControl,
        predecessor: Predecessor,
        inherited: Inherited,
        held_back_until: Option<MonotonicTime>,
        lost: CancellationToken,
    ) -> Self {
        let fence = control.fence();
        Self {
            epoch: fence.epoch(),
            predecessor,
            inherited,
            held_back_until,
            fence,
            control: Mutex::new(control),
            wish: Mutex::new(Wish::Hold),
            snapshot: Mutex::new(None),
            phase: watch::Sender::new(Phase::TakingOver),
            lost,
        }
    }

    pub(super) fn wish(&self) -> Wish {
        *locked(&self.wish)
    }

    /// Makes a wish; one that stands above it already stays.
    pub(super) fn set_wish(&self, wish: Wish) {
        let mut current = locked(&self.wish);
        *current = (*current).max(wish);
    }

    pub(super) fn snapshot(&self) -> Option<SnapshotMark> {
        locked(&self.snapshot).clone()
    }

    pub(super) fn name_snapshot(&self, mark: SnapshotMark) {
        *locked(&self.snapshot) = Some(mark);
    }

    pub(super) fn with_control<T>(&self, act: impl FnOnce(&mut FenceControl) -> T) -> T {
        act(&mut locked(&self.control))
    }

    /// Shuts the fence now, and tells the work to stop.
    pub(super) fn shut(&self) {
        self.with_control(FenceControl::shut);
        self.lost.cancel();
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        if let Phase::Ended(_) = phase {
            self.shut();
        }
        self.phase.send_replace(phase);
    }

    /// Waits until the tenure is active or over.
    pub(super) async fn decided(&self) -> Phase {
        self.wait(|phase| *phase != Phase::TakingOver).await
    }

    /// Waits until the tenure is over.
    pub(super) async fn ended(&self) -> EndReason {
        match self.wait(|phase| matches!(phase, Phase::Ended(_))).await {
            Phase::Ended(reason) => reason,
            // The sender lives as long as `self`: the wait ends with an end only.
            Phase::Active | Phase::TakingOver => EndReason::Dropped,
        }
    }

    async fn wait(&self, until: impl FnMut(&Phase) -> bool) -> Phase {
        let mut phases = self.phase.subscribe();
        match phases.wait_for(until).await {
            Ok(phase) => phase.clone(),
            Err(_) => Phase::Ended(EndReason::Dropped),
        }
    }
}
