//! One instance: what it does as the active one, and what a takeover does, in its order.

use crate::{Error, sqlite, told::Told};
use fencing::Epoch;
use lease_core::{
    LeaseManager, Tenure, Timing,
    auth::ClusterSecret,
    history::Forced,
    key::{ClusterName, InstanceId},
    machine::{EpochOrigin, FirstStart},
};
use lease_local::LocalStore;
use rusqlite::Connection;
use snapshot_format::{
    Catalog, Writer,
    cipher::Cipher,
    install::{DatabaseFile, Missing, Permit, Settled},
    local,
    name::{Application, Layout, Mark},
    rollback::{
        Choice, Decision, Facts, Lease, Override, OwnDatabase, PopulatedFirst, Restore, Standing,
        decide,
    },
    stream::Headerless,
};
use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// What all instances share.
pub(crate) struct Cluster {
    lease: PathBuf,
    name: ClusterName,
    secret: ClusterSecret,
    cipher: Cipher,
    pub(crate) catalog: Catalog,
}

impl Cluster {
    pub(crate) fn in_directory(shared: &Path) -> Result<Self, Error> {
        std::fs::create_dir_all(shared)?;
        let name = ClusterName::new("prod")?;
        // A service takes it from a file or the environment; all instances have the same.
        let secret = ClusterSecret::new(b"kX0qk8m1JmY0jv0s2gk1mZc5c0o3n9Qb")?;
        let cipher = Cipher::new(&secret);
        let layout = Layout::new(Application::new("orders")?, name.clone());
        let catalog = Catalog::new(Arc::new(local::open(shared)?), layout, cipher.clone());
        Ok(Self { lease: shared.join("lease"), name, secret, cipher, catalog })
    }
}

/// One instance, on one machine.
pub(crate) struct Instance<'a> {
    cluster: &'a Cluster,
    told: &'a Told,
    label: &'static str,
    directory: PathBuf,
    id: InstanceId,
    lease: LeaseManager,
    file: DatabaseFile,
    connection: Option<Connection>,
    writer: Writer,
}

/// How a takeover came out.
pub(crate) enum Taken {
    Active(Tenure),
    Refused,
}

impl<'a> Instance<'a> {
    pub(crate) async fn start(
        cluster: &'a Cluster,
        told: &'a Told,
        machines: &Path,
        label: &'static str,
        is_first: bool,
    ) -> Result<Self, Error> {
        let directory = machines.join(label);
        std::fs::create_dir_all(&directory)?;
        let first = if is_first { FirstStart::Immediate } else { FirstStart::HeldBack };
        let lease = LeaseManager::builder(LocalStore::open(&cluster.lease)?, cluster.name.as_str())
            .timing(Timing::short(Duration::from_secs(2), Duration::from_millis(500))?)
            .dedicated_thread() // SQLite blocks; renewals must not wait for it
            .epochs(EpochOrigin::Counter) // 1, 2, 3 read better here; a service keeps the default
            .instance_dir(directory.join("instance"))
            .instance_name(label)
            .secret(cluster.secret.clone())
            // No acquisition below an epoch that a snapshot proves.
            .epoch_floor(cluster.catalog.epoch_floor(), Duration::from_secs(5))
            .first_start(first)
            .start()
            .await?;
        let dir = lease.instance_dir().ok_or("there is an instance directory")?;
        // Before anything opens the database. It may be missing while no snapshot was ever written
        // or restored here; from then on a missing one is an error.
        let missing = match dir.history(&cluster.name).newest_snapshot {
            None => Missing::Accept,
            Some(_) => Missing::Error,
        };
        let options = DatabaseFile::options(directory.join("orders.db")).missing(missing);
        let (file, settled) = options.settle()?;
        if let Settled::Finished { snapshot: Some(mark), .. } = settled {
            dir.update(&cluster.name, |history| history.newest_snapshot = Some(mark.into()))?;
        }
        let (store, layout) = (cluster.catalog.store().clone(), cluster.catalog.layout().clone());
        let id = dir.instance_id().clone();
        let writer = Writer::new(store, layout, cluster.cipher.clone(), id.clone());
        told.by(label, "starts as a standby");
        let (connection, directory) = (None, directory.clone());
        Ok(Self { cluster, told, label, directory, id, lease, file, connection, writer })
    }

    /// Waits for the lease, decides what to restore, restores it, and confirms; or abandons.
    pub(crate) async fn take_over(&mut self, forced: Option<Override>) -> Result<Taken, Error> {
        let tenure = self.lease.take_over().await?;
        let inherited = tenure.inherited();
        self.say(match (inherited.verdict, &inherited.last_snapshot) {
            (None, _) => "takes over: there was no lease".to_owned(),
            (Some(verdict), None) => format!("takes over: the lease is {verdict:?}, names nothing"),
            (Some(verdict), Some(mark)) => {
                let (at, epoch) = (&mark.at, mark.epoch);
                format!("takes over: the lease is {verdict:?}, names {at} of epoch {epoch}")
            }
        });
        let decision = self.decide(&tenure, forced.clone()).await?;
        let restored = match &decision.choice {
            Choice::Refuse(reason) => {
                self.say(format!("refuses: {} ({reason})", reason.as_str()));
                tenure.abandon().await;
                return Ok(Taken::Refused);
            }
            Choice::Restore(restore) => {
                self.say(format!(
                    "restores {}, by the rule {:?}",
                    restore.listed.name, decision.rule
                ));
                self.restore(&tenure, restore).await?
            }
            Choice::StartEmpty => {
                self.say(format!("starts empty, by the rule {:?}", decision.rule));
                None
            }
            _ => {
                self.say(format!("keeps its own database, by the rule {:?}", decision.rule));
                None
            }
        };
        self.raise_marks(&decision, forced.is_some(), restored)?;
        if let Some(mark) = restored {
            tenure.name_snapshot(mark.into());
        }
        self.open()?;
        tenure.confirm().await?;
        self.say(format!(
            "is active under epoch {} with {}",
            tenure.epoch(),
            orders(self.orders()?)
        ));
        Ok(Taken::Active(tenure))
    }

    /// Facts first, then a function over them.
    async fn decide(&self, tenure: &Tenure, forced: Option<Override>) -> Result<Decision, Error> {
        let key = match &forced {
            Some(Override::FromSnapshot(key)) => Some(key),
            _ => None,
        };
        let snapshots = self.cluster.catalog.takeover_snapshots(key).await?;
        let dir = self.lease.instance_dir().ok_or("the manager has ended")?;
        let history = dir.history(&self.cluster.name);
        let database = match self.file.exists()? {
            true => OwnDatabase::Populated,
            false => OwnDatabase::Missing,
        };
        let own = Standing::new(self.id.clone(), database, tenure.inherited(), &history)?;
        let lease = Lease::inherited(tenure.inherited());
        let populated_first = PopulatedFirst::Keep;
        Ok(decide(&Facts { lease, snapshots, own, forced, populated_first }))
    }

    /// Restores into a file beside the database, looks at it, and swaps it in.
    async fn restore(&mut self, tenure: &Tenure, restore: &Restore) -> Result<Option<Mark>, Error> {
        let incoming = self.file.incoming()?;
        let sink: File = incoming.file().try_clone()?;
        // A legacy one has no header; the decision allows it, or an operator does.
        let headerless = match restore.mark {
            Some(_) => Headerless::Refuse,
            None => Headerless::Accept,
        };
        self.cluster.catalog.restore(&restore.listed, headerless, sink).await?;
        let (verified, (schema, count)) = incoming.verify(sqlite::verify)?;
        self.say(format!("has verified it: {}, schema {schema}", orders(count)));

        if let Some(connection) = self.connection.take() {
            sqlite::close(connection)?;
        }
        let installed = verified.install(Permit::TakingOver(tenure.fence()), restore.mark)?;
        self.say(match installed.backup.as_deref().and_then(Path::file_name) {
            Some(backup) => format!("has installed it; what was there is {}", backup.display()),
            None => "has installed it; there was none before".to_owned(),
        });
        Ok(restore.mark)
    }

    /// After the fact, and before the fence opens.
    fn raise_marks(
        &self,
        decision: &Decision,
        is_forced: bool,
        restored: Option<Mark>,
    ) -> Result<(), Error> {
        let dir = self.lease.instance_dir().ok_or("the manager has ended")?;
        let name = &self.cluster.name;
        match (is_forced, restored) {
            (true, Some(mark)) => dir.forced_takeover(name, Forced::Restored(mark.into()))?,
            (true, None) if decision.choice == Choice::KeepOwn => {
                dir.forced_takeover(name, Forced::KeptOwnDatabase)?;
            }
            (false, Some(mark)) => dir.update(name, |it| it.newest_snapshot = Some(mark.into()))?,
            (_, None) => {}
        }
        Ok(())
    }

    fn open(&mut self) -> Result<(), Error> {
        let path = self.file.path();
        if !self.file.exists()? {
            sqlite::create(&path)?;
        }
        let connection = sqlite::open(&path)?;
        let found = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        sqlite::migrate(&connection, found)?;
        self.connection = Some(connection);
        Ok(())
    }

    fn connection(&self) -> Result<&Connection, Error> {
        self.connection.as_ref().ok_or_else(|| "the database is not open".into())
    }

    pub(crate) fn add_orders(&self, tenure: &Tenure, count: u32) -> Result<(), Error> {
        tenure.fence().check()?; // before every side effect
        sqlite::add(self.connection()?, tenure.epoch().as_u64(), count)?;
        self.say(format!("adds {}", orders(count)));
        Ok(())
    }

    /// A copy, sealed and stored through the fence; then the lease names it, and the mark is raised.
    pub(crate) async fn store_snapshot(&mut self, tenure: &Tenure) -> Result<(), Error> {
        let copy = self.directory.join("copy.db");
        sqlite::copy(self.connection()?, &copy)?;
        let (lost, fence) = (tenure.lost(), tenure.fence());
        let stored = self.writer.write(&fence, File::open(&copy)?, lost.cancelled()).await;
        std::fs::remove_file(&copy)?;
        let stored = stored?;
        let mark = stored.header.name().mark();
        tenure.name_snapshot(mark.into());
        let dir = self.lease.instance_dir().ok_or("the manager has ended")?;
        dir.update(&self.cluster.name, |history| history.newest_snapshot = Some(mark.into()))?;
        self.say(format!(
            "stores {}: {} bytes, sealed {}",
            stored.header.name(),
            stored.database_bytes,
            stored.sealed_bytes
        ));
        let pruned = self.cluster.catalog.prune(&fence).await?;
        debug_assert_eq!(pruned.deleted, 0, "there are few of them");
        Ok(())
    }

    pub(crate) async fn release(&mut self, tenure: Tenure) {
        // Closed before another can be active; as a standby it has no use for it.
        if let Some(connection) = self.connection.take()
            && let Err(error) = sqlite::close(connection)
        {
            self.say(format!("could not close its database: {error}"));
        }
        let ended = tenure.release().await;
        self.say(format!("gives the lease back: {ended}"));
    }

    pub(crate) fn orders(&self) -> Result<u32, Error> {
        sqlite::orders(self.connection()?)
    }

    pub(crate) fn last_epoch(&self) -> Epoch {
        let dir = self.lease.instance_dir();
        let history = dir.map(|dir| dir.history(&self.cluster.name)).unwrap_or_default();
        history.last_epoch.unwrap_or(Epoch::MIN)
    }

    fn say(&self, what: impl std::fmt::Display) {
        self.told.by(self.label, what);
    }
}

fn orders(count: u32) -> String {
    match count {
        1 => "1 order".to_owned(),
        more => format!("{more} orders"),
    }
}
