//! Choosing how a lease is held, and starting to.

use super::{
    background,
    driver::{Driver, Parts, drive},
    error::StartError,
    manager::LeaseManager,
    shared::Shared,
    status::Status,
};
use crate::{
    auth::{Authenticator, ClusterSecret},
    history::InstanceDir,
    key::{ClusterName, InstanceId, ObjectKey},
    machine::{Config, EpochOrigin, FirstStart, Past, TrustRelease},
    probe,
    record::{Label, Ttl},
    store::{LeaseStore, Read},
    timing::Timing,
    wire::Wire,
};
use fencing::{Clock, Epoch, SystemClock};
use futures_util::future::BoxFuture;
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;

/// Asks which epoch is proved to be in use by something else than the lease, for instance by
/// authenticated snapshots. `Ok(None)`: by nothing.
///
/// ```
/// use lease_core::{fencing::Epoch, runner::EpochFloor};
/// use std::sync::Arc;
///
/// async fn newest_snapshot() -> std::io::Result<Option<u64>> {
///     Ok(Some(7))                                 // one's own: list the snapshots, verify the newest
/// }
///
/// let floor: EpochFloor = Arc::new(|| Box::pin(async { Ok(newest_snapshot().await?.and_then(Epoch::new)) }));
/// # let _ = floor;
/// ```
pub type EpochFloor = Arc<
    dyn Fn() -> BoxFuture<'static, Result<Option<Epoch>, Box<dyn std::error::Error + Send + Sync>>>
        + Send
        + Sync,
>;

/// What to do when the lease was taken over from something that cannot be believed: a forged,
/// unreadable or (where authenticated ones were seen) unsigned record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum UntrustedPredecessor {
    /// Report it, give the takeover up, and try again after T. Somebody has written to the lease
    /// who should not: find out who.
    #[default]
    Abandon,
    /// Report it and go on.
    Accept,
}

/// Chooses how a lease is held. See [`LeaseManager::builder`].
///
/// The choices that most services make:
///
/// ```
/// use lease_core::{LeaseManager, Timing, auth::ClusterSecret, testing::MemoryStore};
/// use std::time::Duration;
///
/// # async fn start(instance_dir: std::path::PathBuf) -> Result<LeaseManager, Box<dyn std::error::Error>> {
/// let lease = LeaseManager::builder(MemoryStore::new(), "orders")
///     .timing(Timing::default())                                  // 30 s / 10 s
///     .instance_dir(instance_dir)                                 // on a disk that survives restarts
///     .instance_name("orders-0")                                  // for people
///     .secret(ClusterSecret::from_env("ORDERS_HA_SECRET")?)       // only who has it is believed
///     .step_down_budget(Duration::from_secs(15))                  // how long the work may take to stop
///     .start()
///     .await?;
/// # Ok(lease) }
/// ```
#[must_use = "nothing is held before `start`"]
pub struct LeaseBuilder {
    store: Arc<dyn LeaseStore>,
    cluster: String,
    instance_dir: Option<PathBuf>,
    is_ephemeral: bool,
    instance_name: String,
    secret: Option<ClusterSecret>,
    timing: Timing,
    epochs: EpochOrigin,
    first_start: FirstStart,
    trust_release: TrustRelease,
    reclaim: bool,
    untrusted: UntrustedPredecessor,
    takeover_budget: Duration,
    step_down_budget: Duration,
    phase_lock: bool,
    keep_out_after_release: bool,
    epoch_floor: Option<(EpochFloor, Duration)>,
    is_dedicated: bool,
    clock: Arc<dyn Clock>,
}

impl LeaseBuilder {
    pub(super) fn new(store: Arc<dyn LeaseStore>, cluster: &str) -> Self {
        Self {
            store,
            cluster: cluster.to_owned(),
            instance_dir: None,
            is_ephemeral: false,
            instance_name: String::new(),
            secret: None,
            timing: Timing::default(),
            epochs: EpochOrigin::default(),
            first_start: FirstStart::default(),
            trust_release: TrustRelease::default(),
            reclaim: false,
            untrusted: UntrustedPredecessor::default(),
            takeover_budget: Duration::from_secs(600),
            step_down_budget: Duration::from_secs(30),
            phase_lock: true,
            keep_out_after_release: true,
            epoch_floor: None,
            is_dedicated: false,
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// T, R and the validity rule. Default: 30 s, 10 s.
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// A directory of this instance alone, on a disk that survives restarts: its id, and what it
    /// remembers of the cluster, are kept there. Created if missing (its parent is not).
    ///
    /// Never copy it to a second instance, and never put it on a volume that two instances mount.
    pub fn instance_dir(self, path: impl Into<PathBuf>) -> Self {
        Self { instance_dir: Some(path.into()), ..self }
    }

    /// No instance directory: a fresh id at every start, and nothing remembered. Every start is
    /// then like that of a new machine: it waits out what it cannot know.
    pub fn ephemeral_instance(self) -> Self {
        Self { is_ephemeral: true, ..self }
    }

    /// A label for people, written into the record: a host or pod name. Decides nothing.
    pub fn instance_name(self, name: impl Into<String>) -> Self {
        Self { instance_name: name.into(), ..self }
    }

    /// The cluster's secret: records are authenticated, and others are not believed.
    ///
    /// Without it, whoever can write to the store can take the lease away or hand it out.
    pub fn secret(self, secret: ClusterSecret) -> Self {
        Self { secret: Some(secret), ..self }
    }

    /// Where the numbers of epochs come from. Default: the clock is a floor.
    pub fn epochs(self, epochs: EpochOrigin) -> Self {
        Self { epochs, ..self }
    }

    /// What to do on a missing lease while nothing is remembered. Default: hold back for W.
    /// [`FirstStart::Immediate`] needs an instance directory.
    pub fn first_start(self, first_start: FirstStart) -> Self {
        Self { first_start, ..self }
    }

    /// Whether a released lease needs evidence that the release is the latest word. Default: yes.
    pub fn trust_release(self, trust_release: TrustRelease) -> Self {
        Self { trust_release, ..self }
    }

    /// Take a lease that this very instance held before it was restarted back at once, under a new
    /// epoch. Default: no, it is waited out like anybody's. Needs an instance directory.
    pub fn reclaim(self, reclaim: bool) -> Self {
        Self { reclaim, ..self }
    }

    /// What [`LeaseManager::acquire`] does after a takeover from something that cannot be believed.
    /// Default: abandon. ([`LeaseManager::take_over`] leaves it to its caller.)
    pub fn untrusted_predecessor(self, untrusted: UntrustedPredecessor) -> Self {
        Self { untrusted, ..self }
    }

    /// How long a takeover may stay unconfirmed. Default 10 min.
    pub fn takeover_budget(self, budget: Duration) -> Self {
        Self { takeover_budget: budget, ..self }
    }

    /// How long work may take to end after it was told to stop. Default 30 s. Past it the work is
    /// dropped, and the lease lapses instead of being released.
    pub fn step_down_budget(self, budget: Duration) -> Self {
        Self { step_down_budget: budget, ..self }
    }

    /// Whether a standby reads right behind the holder's renewals, so that it takes over sooner.
    /// Default: yes. It costs at most a tenth more requests, and decides nothing but when to read.
    pub fn phase_lock(self, phase_lock: bool) -> Self {
        Self { phase_lock, ..self }
    }

    /// Whether this instance keeps out of the lease for 2R after it released it, so that a release
    /// really hands over. Default: yes.
    pub fn keep_out_after_release(self, keep_out: bool) -> Self {
        Self { keep_out_after_release: keep_out, ..self }
    }

    /// Asks for the epoch floor before every acquisition; `limit` is how long one answer may take.
    /// An acquisition waits, and asks again every R, while it cannot be told.
    pub fn epoch_floor(self, floor: EpochFloor, limit: Duration) -> Self {
        Self { epoch_floor: Some((floor, limit)), ..self }
    }

    /// Renew on a thread (and a runtime) of its own, so that work that blocks the service's runtime
    /// cannot starve the renewal. Every request to the store runs there too.
    pub fn dedicated_thread(self) -> Self {
        Self { is_dedicated: true, ..self }
    }

    /// Where time comes from. For tests; default: the machine's clocks.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// Probes the store if it needs that, locks the instance directory, reads the lease, and starts
    /// to watch it as a standby. Nothing is acquired before [`LeaseManager::acquire`].
    ///
    /// Needs a tokio runtime with time enabled, unless [`dedicated_thread`](Self::dedicated_thread)
    /// is chosen (then any executor will do).
    ///
    /// # Errors
    ///
    /// [`StartError`] says what to change. Nothing was written to the lease.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing stays behind but what a probe wrote.
    pub async fn start(self) -> Result<LeaseManager, StartError> {
        let shared = Arc::new(Shared::default());
        let (status, watch) = watch::channel(Status::new());
        let clock = Arc::clone(&self.clock);
        let (untrusted, step_down) = (self.untrusted, self.step_down_budget);
        let (is_dedicated, gone) = (self.is_dedicated, shared.gone.clone());
        let of_driver = Arc::clone(&shared);
        background::start(is_dedicated, gone, async move {
            let parts = self.parts().await?;
            of_driver.set_history(parts.history.as_ref());
            Ok(((), drive(Box::new(Driver::new(parts, of_driver, status)))))
        })
        .await?;
        Ok(LeaseManager::new(shared, watch, clock, untrusted, step_down))
    }

    /// Everything that is looked at before a driver may run.
    async fn parts(self) -> Result<Parts, StartError> {
        let cluster = ClusterName::new(&self.cluster)?;
        let key = cluster.lease_key();
        let name = Label::new(&self.instance_name)?;
        let ttl = Ttl::new(self.timing.ttl())?;
        let history = self.open_history().await?;
        let auth = Authenticator::new(cluster.clone(), self.secret.as_ref());
        let instance = match &history {
            Some(dir) => dir.instance_id().clone(),
            None => InstanceId::random().map_err(no_randomness)?,
        };
        let limit = self.timing.ttl().max(Duration::from_secs(10));
        tokio::time::timeout(limit, look(&*self.store, &key, &auth))
            .await
            .map_err(|_| StartError::StoreSilent { limit })??;

        let mut config = Config::new(instance.clone(), self.timing);
        config.epochs = self.epochs;
        config.first_start = self.first_start;
        config.trust_release = self.trust_release;
        config.takeover_budget = self.takeover_budget;
        config.phase_lock = self.phase_lock;
        config.keep_out_after_release = self.keep_out_after_release;
        config.has_secret = self.secret.is_some();
        config.has_floor = self.epoch_floor.is_some();
        config.has_history = history.is_some();
        config.jitter_seed = Some(random_u64()?);
        let past = self.past(history.as_ref(), &cluster);
        Ok(Parts {
            config,
            past,
            wire: Arc::new(Wire { auth, instance, name, ttl }),
            store: self.store,
            key,
            clock: self.clock,
            history: history.map(Arc::new),
            epoch_floor: self.epoch_floor,
        })
    }

    async fn open_history(&self) -> Result<Option<InstanceDir>, StartError> {
        let Some(path) = self.instance_dir.clone().filter(|_| !self.is_ephemeral) else {
            if !self.is_ephemeral {
                return Err(StartError::NoInstanceDir);
            }
            if self.first_start == FirstStart::Immediate {
                let choice = "`first_start(Immediate)`";
                return Err(StartError::ChoiceNeedsInstanceDir { choice });
            }
            if self.reclaim {
                return Err(StartError::ChoiceNeedsInstanceDir { choice: "`reclaim`" });
            }
            return Ok(None);
        };
        open_instance_dir(path).await.map(Some)
    }

    fn past(&self, history: Option<&InstanceDir>, cluster: &ClusterName) -> Past {
        let Some(dir) = history else { return Past::default() };
        let mut past = known_past(dir, cluster);
        past.reclaimable = dir.reclaimable(cluster).filter(|_| self.reclaim);
        past
    }
}

/// What an instance directory knows of a cluster, but for what may be taken back.
pub(super) fn known_past(dir: &InstanceDir, cluster: &ClusterName) -> Past {
    let known = dir.history(cluster);
    Past {
        last_epoch: known.last_epoch,
        last_release: known.last_release,
        seen_authenticated: known.seen_authenticated_lease,
        largest_ttl: known.largest_ttl.map(Ttl::duration),
        newest_named_snapshot: known.newest_named_snapshot,
        reclaimable: None,
    }
}

impl std::fmt::Debug for LeaseBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeaseBuilder")
            .field("store", &self.store)
            .field("cluster", &self.cluster)
            .field("timing", &self.timing)
            .field("instance_dir", &self.instance_dir)
            .finish_non_exhaustive()
    }
}

pub(super) async fn open_instance_dir(path: PathBuf) -> Result<InstanceDir, StartError> {
    match tokio::task::spawn_blocking(move || InstanceDir::open(path)).await {
        Ok(opened) => Ok(opened?),
        Err(join) => {
            let source = std::io::Error::other(join);
            Err(StartError::Platform { what: "thread to open the instance directory", source })
        }
    }
}

/// Probes the store if that is needed, and reads the lease once: an instance with another secret
/// than the cluster's must not start.
pub(super) async fn look(
    store: &dyn LeaseStore,
    key: &ObjectKey,
    auth: &Authenticator,
) -> Result<(), StartError> {
    if store.needs_probe() {
        probe::probe(store, key).await?;
    }
    let read = match store.read_versioned(key, None).await {
        // What is no record says nothing about secrets.
        Err(crate::store::StoreError::Corrupt { .. }) => return Ok(()),
        read => read.map_err(|source| StartError::Store { key: key.to_string(), source })?,
    };
    let Read::Found { content, .. } = read else { return Ok(()) };
    let judgement = auth.judge(&content);
    match (judgement.foreign_key, judgement.record, auth.key_id()) {
        (true, Some(record), Some(ours)) => Err(StartError::ForeignSecret {
            cluster: auth.cluster().to_string(),
            ours: ours.to_owned(),
            theirs: record.key_id.map(|id| id.to_string()).unwrap_or_default(),
        }),
        _ => Ok(()),
    }
}

pub(super) fn random_u64() -> Result<u64, StartError> {
    getrandom::u64().map_err(no_randomness)
}

pub(super) fn no_randomness(error: getrandom::Error) -> StartError {
    StartError::Platform { what: "random bytes", source: std::io::Error::other(error) }
}
