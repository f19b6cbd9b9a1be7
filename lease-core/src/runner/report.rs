//! What a driver tells: logs on every transition, the status, the event stream.

use super::{driver::Parts, shared::Shared, status::Status};
use crate::{
    machine::{Event, LeaseSeen, Machine, WaitReason, Waiting},
    store::{StoreError, StoreErrorKind, Version},
};
use fencing::Reading;
use std::sync::Arc;
use tokio::sync::watch;

pub(super) struct Report {
    span: tracing::Span,
    status: watch::Sender<Status>,
    shared: Arc<Shared>,
    last_error: Option<Arc<str>>,
    waiting: Option<WaitReason>,
    warned_of_foreign_key: bool,
}

impl Report {
    pub(super) fn new(parts: &Parts, status: watch::Sender<Status>, shared: Arc<Shared>) -> Self {
        let span = tracing::info_span!(
            "lease",
            cluster = %parts.wire.auth.cluster(),
            instance = %parts.wire.instance,
        );
        if !parts.wire.auth.authenticates() {
            tracing::warn!(
                parent: &span,
                "no cluster secret: lease records are not authenticated, and whoever can write to \
                 the store can take the lease away or hand it out"
            );
        }
        Self { span, status, shared, last_error: None, waiting: None, warned_of_foreign_key: false }
    }

    /// An answer that is a text if it failed.
    pub(super) fn noted<T>(&mut self, answer: Result<T, String>) -> Result<T, ()> {
        answer.map_err(|error| self.last_error = Some(error.into()))
    }

    pub(super) fn read(&mut self, foreign_key: bool, error: Option<StoreError>) {
        match error {
            Some(error) => self.last_error = Some(error.to_string().into()),
            None => self.last_error = None,
        }
        if foreign_key && !std::mem::replace(&mut self.warned_of_foreign_key, true) {
            tracing::error!(
                parent: &self.span,
                "the lease was written with another cluster secret; give every instance the same"
            );
        }
    }

    pub(super) fn wrote(
        &mut self,
        result: Result<Version, StoreError>,
    ) -> Result<Version, StoreErrorKind> {
        match result {
            Ok(version) => {
                self.last_error = None;
                Ok(version)
            }
            Err(error) => {
                self.last_error = Some(error.to_string().into());
                Err(error.kind())
            }
        }
    }

    /// Logs an event and hands it to whoever listens.
    pub(super) fn event(&mut self, event: Event) {
        self.log(&event);
        self.shared.events.send(event);
    }

    /// Brings the status up to date; a new reason to wait is logged with its length.
    pub(super) fn refresh(&mut self, machine: &Machine, now: Reading) {
        let waiting = machine.waiting(now);
        if waiting.map(|waiting| waiting.reason) != self.waiting {
            self.waiting = waiting.map(|waiting| waiting.reason);
            self.log_waiting(waiting, now);
        }
        let lease = machine.lease_seen();
        self.status.send_if_modified(|status| {
            let is_same = status.role == machine.role()
                && status.epoch == machine.epoch()
                && status.deadline == machine.deadline()
                && status.waiting == waiting
                && status.phase == machine.phase()
                && status.lease.as_ref() == lease
                && status.last_error == self.last_error;
            if !is_same {
                *status = Status {
                    role: machine.role(),
                    epoch: machine.epoch(),
                    deadline: machine.deadline(),
                    lease: lease.cloned(),
                    phase: machine.phase(),
                    waiting,
                    last_error: self.last_error.clone(),
                };
            }
            !is_same
        });
    }

    fn log_waiting(&self, waiting: Option<Waiting>, now: Reading) {
        let Some(Waiting { reason, until }) = waiting else { return };
        // An answer of the store comes in a moment, and a confirmation is the application's own: a
        // person has to know of neither.
        if matches!(reason, WaitReason::Confirmation | WaitReason::Store) {
            return;
        }
        match until.map(|until| now.monotonic.until(until)) {
            Some(left) => {
                tracing::info!(parent: &self.span, "waiting for {reason}: {left:.1?} from here");
            }
            None => tracing::info!(parent: &self.span, "waiting for {reason}"),
        }
    }

    fn log(&self, event: &Event) {
        let span = &self.span;
        match event {
            Event::Active { epoch } => {
                tracing::info!(parent: span, %epoch, role = "active", "active");
            }
            Event::Ended { epoch, reason } => {
                tracing::info!(parent: span, %epoch, role = "standby", "the tenure ended: {reason}");
            }
            Event::EpochsExhausted => tracing::error!(
                parent: span,
                "no epoch is left: move the lease, and all that it protects, to a new cluster name"
            ),
            Event::IdentityShared { epoch } => tracing::error!(
                parent: span, %epoch,
                "another running instance writes the lease under this instance's id: was its \
                 instance directory copied? give each instance a directory of its own"
            ),
            Event::LeaseSeen { lease: lease @ LeaseSeen::Untrusted { .. } } => {
                tracing::error!(parent: span, "the lease is {lease}: find out who wrote it");
            }
            Event::LeaseSeen { lease } => tracing::info!(parent: span, "the lease is {lease}"),
            Event::Refused => tracing::error!(
                parent: span,
                "the store refuses conditional writes: no lease can be held on it"
            ),
            Event::Renewed { epoch, deadline } => {
                tracing::trace!(parent: span, %epoch, ?deadline, "renewed");
            }
            Event::StoreFailed { attempted, error } => {
                let cause = self.last_error.as_deref().unwrap_or("no answer in time");
                tracing::warn!(parent: span, ?error, "{attempted} failed: {cause}");
            }
            Event::TakingOver { epoch, predecessor, held_back_until } => {
                let held_back = held_back_until.is_some();
                tracing::info!(
                    parent: span, %epoch, role = "taking over", ?predecessor, held_back, "taking over"
                );
            }
            Event::TtlDiffers { own, seen } => tracing::warn!(
                parent: span, ?own, ?seen,
                "another instance has another ttl: give all the same, or tell each the largest"
            ),
        }
    }
}
