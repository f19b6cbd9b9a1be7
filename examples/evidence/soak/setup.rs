//! What all clusters share, and how one is made.

use crate::{
    args::{Args, Broken, Kind},
    book::Book,
    cluster::Cluster,
    display::{Display, print},
    faketime::{self, Wall},
    faults::Means,
    member::Member,
    processes::{
        measure::{self, StoreOperations},
        place::{Hand, HandError, Place, PlaceError},
    },
    proxy::{self, Proxy},
    tally::Tally,
    wire::Plan,
};
use lease_core::{
    ObjectKey, StoreError, Timing,
    key::{ClusterName, NameError},
    timing::TimingError,
};
use std::{
    cell::RefCell,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// Why the soak did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SoakError {
    #[error("it was interrupted; all processes that it started are gone")]
    Interrupted,
    #[error("the operating system refused {what}: {source}")]
    Io { what: &'static str, source: io::Error },
    #[error("{} cannot be made: {source}; give a ledger that is not there yet", path.display())]
    Ledger { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Name(#[from] NameError),
    #[error("the store cannot be used: {0}")]
    Place(#[from] PlaceError),
    #[error("a store operation beside the clusters failed: {0}")]
    Store(#[from] StoreError),
    #[error("--ttl and --renew do not go together: {0}")]
    Timing(#[from] TimingError),
}

impl SoakError {
    /// 2 for what is wrong with the command line, as clap has it.
    pub(crate) const fn status(&self) -> u8 {
        match self {
            Self::Timing(_) | Self::Ledger { .. } => 2,
            Self::Place(error) if error.is_usage() => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

/// What all clusters share.
pub(crate) struct Setup {
    pub(crate) timing: Timing,
    pub(crate) seed: u64,
    pub(crate) renewals: u32,
    pub(crate) ledger: PathBuf,
    pub(crate) display: Display,
    pub(crate) operations: StoreOperations,
    pub(crate) tally: RefCell<Tally>,
    pub(crate) means: Means,
    pub(crate) only: Vec<Kind>,
    /// What cannot be done here, and why.
    pub(crate) skipped: Vec<String>,
    broken: Option<Broken>,
    place: Place,
    hand: Hand,
    written: RefCell<Vec<ObjectKey>>,
    program: PathBuf,
    faketime: Option<PathBuf>,
    notes: Book,
    dir: TempDir,
}

impl Setup {
    pub(crate) async fn new(args: &Args) -> Result<Self, SoakError> {
        let timing = Timing::short(args.ttl, args.renew)?;
        let (place, dir) = Place::of_a_run("soak", args.store.as_ref())?;
        let ledger = args.ledger.clone().unwrap_or_else(|| dir.path().join("ledger.jsonl"));
        fs::File::create_new(&ledger)
            .map_err(|source| SoakError::Ledger { path: ledger.clone(), source })?;
        let notes = Book::open(&ledger, "soak", "soak")
            .map_err(|source| SoakError::Ledger { path: ledger.clone(), source })?;
        let key = ObjectKey::new(measure::KEY)?;
        let written = RefCell::new(vec![key.clone()]);
        let store = place.open(&timing).await?;
        let history = Some(dir.path().join("operations"));
        let operations = StoreOperations::start(store, key, history).await?;
        let faketime = faketime::library();
        let (means, skipped) = means(&place, faketime.is_some());
        Ok(Self {
            timing,
            seed: args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000)),
            renewals: args.renewals,
            ledger,
            display: Display::new(),
            operations,
            tally: RefCell::default(),
            means,
            only: args.only.clone(),
            skipped,
            broken: args.broken,
            hand: place.hand()?,
            place,
            written,
            program: std::env::current_exe()
                .map_err(|source| SoakError::Io { what: "the path of this program", source })?,
            faketime,
            notes,
            dir,
        })
    }

    /// What the protocol promises from a fault to the first write of the next active process: T and R
    /// after the last renewal was sent, and R/10 more if a read came just before that.
    pub(crate) fn bound(&self) -> Duration {
        self.timing.ttl() + self.timing.renew() + self.timing.renew() / 10
    }

    /// Nothing that has to happen takes longer.
    pub(crate) fn patience(&self) -> Duration {
        let renewals = self.timing.renew() * 3 * (self.renewals + 5);
        self.timing.ttl() * 10 + renewals + Duration::from_secs(30)
    }

    pub(crate) fn introduce(&self, args: &Args) {
        self.display.say(&format!(
            "{} clusters in {}, for {} minutes; T = {:?}, R = {:?}; --seed {}",
            args.clusters,
            self.place,
            args.minutes,
            self.timing.ttl(),
            self.timing.renew(),
            self.seed,
        ));
        for skipped in &self.skipped {
            self.display.say(&format!("skipped: {skipped}"));
        }
    }

    /// One cluster, its processes still to be started.
    pub(crate) async fn cluster(&self, number: u16) -> Result<Cluster<'_>, SoakError> {
        let name = format!("c{number:02}");
        let refused = |what| move |source| SoakError::Io { what, source };
        let dir = self.dir.path().join(&name);
        fs::create_dir(&dir).map_err(refused("a directory"))?;
        let lease = ClusterName::new(&name)?.lease_key();
        self.written.borrow_mut().push(lease.clone());
        let gate = dir.join("gate.mark");
        let mut locks = vec![dir.join("gate.mark.lock")];
        if let Place::Directory(store) = &self.place {
            locks.push(store.join(format!("{lease}.lock")));
        }
        let (hear, heard) = mpsc::unbounded_channel();
        let mut members = Vec::new();
        for index in 0..2 + usize::from(number % 3) {
            let instance = char::from(b'a' + u8::try_from(index).unwrap_or(0)).to_string();
            let (store, proxy) = self.network().await.map_err(refused("a proxy"))?;
            let plan = Plan {
                store,
                cluster: name.clone(),
                dir: dir.join(&instance),
                instance: instance.clone(),
                ttl: self.timing.ttl(),
                renew: self.timing.renew(),
                is_first: index == 0,
                ledger: self.ledger.clone(),
                gate: gate.clone(),
                parent: i32::try_from(std::process::id()).unwrap_or_default(),
                broken: self.broken,
            };
            let mut member = Member::new(index, plan, &self.program, hear.clone());
            member.proxy = proxy;
            member.wall = self.wall(&dir, &instance).map_err(refused("a clock"))?;
            members.push(member);
        }
        Ok(Cluster::new(self, name, members, heard, locks))
    }

    /// The store as one process reaches it, and its network.
    async fn network(&self) -> io::Result<(String, Option<Proxy>)> {
        let store = self.place.to_string();
        let Some((server, at)) = self.means.cuts.then(|| proxy::server_of(&store)).flatten() else {
            return Ok((store, None));
        };
        let proxy = Proxy::start(server).await?;
        let (before, after) = (&store[..at.start], &store[at.end..]);
        Ok((format!("{before}http://{}{after}", proxy.address()), Some(proxy)))
    }

    fn wall(&self, dir: &Path, instance: &str) -> io::Result<Option<Wall>> {
        let file = dir.join(format!("{instance}.time"));
        self.faketime.as_ref().map(|library| Wall::new(library, file)).transpose()
    }

    /// Notes in the ledger what was done, for people.
    pub(crate) fn remark(&self, cluster: &str, member: &str, text: &str) {
        // Nothing depends on it; if the disk is full, the processes tell.
        let _ = self.notes.remark(&format!("{member} of {cluster}: {text}"));
    }

    /// Removes what this run wrote to a bucket. (A temporary directory goes by itself.)
    pub(crate) async fn clean_up(&self) {
        if let Place::Directory(_) = self.place {
            return;
        }
        for key in self.written.take() {
            match self.hand.remove(&key).await {
                // A cluster that failed may not have come to write it.
                Ok(()) | Err(HandError::Object(object_store::Error::NotFound { .. })) => {}
                Err(error) => {
                    self.display.say(&format!("{key} stays behind in {}: {error}", self.place));
                }
            }
        }
    }

    /// It can be looked into.
    pub(crate) fn keep_the_ledger(self) {
        print(&format!("the ledger is {}", self.ledger.display()));
        if self.ledger.starts_with(self.dir.path()) {
            let _ = self.dir.keep();
        }
    }
}

/// What can be done here, and what not.
fn means(place: &Place, has_faketime: bool) -> (Means, Vec<String>) {
    let mut skipped = Vec::new();
    if !has_faketime {
        skipped
            .push("wall-clock jumps: libfaketime is not installed (Debian: faketime)".to_owned());
    }
    let cuts = match place {
        Place::Directory(_) => {
            skipped
                .push("network faults: the store is a directory (give a bucket by --store)".into());
            false
        }
        Place::Url(url) if proxy::server_of(url).is_none() => {
            skipped.push("network faults: no plain http:// endpoint to stand before".to_owned());
            false
        }
        Place::Url(_) => true,
    };
    // Servers that check signatures allow for 15 minutes.
    let offset_max = if matches!(place, Place::Url(_)) { 300 } else { 3600 };
    (Means { jumps: has_faketime, cuts, offset_max }, skipped)
}
