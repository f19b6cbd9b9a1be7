//! A set of shards, spread over the processes that are there.

mod running;

use super::manager::SessionManager;
use crate::{
    key::{InstanceId, LeaseName, NameError},
    session::shards::{FairShare, Policy},
};
use fencing::{Epoch, Fence};
use running::Running;
use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
    time::Duration,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Shards of which each process that runs the set has its share; see [`session::shards`] for how they
/// find that, and what it costs.
///
/// When a process joins, those that are there give back what is too much, each shard once the work on
/// it has ended; when one dies, the others take over what it held. All processes name the same set and
/// the same shards.
///
/// [`session::shards`]: crate::session::shards
///
/// ```
/// use lease_core::{runner::{SessionManager, ShardSet}, testing::MemoryStore};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let session =
///     SessionManager::builder(MemoryStore::new(), "orders").ephemeral_instance().start().await?;
/// let set = ShardSet::new("billing", (0..64).map(|number| number.to_string()))?;
/// let mut status = set.status();
/// let running = set.run(&session, async |shard| {
///     while !shard.stop().is_cancelled() {
///         if shard.fence().check().is_err() {             // before every side effect
///             return;
///         }
///         // … write, with shard.epoch() as the token …
///         shard.stop().cancelled().await;
///     }
/// });
/// tokio::select! {
///     () = running => unreachable!("nobody stops it"),
///     _ = status.wait_for(|status| status.held.len() == 64) => {}     // it is alone: it has them all
/// }
/// session.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct ShardSet {
    name: LeaseName,
    /// By its own name, the lease of each shard.
    shards: BTreeMap<LeaseName, LeaseName>,
    policy: Arc<dyn Policy>,
    max_members: usize,
    pace: Option<Duration>,
    status: watch::Sender<ShardStatus>,
}

/// What a process has of a set of shards, and who shares it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ShardStatus {
    /// Who is there, as this process sees it, by rising slot; this one too, once it has a slot.
    pub members: Vec<InstanceId>,
    /// The shards that this process holds, those that are being given back included.
    pub held: BTreeSet<LeaseName>,
    /// By what this process sees it has its share, and nothing is under way.
    pub is_settled: bool,
}

/// A shard that this process holds, as the work on it sees it.
#[derive(Clone, Debug)]
pub struct HeldShard {
    name: LeaseName,
    fence: Fence,
    stop: CancellationToken,
}

impl HeldShard {
    /// Its name within the set.
    #[must_use]
    pub const fn name(&self) -> &LeaseName {
        &self.name
    }

    /// The check "do I still hold it, now?", before every side effect.
    #[must_use]
    pub const fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The fencing token: every write for the shard carries it.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.fence.epoch()
    }

    /// Cancelled when the work has to end: the shard is lost, or to be given back. In the second case the
    /// fence stays open until the work has ended.
    #[must_use]
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }
}

impl ShardSet {
    /// The set `name` of these shards. Its leases are `<name>/shards/<shard>`, its slots
    /// `<name>/members/<number>`.
    ///
    /// # Errors
    ///
    /// [`NameError`] if one of them is no name that a lease can have.
    pub fn new<S: AsRef<str>>(
        name: &str,
        shards: impl IntoIterator<Item = S>,
    ) -> Result<Self, NameError> {
        let lease = |shard: S| {
            let shard = LeaseName::new(shard.as_ref())?;
            let lease = LeaseName::new(&format!("{name}/shards/{shard}"))?;
            Ok((shard, lease))
        };
        Ok(Self {
            name: LeaseName::new(name)?,
            shards: shards.into_iter().map(lease).collect::<Result<_, _>>()?,
            policy: Arc::new(FairShare),
            max_members: 1024,
            pace: None,
            status: watch::Sender::default(),
        })
    }

    /// Decides who has what. Default: [`FairShare`]. All processes of a set use the same.
    #[must_use]
    pub fn policy(self, policy: impl Policy + 'static) -> Self {
        Self { policy: Arc::new(policy), ..self }
    }

    /// How many processes share the set at most; one more waits until another goes. Default 1024.
    #[must_use]
    pub fn max_members(self, max_members: usize) -> Self {
        Self { max_members, ..self }
    }

    /// How often it looks at what its session has seen, and decides anew. That sends nothing by itself.
    /// Default: R/4.
    #[must_use]
    pub fn pace(self, pace: Duration) -> Self {
        Self { pace: Some(pace.max(Duration::from_millis(1))), ..self }
    }

    /// What this process has, as a channel that shows every change. Take it before [`run`](Self::run).
    #[must_use]
    pub fn status(&self) -> watch::Receiver<ShardStatus> {
        self.status.subscribe()
    }

    /// Joins, and runs `work` on each shard that falls to this process, for as long as it does. Returns
    /// once the session was stopped and all work has ended.
    ///
    /// Work is told by [`HeldShard::stop`] when it has to end; a shard is given back only once it has.
    /// Work that ends by itself gives its shard back too, and it is then taken by whoever is short of one,
    /// perhaps by this process again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the work is dropped where it stands and every fence is shut at once; the
    /// shards and the slot are free for others T later.
    pub async fn run<F, Fut>(self, session: &SessionManager, work: F)
    where
        F: Fn(HeldShard) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        Running::new(self, session, work).run().await;
    }
}
