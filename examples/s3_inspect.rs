//! Who holds a lease in a bucket, since when, and whether the bucket is fit for one:
//!
//! ```sh
//! export AWS_ACCESS_KEY_ID=minioadmin AWS_SECRET_ACCESS_KEY=minioadmin
//! cargo run --example s3_inspect -- 's3://leases/ha?endpoint=http://127.0.0.1:9000' --cluster orders
//! ```
//!
//! It takes nothing and changes nothing of the lease. The probe writes objects `probe-…` under the
//! prefix and removes them; `--no-probe` leaves that out. The exit status is 0 if nothing speaks
//! against the store or the record, 1 if something does, 2 if the command line cannot be used.

use clap::Parser;
use jiff::Timestamp;
use lease_core::{
    LeaseStore as _, ObjectKey, Read, StoreError,
    auth::{Authenticator, ClusterSecret, Judgement, SecretError, Verdict},
    fencing::Epoch,
    key::{ClusterName, NameError},
    record::LeaseRecord,
};
use lease_s3::{OpenError, S3Options, S3Store};
use std::{path::PathBuf, process::ExitCode, time::Duration};

/// Tells who holds a lease in a bucket, since when, whether its record is to be believed, and
/// whether the bucket is fit for a lease.
#[derive(Parser)]
struct Args {
    /// The store of the lease, as its service names it: s3://bucket/prefix?endpoint=…, gs://…, az://….
    store: String,
    /// The cluster whose lease it is.
    #[arg(long)]
    cluster: String,
    /// The environment variable with the cluster's secret, to check the record with.
    #[arg(long, value_name = "VARIABLE", conflicts_with = "secret_file")]
    secret_env: Option<String>,
    /// The file with the cluster's secret.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
    /// Only read: do not try whether the store's conditional writes hold.
    #[arg(long)]
    no_probe: bool,
}

/// Why there is nothing to tell.
#[derive(Debug, thiserror::Error)]
enum InspectError {
    #[error("--cluster: {0}")]
    Cluster(#[from] NameError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the lease could not be read: {0}")]
    Read(#[from] StoreError),
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl InspectError {
    /// 2 for what is wrong with the command line, as clap has it.
    const fn status(&self) -> u8 {
        match self {
            Self::Cluster(_) | Self::Secret(_) | Self::Open(OpenError::Url(_)) => 2,
            Self::Open(_) | Self::Read(_) => 1,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match inspect(Args::parse()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("s3_inspect: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// One line of what is told.
fn tell(name: &str, what: impl std::fmt::Display) {
    println!("{name:<9} {what}");
}

/// Tells everything; whether all of it is well.
async fn inspect(args: Args) -> Result<bool, InspectError> {
    let cluster = ClusterName::new(&args.cluster)?;
    let secret = match (args.secret_env, args.secret_file) {
        (Some(variable), _) => Some(ClusterSecret::from_env(variable)?),
        (None, Some(path)) => Some(ClusterSecret::from_file(path)?),
        (None, None) => None,
    };
    let options = S3Store::from_url(&args.store).map_err(OpenError::from)?;
    let (key, auth) = (cluster.lease_key(), Authenticator::new(cluster, secret.as_ref()));
    tell("store", &options);
    let (store, is_fit) = if args.no_probe {
        tell("probe", "left out");
        (options.unprobed()?, true)
    } else {
        probed(options).await?
    };
    let is_believed = look(&store, &key, &auth).await?;
    Ok(is_fit && is_believed)
}

/// The store, and whether a lease may be kept in it. One that may not can still be looked at.
async fn probed(options: S3Options) -> Result<(S3Store, bool), InspectError> {
    match options.clone().connect().await {
        Ok(store) => {
            let report = store.probe_report().cloned().unwrap_or_default();
            let cheap =
                if report.not_modified { "304 without content" } else { "the content again" };
            let ages = if report.tells_age { "told" } else { "not told" };
            tell("probe", format_args!("passed: {} requests", report.requests));
            tell(
                "",
                format_args!("versions are sent back {:?}", store.dialect())
                    .to_string()
                    .to_lowercase(),
            );
            tell("", format_args!("an unchanged lease is answered by {cheap}; its age is {ages}"));
            if report.in_doubt + report.contended > 0 {
                let (racers, doubt) = (report.races * 16, report.in_doubt);
                let conflict = report.contended;
                tell(
                    "",
                    format_args!(
                        "of {racers} writers at once {doubt} were left in doubt, {conflict} met a conflict"
                    ),
                );
            }
            Ok((store, true))
        }
        Err(
            refused @ (OpenError::Refused { .. }
            | OpenError::ObjectLock { .. }
            | OpenError::ObjectLockUnknown { .. }),
        ) => {
            tell("probe", format_args!("NOT FIT FOR A LEASE: {refused}"));
            Ok((options.unprobed()?, false))
        }
        Err(error) => Err(error.into()),
    }
}

/// Reads the lease and tells about it; whether it may be believed.
async fn look(
    store: &S3Store,
    key: &ObjectKey,
    auth: &Authenticator,
) -> Result<bool, InspectError> {
    tell("lease", format_args!("{key} of the cluster {}", auth.cluster()));
    let (content, age) = match store.read_versioned(key, None).await {
        Ok(Read::Found { content, age, .. }) => (content, age),
        Ok(Read::Missing | Read::NotModified) => {
            tell("holder", "nobody: there is no lease; who acquires it first creates it");
            return Ok(true);
        }
        Err(StoreError::Corrupt { cause, .. }) => {
            tell("verdict", format_args!("UNREADABLE: {cause}"));
            return Ok(false);
        }
        Err(error) => return Err(error.into()),
    };
    let judged = auth.judge(&content);
    if let Some(record) = &judged.record {
        tell_record(record, age);
    }
    tell("verdict", verdict(&judged));
    if judged.foreign_key {
        tell(
            "",
            "it names another key than that of the secret given here: which one is the cluster's?",
        );
    }
    Ok(matches!(judged.verdict, Verdict::Authentic | Verdict::Unsigned))
}

fn tell_record(record: &LeaseRecord, age: Option<Duration>) {
    let ttl = record.ttl.duration();
    match &record.holder {
        None => tell("holder", "nobody: it was released, and is taken at once"),
        Some(id) if record.holder_name.is_empty() => tell("holder", id),
        Some(id) => tell("holder", format_args!("{} (instance {id})", record.holder_name)),
    }
    tell("epoch", record.epoch);
    match begun(record.epoch) {
        Some(begun) => {
            tell("since", format_args!("{begun}, as the epoch says: the holder's clock"))
        }
        None => tell("since", "not known: the epoch is a counter"),
    }
    tell("ttl", format_args!("{ttl:?}"));
    let by_holder = if record.renewed_at.is_empty() { "not told" } else { &record.renewed_at };
    tell(
        "written",
        format_args!("{by_holder} by the holder's clock, write {} of the tenure", record.seq),
    );
    let lapsed = if record.is_released() { "" } else { ": it has lapsed unless it is renewed" };
    match age {
        Some(age) if age > ttl => {
            tell("", format_args!("{age:?} ago by the store's clock, longer than the ttl{lapsed}"));
        }
        Some(age) => tell("", format_args!("{age:?} ago by the store's clock, within the ttl")),
        None => tell("", "how long ago is not told by the store; look again after the ttl"),
    }
    if let Some(snapshot) = &record.last_snapshot {
        tell("snapshot", format_args!("{} of epoch {}", snapshot.at, snapshot.epoch));
    }
    if let Some(key) = &record.key_id {
        tell("key", format_args!("{key} (tells secrets apart, and is none)"));
    }
}

/// When the tenure began, from an epoch that a clock was the floor of: its second × 2^21.
fn begun(epoch: Epoch) -> Option<Timestamp> {
    const YEAR_2020: u64 = 1_577_836_800;
    let second = epoch.as_u64() >> 21;
    let second = i64::try_from(second).ok().filter(|_| second >= YEAR_2020)?;
    Timestamp::from_second(second).ok()
}

fn verdict(judged: &Judgement) -> String {
    let name = match judged.verdict {
        Verdict::Authentic => return "authentic: signed with the cluster's secret".to_owned(),
        Verdict::Forged => "FORGED",
        Verdict::Unreadable => "UNREADABLE",
        Verdict::Unsigned => "unsigned",
    };
    judged.why.map_or_else(|| name.to_owned(), |why| format!("{name}: {why}"))
}
