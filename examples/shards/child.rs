//! One of the processes: has its share of the shards, as any service would.

use crate::{
    args::ChildArgs,
    counted::Counted,
    processes::{die_with, line, place::PlaceError},
    wire::{Moment, Say},
};
use lease_core::{
    Timing,
    key::NameError,
    runner::{HeldShard, SessionManager, ShardSet, StartError},
    timing::TimingError,
};
use std::{
    io::Write as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::signal::unix::{SignalKind, signal};

/// Why a child cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("the operating system refused: {0}")]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the store cannot be opened: {0}")]
    Open(#[from] PlaceError),
    #[error("the session cannot be started: {0}")]
    Start(#[from] StartError),
    #[error(transparent)]
    Timing(#[from] TimingError),
}

/// Runs until it is told to stop, or whoever started it is gone.
pub(crate) async fn run(args: ChildArgs) -> Result<(), ChildError> {
    die_with(args.parent)?;
    let timing =
        Timing::short(Duration::from_millis(args.ttl_ms), Duration::from_millis(args.renew_ms))?;
    let mut terminated = signal(SignalKind::terminate())?;
    let (store, count) = Counted::new(args.store.open(&timing).await?);
    let session = SessionManager::builder(store, "shards")
        .timing(timing)
        .ephemeral_instance()
        .instance_name(args.name)
        .start()
        .await?;
    let set = ShardSet::new("demo", (0..args.shards).map(|number| format!("{number:03}")))?;
    tokio::spawn(count_requests(Arc::clone(&count)));
    let running = set.run(&session, work);
    tokio::pin!(running);
    tokio::select! {
        () = &mut running => {}
        _ = terminated.recv() => {
            tokio::join!(session.stop(), running);
        }
    }
    say(&Say::Requests { count: count.load(Ordering::Relaxed) });
    Ok(())
}

/// Holds the shard, checking its fence, until it is told to end.
async fn work(shard: HeldShard) {
    let Ok(number) = shard.name().as_str().parse() else { return };
    let epoch = shard.epoch();
    say(&Say::Begin { at: Moment::now(), shard: number, epoch });
    while shard.fence().check().is_ok() {
        // A service would write something here, with its epoch as the token.
        let pause = tokio::time::sleep(Duration::from_millis(50));
        tokio::select! {
            () = shard.stop().cancelled() => break,
            () = pause => {}
        }
    }
    let lost = shard.fence().check().is_err();
    say(&Say::End { at: Moment::now(), shard: number, epoch, lost });
}

async fn count_requests(count: Arc<AtomicU64>) {
    let mut told = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let now = count.load(Ordering::Relaxed);
        if now != told {
            say(&Say::Requests { count: now });
            told = now;
        }
    }
}

fn say(say: &Say) {
    let mut out = std::io::stdout().lock();
    // Whoever started this process is gone if this fails, and then so will this be.
    let _ = out.write_all(line::encode(say).as_bytes()).and_then(|()| out.flush());
}
