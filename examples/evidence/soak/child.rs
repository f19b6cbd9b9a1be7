//! One of the processes: wants the lease, acts while it has it, and writes down what it does.

use crate::{
    args::Broken,
    book::Book,
    clock::LibraryClock,
    processes::{
        die_with, line,
        place::{Place, PlaceError},
    },
    wire::{Moment, Plan, Say, Tell},
};
use fencing::{Clock as _, Epoch, Fence, FileGate, gate::FileGateError};
use lease_core::{
    LeaseManager, Tenure, Timing,
    audit::{FenceSaid, GateSaid, What},
    machine::{Event, FirstStart},
    runner::{AcquireError, Delivery, EventStream, StartError},
    timing::TimingError,
};
use std::{cell::Cell, io::Write as _, pin::pin, rc::Rc, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// How often an active process writes.
const PAUSE: Duration = Duration::from_millis(40);

/// Why a process cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("the lease cannot be acquired: {0}")]
    Acquire(#[from] AcquireError),
    #[error("the gate cannot tell: {0}")]
    Gate(#[from] FileGateError),
    #[error("the operating system refused: {0}")]
    Io(#[from] std::io::Error),
    #[error("the store cannot be opened: {0}")]
    Open(#[from] PlaceError),
    #[error("it was told nonsense")]
    Plan,
    #[error("the manager cannot be started: {0}")]
    Start(#[from] StartError),
    #[error("a write was not waited for: {0}")]
    Task(#[from] tokio::task::JoinError),
    #[error(transparent)]
    Timing(#[from] TimingError),
}

/// What the parts of the process share.
struct Child {
    book: Book,
    gate: FileGate,
    broken: Option<Broken>,
}

/// Runs until it is told to stop, or its parent is gone.
pub(crate) async fn run(plan: &str) -> Result<(), ChildError> {
    let plan: Plan = line::decode(plan).ok_or(ChildError::Plan)?;
    die_with(plan.parent)?;
    let timing = Timing::short(plan.ttl, plan.renew)?;
    let first_start = if plan.is_first { FirstStart::Immediate } else { FirstStart::HeldBack };
    let mut terminated = signal(SignalKind::terminate())?;
    let Ok(place) = plan.store.parse::<Place>();
    let child = Arc::new(Child {
        book: Book::open(&plan.ledger, &plan.cluster, &plan.instance)?,
        gate: FileGate::open(&plan.gate)?,
        broken: plan.broken,
    });
    let lease = LeaseManager::builder(place.open(&timing).await?, &plan.cluster)
        .timing(timing)
        .instance_dir(plan.dir)
        .instance_name(plan.instance)
        .first_start(first_start)
        .clock(Arc::new(LibraryClock))
        .start()
        .await?;
    let events = lease.events();
    say(&Say::Started);
    // The first look at the lease may have been told before anybody could listen.
    if lease.status().borrow().lease.is_some() {
        say(&Say::Seen);
    }
    let open = Rc::new(Cell::new(None));
    let local = tokio::task::LocalSet::new();
    local.spawn_local(report(events, Arc::clone(&child), Rc::clone(&open)));
    local.spawn_local(watch_the_clock());
    let mut serving = pin!(child.serve((&lease, timing), &open, inbox()));
    local
        .run_until(async {
            tokio::select! {
                served = &mut serving => served,
                _ = terminated.recv() => tokio::join!(lease.stop(), serving).1,
            }
        })
        .await
}

/// The tenure that is open, for the lines about its renewals.
type Open = Rc<Cell<Option<Epoch>>>;

impl Child {
    /// Becomes active whenever it can, and works then.
    async fn serve(
        self: &Arc<Self>,
        (lease, timing): (&LeaseManager, Timing),
        open: &Open,
        mut inbox: Inbox,
    ) -> Result<(), ChildError> {
        loop {
            let tenure = match lease.take_over().await {
                Ok(tenure) => tenure,
                Err(AcquireError::Stopped) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let (confirmed_at, epoch) = (Moment::now(), tenure.epoch());
            if tenure.confirm().await.is_err() {
                continue;
            }
            // The fence was not open before.
            let held_back = tenure.held_back_until().map_or(confirmed_at, Moment::from);
            // The acquisition, or a renewal since, was sent before it was confirmed.
            let latest = confirmed_at.monotonic() + timing.window();
            let until = Some(lease.status().borrow().deadline.unwrap_or(latest));
            self.book.note(confirmed_at.max(held_back), epoch, What::Begin { until })?;
            open.set(Some(epoch));
            say(&Say::Opened { epoch });
            self.work(&tenure, &mut inbox).await?;
            open.set(None);
            self.end(tenure).await?;
            if self.broken == Some(Broken::IgnoreFence) {
                self.act_on(epoch, Moment::now().plus(timing.ttl() * 3)).await?;
            }
        }
    }

    /// Writes to the resource until the fence is shut, or it is time to release.
    async fn work(self: &Arc<Self>, tenure: &Tenure, inbox: &mut Inbox) -> Result<(), ChildError> {
        let (fence, lost) = (tenure.fence(), tenure.lost());
        let mut has_acted = false;
        loop {
            // Before the check: the fence was open then or later, whenever this goes on.
            let at = Moment::now();
            if fence.check().is_err() {
                let withheld = What::Write { fence: FenceSaid::Shut, gate: GateSaid::Unasked };
                return Ok(self.book.note(at, fence.epoch(), withheld)?);
            }
            inbox.pause_if_asked(&fence).await;
            let child = Arc::clone(self);
            let epoch = fence.epoch();
            // The gate waits for its lock, and writes its mark to the disk.
            let is_admitted = tokio::task::spawn_blocking(move || child.write(at, epoch)).await??;
            if !is_admitted {
                say(&Say::Refused);
            } else if !std::mem::replace(&mut has_acted, true) {
                say(&Say::Acted { at: Moment::now(), epoch });
            }
            if !is_admitted {
                // Whatever the fence says: this tenure is over.
                return Ok(());
            }
            tokio::select! {
                biased;
                () = lost.cancelled() => return Ok(()),
                () = inbox.hear() => {}
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }

    /// One write with its token, in the ledger while the gate lets it in. False: refused.
    fn write(&self, at: Moment, epoch: Epoch) -> Result<bool, ChildError> {
        let fence = FenceSaid::Open;
        if let Some(broken) = self.broken {
            let gate = match broken {
                Broken::IgnoreFence => GateSaid::Unasked,
                Broken::OpenGate => GateSaid::Admitted,
            };
            self.book.note(at, epoch, What::Write { fence, gate })?;
            return Ok(true);
        }
        match self.gate.admit(epoch) {
            Ok(_admitted) => {
                self.book.note(at, epoch, What::Write { fence, gate: GateSaid::Admitted })?;
                Ok(true)
            }
            Err(error) if error.stale().is_some() => {
                self.book.note(at, epoch, What::Write { fence, gate: GateSaid::Refused })?;
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the lease back if it is still held, and notes by when the fence was shut.
    async fn end(&self, tenure: Tenure) -> Result<(), ChildError> {
        let epoch = tenure.epoch();
        let reason = match tenure.fence().is_open() {
            true => tenure.release().await,
            false => tenure.ended().await,
        };
        self.book.note(Moment::now(), epoch, What::End)?;
        say(&Say::Ended { epoch, reason: reason.to_string() });
        Ok(())
    }

    /// A broken process: once it was active, it acts for a while, whoever else does.
    async fn act_on(&self, epoch: Epoch, until: Moment) -> Result<(), ChildError> {
        while Moment::now() < until {
            let unasked = What::Write { fence: FenceSaid::Unasked, gate: GateSaid::Unasked };
            self.book.note(Moment::now(), epoch, unasked)?;
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}

/// Notes and tells what the manager tells.
async fn report(mut events: EventStream, child: Arc<Child>, open: Open) {
    while let Some(delivery) = events.next().await {
        let noted = match delivery {
            Delivery::Event(Event::LeaseSeen { .. }) => {
                say(&Say::Seen);
                Ok(())
            }
            Delivery::Event(Event::Renewed { epoch, deadline }) => {
                if open.get() == Some(epoch) {
                    say(&Say::Renewed { epoch });
                }
                child.book.note(Moment::now(), epoch, What::Renewed { until: deadline })
            }
            Delivery::Event(_) => Ok(()),
            Delivery::Missed(count) => Err(std::io::Error::other(format!("{count} events missed"))),
        };
        if let Err(error) = noted {
            // What is not in the ledger must not happen.
            say(&Say::Failed { error: format!("the ledger: {error}") });
            std::process::exit(1);
        }
    }
}

/// Tells when the wall clock moves otherwise than the monotonic one.
async fn watch_the_clock() {
    let offset = || {
        let now = LibraryClock.reading();
        i128::from(now.wall.unix_nanos()) - i128::from(now.monotonic.as_nanos())
    };
    let mut last = offset();
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = offset();
        let moved = (now - last + 500_000_000).div_euclid(1_000_000_000);
        if moved != 0 {
            last = now;
            say(&Say::Jumped { seconds: i64::try_from(moved).unwrap_or_default() });
        }
    }
}

/// What the parent tells.
struct Inbox {
    tells: mpsc::UnboundedReceiver<Tell>,
    is_pause_asked: bool,
}

impl Inbox {
    async fn hear(&mut self) {
        match self.tells.recv().await {
            Some(Tell::Pause) => self.is_pause_asked = true,
            Some(Tell::Go) => {}
            None => std::future::pending().await,
        }
    }

    /// Stands between check and write until the parent says so, if it asked for that.
    async fn pause_if_asked(&mut self, fence: &Fence) {
        if !std::mem::take(&mut self.is_pause_asked) {
            return;
        }
        say(&Say::AboutToWrite { epoch: fence.epoch() });
        while !matches!(self.tells.recv().await, Some(Tell::Go) | None) {}
    }
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
    Inbox { tells, is_pause_asked: false }
}

pub(crate) fn say(message: &Say) {
    let mut out = std::io::stdout().lock();
    // If the parent is gone, nobody needs to know, and this process is about to be killed.
    let _ = out.write_all(line::encode(message).as_bytes()).and_then(|()| out.flush());
}
