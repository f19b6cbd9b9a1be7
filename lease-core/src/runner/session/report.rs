//! What the driver of a session tells: logs on every transition, the status, the events.

use super::{driver::Parts, status::SessionStatus};
use crate::{
    machine,
    session::{Event, LeaseEndReason, SessionMachine},
};
use std::sync::Arc;
use tokio::sync::{broadcast, watch};

pub(super) struct Report {
    status: watch::Sender<SessionStatus>,
    events: broadcast::Sender<Event>,
    span: tracing::Span,
    last_error: Option<Arc<str>>,
    warned_of_foreign_key: bool,
}

impl Report {
    pub(super) fn new(
        parts: &Parts,
        status: watch::Sender<SessionStatus>,
        events: broadcast::Sender<Event>,
    ) -> Self {
        let span = tracing::info_span!(
            "session",
            cluster = %parts.wire.auth.cluster(),
            instance = %parts.wire.instance,
        );
        if !parts.wire.auth.authenticates() {
            tracing::warn!(
                parent: &span,
                "no cluster secret: records are not authenticated, and whoever can write to the store \
                 can take leases away or hand them out"
            );
        }
        Self { status, events, span, last_error: None, warned_of_foreign_key: false }
    }

    /// Keeps what went wrong for the status.
    pub(super) fn noted<T>(&mut self, answer: Result<T, String>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.last_error = None;
                Some(answer)
            }
            Err(error) => {
                self.last_error = Some(error.into());
                None
            }
        }
    }

    pub(super) fn foreign_key(&mut self) {
        if !std::mem::replace(&mut self.warned_of_foreign_key, true) {
            tracing::error!(
                parent: &self.span,
                "a record was written with another cluster secret; give every instance the same"
            );
        }
    }

    pub(super) fn fence_shut(&self, shut: &fencing::FenceShut) {
        tracing::warn!(
            parent: &self.span, epoch = %shut.epoch, reason = %shut.reason,
            "the fence of the session is shut already"
        );
    }

    /// Logs an event and hands it to whoever listens.
    pub(super) fn event(&self, event: Event) {
        self.log(&event);
        // Nobody has to listen.
        let _ = self.events.send(event);
    }

    pub(super) fn refresh(&self, machine: &SessionMachine, held: usize) {
        let status = SessionStatus {
            role: machine.role(),
            life: machine.life(),
            deadline: machine.deadline(),
            held,
            leases: machine.leases(),
            sessions_watched: machine.sessions_watched(),
            in_flight: machine.in_flight(),
            last_error: self.last_error.clone(),
        };
        self.status.send_if_modified(|before| {
            let is_news = *before != status;
            *before = status;
            is_news
        });
    }

    fn log(&self, event: &Event) {
        let span = &self.span;
        match event {
            Event::Acquired { lease, epoch } => {
                tracing::debug!(parent: span, %lease, %epoch, "acquired");
            }
            Event::Denied { lease, reason } => {
                tracing::debug!(parent: span, %lease, "not acquired: {reason}");
            }
            Event::Ended { lease, epoch, reason: LeaseEndReason::Released } => {
                tracing::debug!(parent: span, %lease, %epoch, "released");
            }
            Event::Ended { lease, epoch, reason } => {
                tracing::warn!(parent: span, %lease, %epoch, "the tenure ended: {reason}");
            }
            Event::HeldBack { lease, epoch, .. } => {
                tracing::info!(parent: span, %lease, %epoch, "held, and held back");
            }
            Event::Killed { instance: silent, life } => tracing::warn!(
                parent: span, %silent, epoch = %life.epoch,
                "a session was silent for too long and was ended: its leases are free"
            ),
            Event::Seen { lease, seen } => tracing::debug!(parent: span, %lease, "{seen}"),
            Event::StoreFailed { attempted, error, .. } => {
                let cause = self.last_error.as_deref().unwrap_or("no answer in time");
                tracing::warn!(parent: span, ?error, "{attempted} failed: {cause}");
            }
            Event::Session(event) => self.log_session(event),
        }
    }

    fn log_session(&self, event: &machine::Event) {
        let span = &self.span;
        match event {
            machine::Event::Active { epoch } => {
                tracing::info!(parent: span, %epoch, role = "active", "the session lives");
            }
            machine::Event::Ended { epoch, reason } => tracing::warn!(
                parent: span, %epoch, role = "standby", "the session ended: {reason}"
            ),
            machine::Event::IdentityShared { epoch } => tracing::error!(
                parent: span, %epoch,
                "another running instance has a session under this instance's id: was its instance \
                 directory copied? give each instance a directory of its own"
            ),
            machine::Event::Refused => tracing::error!(
                parent: span, "the store refuses conditional writes: no session can be held on it"
            ),
            machine::Event::StoreFailed { attempted, error } => {
                let cause = self.last_error.as_deref().unwrap_or("no answer in time");
                tracing::warn!(parent: span, ?error, "{attempted} failed: {cause}");
            }
            event => tracing::trace!(parent: span, ?event, "the session"),
        }
    }
}
