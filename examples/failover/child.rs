//! One of the two processes: wants the lease, and writes to the resource while it is active.
//!
//! What it does with the lease is what any service does. The rest is telling the parent about it.

use crate::{
    args::ChildArgs,
    counted::Counted,
    processes::{die_with, line, place::PlaceError},
    wire::{Moment, Say, Tell},
};
use lease_core::{
    LeaseManager, Tenure, Timing,
    fencing::Fence,
    machine::{EndReason, Event, FirstStart},
    runner::{AcquireError, Delivery, EventStream, StartError, Status},
    timing::TimingError,
};
use std::{future::Future, io::Write as _, pin::pin, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};

/// Why a child cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("the lease cannot be acquired: {0}")]
    Acquire(#[from] AcquireError),
    #[error("the operating system refused: {0}")]
    Io(#[from] std::io::Error),
    #[error("the store cannot be opened: {0}")]
    Open(#[from] PlaceError),
    #[error("the manager cannot be started: {0}")]
    Start(#[from] StartError),
    #[error(transparent)]
    Timing(#[from] TimingError),
}

/// Runs until it is told to stop, or its parent is gone.
pub(crate) async fn run(args: ChildArgs) -> Result<(), ChildError> {
    die_with(args.parent)?;
    let timing =
        Timing::short(Duration::from_millis(args.ttl_ms), Duration::from_millis(args.renew_ms))?;
    let first_start = if args.first { FirstStart::Immediate } else { FirstStart::HeldBack };
    let mut terminated = signal(SignalKind::terminate())?;
    let lease = LeaseManager::builder(Counted(args.store.open(&timing).await?), &args.cluster)
        .timing(timing)
        .instance_dir(args.instance)
        .instance_name(args.name)
        .first_start(first_start)
        .phase_lock(!args.no_phase_lock)
        .start()
        .await?;
    say(&Say::Started { at: Moment::now() });
    let events = lease.events();
    // The first look at the lease may have been told before anybody could listen.
    if let Some(seen) = &lease.status().borrow().lease {
        say(&Say::Seen { at: Moment::now(), lease: seen.to_string() });
    }
    tokio::spawn(report(events, timing));
    tokio::spawn(report_phase(lease.status()));

    let mut serving = pin!(serve(&lease, inbox()));
    tokio::select! {
        served = &mut serving => served,
        _ = terminated.recv() => tokio::join!(lease.stop(), serving).1,
    }
}

/// Becomes active whenever it can, and works then.
async fn serve(lease: &LeaseManager, mut inbox: Inbox) -> Result<(), ChildError> {
    loop {
        let tenure = match lease.take_over().await {
            Ok(tenure) => tenure,
            Err(AcquireError::Stopped) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        // `acquire` would do all this in one. The two steps tell the parent from when on the fence
        // can have been open at the earliest. A predecessor that cannot be believed is accepted
        // here; without a cluster secret nobody can tell a spoilt lease from a worse one.
        let confirmed_at = Moment::now();
        if tenure.confirm().await.is_err() {
            continue;
        }
        let held_back_until = tenure.held_back_until().map_or(confirmed_at, Moment::from);
        let at = Moment::now();
        say(&Say::Opened {
            at,
            epoch: tenure.epoch(),
            not_before: confirmed_at.max(held_back_until),
            deadline: Moment::now().plus(tenure.fence().remaining()),
        });
        work(&tenure, lease.events(), &mut inbox).await;
        end(tenure).await;
    }
}

/// Writes to the resource, checking the fence before each write, until the tenure is lost.
async fn work(tenure: &Tenure, mut events: EventStream, inbox: &mut Inbox) {
    let (fence, lost) = (tenure.fence(), tenure.lost());
    while !lost.is_cancelled() {
        if inbox.pause {
            // The next renewal is R away then: a process that is stopped in the middle of one
            // keeps the lock of the store's file, and nobody could write before it goes on.
            renewed(&mut events).await;
        }
        if fence.check().is_err() {
            return;
        }
        if !write(&fence, inbox).await {
            // Whatever the fence says: this tenure is over.
            return;
        }
        let pause = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            biased;
            () = lost.cancelled() => {}
            // A pause that was asked for is noted; nothing else is told between two writes.
            Some(_) = inbox.next() => {}
            () = pause => {}
        }
    }
}

/// One write, its token with it. False if the resource refused it.
async fn write(fence: &Fence, inbox: &mut Inbox) -> bool {
    let epoch = fence.epoch();
    if std::mem::take(&mut inbox.pause) {
        say(&Say::AboutToWrite { at: Moment::now(), epoch });
        while !matches!(inbox.next().await, Some(Tell::Go) | None) {}
    }
    say(&Say::Write { at: Moment::now(), epoch });
    loop {
        match inbox.next().await {
            Some(Tell::Admitted) => return true,
            Some(Tell::Refused) | None => return false,
            Some(Tell::Pause | Tell::Go) => {}
        }
    }
}

/// What the parent tells.
struct Inbox {
    tells: mpsc::UnboundedReceiver<Tell>,
    /// The parent asked for a pause, which is still to come.
    pause: bool,
}

impl Inbox {
    async fn next(&mut self) -> Option<Tell> {
        let tell = self.tells.recv().await;
        self.pause |= matches!(tell, Some(Tell::Pause));
        tell
    }
}

async fn renewed(events: &mut EventStream) {
    loop {
        match events.next().await {
            Some(Delivery::Event(Event::Renewed { .. } | Event::Ended { .. })) | None => return,
            Some(Delivery::Event(_) | Delivery::Missed(_)) => {}
        }
    }
}

/// Gives the lease back if it is still held, and tells when the fence was shut.
async fn end(tenure: Tenure) {
    let epoch = tenure.epoch();
    if !tenure.fence().is_open() {
        say(&Say::Shut { at: Moment::now(), epoch });
        return;
    }
    let mut releasing = pin!(tenure.release());
    // The first poll shuts the fence. All of this process's tasks share one thread, so that the
    // release itself is written only after the clock was read.
    let ended = std::future::poll_fn(|context| {
        std::task::Poll::Ready(releasing.as_mut().poll(context).is_ready())
    });
    let has_ended = ended.await;
    say(&Say::Shut { at: Moment::now(), epoch });
    if !has_ended {
        releasing.await;
    }
}

/// Tells the parent what the manager tells.
async fn report(mut events: EventStream, timing: Timing) {
    while let Some(delivery) = events.next().await {
        let at = Moment::now();
        let message = match delivery {
            Delivery::Event(Event::LeaseSeen { lease }) => {
                Say::Seen { at, lease: lease.to_string() }
            }
            Delivery::Event(Event::TakingOver { epoch, predecessor, held_back_until }) => {
                let predecessor = format!("{predecessor:?}");
                let held_back_until = held_back_until.map(Moment::from);
                Say::TakingOver { at, epoch, predecessor, held_back_until }
            }
            Delivery::Event(Event::Renewed { epoch, deadline }) => {
                let deadline = Moment::from(deadline);
                let sent = deadline.minus(timing.window());
                Say::Renewed { at, epoch, sent, deadline }
            }
            Delivery::Event(Event::Ended { epoch, reason }) => {
                let released = reason == EndReason::Released;
                Say::Ended { at, epoch, reason: reason.to_string(), released }
            }
            // What else happened is in the log, which the parent keeps the end of.
            Delivery::Event(_) => continue,
            Delivery::Missed(count) => Say::Failed { error: format!("{count} events were missed") },
        };
        say(&message);
    }
}

/// Tells the parent how close behind the renewals this standby reads.
async fn report_phase(mut status: watch::Receiver<Status>) {
    let mut told = None;
    while status.changed().await.is_ok() {
        let behind = status.borrow_and_update().phase;
        if std::mem::replace(&mut told, behind) != behind {
            say(&Say::Phase { at: Moment::now(), behind });
        }
    }
}

pub(crate) fn say(message: &Say) {
    let mut out = std::io::stdout().lock();
    // If the parent is gone, nobody needs to know, and this process is about to be killed.
    let _ = out.write_all(line::encode(message).as_bytes()).and_then(|()| out.flush());
}

/// Hears the parent from here on. If it says nothing any more, this process ends.
fn inbox() -> Inbox {
    let (sender, tells) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(text)) = lines.next_line().await {
            if let Some(tell) = line::decode(&text) {
                // Told to a standby: it has no use for it.
                let _ = sender.send(tell);
            }
        }
        std::process::exit(0);
    });
    Inbox { tells, pause: false }
}
