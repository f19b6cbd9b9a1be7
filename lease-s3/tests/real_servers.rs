//! The suite and the probe on real servers, where the environment names them; `tests/servers.sh`
//! starts most of them. Each that is not named is reported as *ignored*. (`s3s-fs` is always there.)
//!
//! | variable | server |
//! | --- | --- |
//! | `HA_TEST_S3_URL` | MinIO, or any store that must be taken |
//! | `HA_TEST_S3_<NAME>_URL` | one of the servers of `tests/servers.sh` |
//! | `HA_TEST_AZURITE_URL` | Azurite (feature `azure`) |
//! | `…_ACCESS_KEY`, `…_SECRET_KEY` beside each | its keys |
#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests, whatever they are called")]

#[cfg(feature = "azure")]
#[path = "real_servers/azurite.rs"]
mod azurite;
#[path = "real_servers/bucket.rs"]
mod bucket;
#[path = "real_servers/fenced.rs"]
mod fenced;
#[path = "fenced/proxy.rs"]
mod proxy;
#[path = "real_servers/s3s_fs.rs"]
mod s3s_fs;
#[path = "fenced/schedule.rs"]
mod schedule;

use bucket::Server;
use lease_core::{
    LeaseStore as _, ObjectKey,
    probe::ProbeStep,
    testing::conformance::{Capabilities, Case, Suite, Target},
};
use lease_s3::{Dialect, OpenError};
use libtest_mimic::{Arguments, Failed, Trial};
use std::time::Duration;

/// What must come of connecting to a server.
#[derive(Clone, Copy, Debug)]
enum Verdict {
    Taken(Dialect, Capabilities),
    Refused(&'static [ProbeStep]),
}

const TAKEN: Verdict = Verdict::Taken(Dialect::Quoted, Capabilities::ALL);

/// The servers by their names, with what was measured of each.
const SERVERS: [(&str, Verdict); 7] = [
    ("", TAKEN),
    ("CEPH", Verdict::Taken(Dialect::Bare, Capabilities::ALL)),
    ("MINISTACK", TAKEN),
    ("MOTO", TAKEN),
    ("RCLONE", Verdict::Refused(&[ProbeStep::CreateExisting])),
    ("S3RVER", Verdict::Refused(&[ProbeStep::CreateExisting])),
    ("LOCALBUCKET", Verdict::Refused(&[ProbeStep::ReplaceStale])),
];

/// One request after the other it does everything right.
const NOT_ATOMIC: Verdict = Verdict::Refused(&[ProbeStep::RaceReplaces, ProbeStep::RaceCreates]);

fn main() {
    let mut trials = Vec::new();
    for (name, verdict) in SERVERS {
        let server = Server::from_env(name);
        let named = if name.is_empty() { "minio".to_owned() } else { name.to_lowercase() };
        let is_unset = server.is_none();
        let of_probe = server.clone();
        let probe = move || run(probe(of_probe.unwrap(), verdict));
        trials.push(Trial::test(format!("{named}::probe"), probe).with_ignored_flag(is_unset));
        if let Verdict::Taken(_, capabilities) = verdict {
            for case in Suite::new(capabilities).cases() {
                let server = server.clone();
                let body = move || run(conforms(server.unwrap(), case));
                let ignored = is_unset || case.skipped_for(capabilities).is_some();
                let name = format!("{named}::{}", case.name());
                trials.push(Trial::test(name, body).with_ignored_flag(ignored));
            }
        }
        if matches!(name, "" | "CEPH") {
            let server = server.clone();
            let body = move || run(fenced::no_stale_write_shows_after_the_seal(server.unwrap()));
            let name = format!("{named}::no_stale_write_shows_after_the_seal");
            trials.push(Trial::test(name, body).with_ignored_flag(is_unset));
        }
        if name == "CEPH" {
            let body = move || run(versioned_is_refused(server.unwrap()));
            let trial = Trial::test("ceph::a_versioned_bucket_is_refused", body);
            trials.push(trial.with_ignored_flag(is_unset));
        }
    }
    let not_atomic = || run(async { probe(s3s_fs::start()?, NOT_ATOMIC).await });
    trials.push(Trial::test("s3sfs::probe", not_atomic));
    #[cfg(feature = "azure")]
    trials.extend(azurite::trials());
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run(test: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = Duration::from_secs(600);
    runtime
        .block_on(async { tokio::time::timeout(limit, test).await })
        .map_err(|_| format!("not done within {limit:?}"))?
}

async fn probe(server: Server, verdict: Verdict) -> Result<(), Failed> {
    server.create_bucket(&server.bucket).await?;
    let connected = server.options().connect().await;
    println!("{}: {}", server.name, told(&connected));
    match (connected, verdict) {
        (Ok(store), Verdict::Taken(dialect, _)) if store.dialect() == dialect => Ok(()),
        (Err(OpenError::Refused { refusal, .. }), Verdict::Refused(steps))
            if steps.contains(&refusal.step) =>
        {
            let is_race = matches!(refusal.step, ProbeStep::RaceReplaces | ProbeStep::RaceCreates);
            assert!(!is_race || refusal.found.contains("of 16 writers won"), "{refusal}");
            Ok(())
        }
        (other, _) => Err(format!("expected {verdict:?}, found {}", told(&other)).into()),
    }
}

/// One line of the table in `docs/stores.md`.
fn told(connected: &Result<lease_s3::S3Store, OpenError>) -> String {
    match connected {
        Ok(store) => {
            assert!(!store.needs_probe());
            format!("accepted, {:?} dialect, {:?}", store.dialect(), store.probe_report())
        }
        Err(OpenError::Refused { refusal, .. }) => {
            format!("refused at \"{}\": {}", refusal.step, refusal.found)
        }
        Err(other) => format!("not opened: {other}"),
    }
}

async fn conforms(server: Server, case: Case) -> Result<(), Failed> {
    server.create_bucket(&server.bucket).await?;
    let store = server.options().connect().await?;
    // The bucket may be used by others, and by earlier runs.
    let prefix = format!("suite-{:x}-{}", fresh(), case.name().replace("_", "-"));
    let target = Target::new(store, ObjectKey::new(&prefix)?).with_increments(10);
    case.run(target).await.map_err(Failed::from)
}

fn fresh() -> u64 {
    use lease_core::fencing::Clock as _;
    lease_core::fencing::SystemClock::new().reading().wall.unix_nanos()
}

async fn versioned_is_refused(server: Server) -> Result<(), Failed> {
    let bucket = format!("versioned-{:x}", fresh());
    server.create_bucket(&bucket).await?;
    server.enable_versions(&bucket).await?;
    let error = match server.options_of(&bucket).connect().await {
        Ok(_) => return Err("it was accepted".into()),
        Err(error) => error,
    };
    println!("{}, versioned: {error}", server.name);
    match error.refusal().map(|refusal| refusal.step) {
        Some(ProbeStep::CreateExisting) => Ok(()),
        other => Err(format!("{other:?}: {error}").into()),
    }
}
