//! Choosing how a session is held, and starting it.

use super::{
    super::{
        background,
        builder::{known_past, look, no_randomness, open_instance_dir, random_u64},
        error::StartError,
    },
    driver::{Driver, Parts, drive},
    manager::{SessionManager, Who},
    shared::{Shared, WISHES},
    status::SessionStatus,
};
use crate::{
    auth::{Authenticator, ClusterSecret},
    history::InstanceDir,
    key::{ClusterName, InstanceId},
    machine::EpochOrigin,
    record::{Label, Ttl},
    session::{Config, Object},
    store::LeaseStore,
    timing::Timing,
    wire::Wire,
};
use fencing::{Clock, SystemClock};
use std::{path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::{broadcast, mpsc, watch};

/// How many events a slow reader may be behind before it misses some.
const EVENTS: usize = 1024;

/// Chooses how a session is held. See [`SessionManager::builder`].
///
/// ```
/// use lease_core::{Timing, auth::ClusterSecret, runner::SessionManager, testing::MemoryStore};
/// use std::time::Duration;
///
/// # async fn start(instance_dir: std::path::PathBuf) -> Result<SessionManager, Box<dyn std::error::Error>> {
/// let session = SessionManager::builder(MemoryStore::new(), "orders")
///     .timing(Timing::default())                                  // 30 s / 10 s
///     .instance_dir(instance_dir)                                 // on a disk that survives restarts
///     .instance_name("orders-0")                                  // for people
///     .secret(ClusterSecret::from_env("ORDERS_HA_SECRET")?)       // only who has it is believed
///     .audit(Duration::from_secs(300))                            // finds leases that a hand deleted
///     .start()
///     .await?;
/// # Ok(session) }
/// ```
#[must_use = "nothing is held before `start`"]
pub struct SessionBuilder {
    store: Arc<dyn LeaseStore>,
    cluster: String,
    instance_dir: Option<PathBuf>,
    is_ephemeral: bool,
    instance_name: String,
    secret: Option<ClusterSecret>,
    timing: Timing,
    epochs: EpochOrigin,
    audit: Option<Duration>,
    max_leases: usize,
    max_in_flight: usize,
    looks_per_renew: usize,
    keep_out_after_release: bool,
    step_down_budget: Duration,
    is_dedicated: bool,
    clock: Arc<dyn Clock>,
}

impl SessionBuilder {
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
            audit: None,
            max_leases: 100_000,
            max_in_flight: 32,
            looks_per_renew: 32,
            keep_out_after_release: true,
            step_down_budget: Duration::from_secs(30),
            is_dedicated: false,
            clock: Arc::new(SystemClock::new()),
        }
    }

    /// T, R and the rest, of the session and so of every lease under it. Default: 30 s, 10 s.
    pub fn timing(self, timing: Timing) -> Self {
        Self { timing, ..self }
    }

    /// A directory of this instance alone, on a disk that survives restarts: its id, and what it
    /// remembers of the cluster, are kept there. Created if missing (its parent is not).
    pub fn instance_dir(self, path: impl Into<PathBuf>) -> Self {
        Self { instance_dir: Some(path.into()), ..self }
    }

    /// No instance directory: a fresh id at every start. What an earlier process of this instance held
    /// is then waited out like anybody's.
    pub fn ephemeral_instance(self) -> Self {
        Self { is_ephemeral: true, ..self }
    }

    /// A label for people, written into the records: a host or pod name. Decides nothing.
    pub fn instance_name(self, name: impl Into<String>) -> Self {
        Self { instance_name: name.into(), ..self }
    }

    /// The cluster's secret: records are authenticated, and others are not believed.
    pub fn secret(self, secret: ClusterSecret) -> Self {
        Self { secret: Some(secret), ..self }
    }

    /// Where the numbers of epochs come from. Default: the clock is a floor.
    pub fn epochs(self, epochs: EpochOrigin) -> Self {
        Self { epochs, ..self }
    }

    /// Reads each lease that is held at least so often (A), so that one that a hand deleted or replaced
    /// is found. Default: no audit; such a lease is then covered by its token alone. All instances of a
    /// cluster must say the same. See [`Config::with_audit`].
    pub fn audit(self, every: Duration) -> Self {
        Self { audit: Some(every), ..self }
    }

    /// How many leases may be wanted, held, watched or on their way back at once; one more is refused.
    /// Default 100 000.
    pub fn max_leases(self, max_leases: usize) -> Self {
        Self { max_leases, ..self }
    }

    /// How many requests may be under way at once, beside those of the session itself. Default 32.
    pub fn max_in_flight(self, max_in_flight: usize) -> Self {
        Self { max_in_flight, ..self }
    }

    /// How many leases that others hold are looked at per R, at most. Default 32. See
    /// [`Config::looks_per_renew`].
    pub fn looks_per_renew(self, looks_per_renew: usize) -> Self {
        Self { looks_per_renew, ..self }
    }

    /// Whether a lease that was released is kept out of for 2R, so that a release really hands over.
    /// Default: yes.
    pub fn keep_out_after_release(self, keep_out: bool) -> Self {
        Self { keep_out_after_release: keep_out, ..self }
    }

    /// How long work may take to end after it was told to stop. Default 30 s.
    pub fn step_down_budget(self, budget: Duration) -> Self {
        Self { step_down_budget: budget, ..self }
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

    /// Probes the store if it needs that, locks the instance directory, and begins the session in the
    /// background: at once if this instance is new, or ended its last session itself; else T later.
    ///
    /// Needs a tokio runtime with time enabled, unless [`dedicated_thread`](Self::dedicated_thread) is
    /// chosen.
    ///
    /// # Errors
    ///
    /// [`StartError`] says what to change. Nothing was written to the session.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, nothing stays behind but what a probe wrote.
    pub async fn start(self) -> Result<SessionManager, StartError> {
        let cluster = ClusterName::new(&self.cluster)?;
        let (commands, wishes) = mpsc::channel(WISHES);
        let shared = Arc::new(Shared::new(commands, self.step_down_budget));
        let (status, watch) = watch::channel(SessionStatus::new());
        let events = broadcast::Sender::new(EVENTS);
        let timing = self.timing;
        let (is_dedicated, gone) = (self.is_dedicated, shared.gone.clone());
        let (of_driver, its_events) = (Arc::clone(&shared), events.clone());
        let instance = background::start(is_dedicated, gone, async move {
            let parts = self.parts().await?;
            let instance = parts.config.instance.clone();
            let driver = Driver::new(parts, of_driver, wishes, status, its_events);
            Ok((instance, drive(Box::new(driver))))
        })
        .await?;
        let who = Who { instance, cluster, timing };
        Ok(SessionManager::new(shared, who, watch, events))
    }

    /// Everything that is looked at before a driver may run.
    async fn parts(self) -> Result<Parts, StartError> {
        let cluster = ClusterName::new(&self.cluster)?;
        let name = Label::new(&self.instance_name)?;
        let ttl = Ttl::new(self.timing.ttl())?;
        let history = match (self.instance_dir, self.is_ephemeral) {
            (_, true) => None,
            (Some(path), false) => Some(open_instance_dir(path).await?),
            (None, false) => return Err(StartError::NoInstanceDir),
        };
        let instance = match &history {
            Some(dir) => dir.instance_id().clone(),
            None => InstanceId::random().map_err(no_randomness)?,
        };
        let auth = Authenticator::new(cluster.clone(), self.secret.as_ref());
        let wire = Wire { auth, instance: instance.clone(), name, ttl };
        let key = wire.object_key(&Object::Session(instance.clone()));
        let limit = self.timing.ttl().max(Duration::from_secs(10));
        tokio::time::timeout(limit, look(&*self.store, &key, &wire.auth))
            .await
            .map_err(|_| StartError::StoreSilent { limit })??;

        let mut config = Config::new(instance, self.timing);
        if let Some(every) = self.audit {
            config = config.with_audit(every)?;
        }
        config.epochs = self.epochs;
        config.max_leases = self.max_leases;
        config.max_in_flight = self.max_in_flight.max(1);
        config.looks_per_renew = self.looks_per_renew.max(1);
        config.keep_out_after_release = self.keep_out_after_release;
        config.fresh_instance = history.as_ref().is_none_or(InstanceDir::is_new);
        config.has_secret = self.secret.is_some();
        config.has_history = history.is_some();
        config.jitter_seed = Some(random_u64()?);
        let past = history.as_ref().map(|dir| known_past(dir, &cluster)).unwrap_or_default();
        Ok(Parts {
            config,
            past,
            wire: Arc::new(wire),
            store: self.store,
            clock: self.clock,
            history: history.map(Arc::new),
        })
    }
}

impl std::fmt::Debug for SessionBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionBuilder")
            .field("store", &self.store)
            .field("cluster", &self.cluster)
            .field("timing", &self.timing)
            .field("instance_dir", &self.instance_dir)
            .finish_non_exhaustive()
    }
}
