//! A durable renewal in a directory beside what a user would pick instead.

use super::{Bar, Effort, Row};
use std::path::Path;

const RENEWAL: &str =
    "a durable renewal in a directory, beside etcd's keep-alive and a transaction (each on disk)";

/// Without the feature `peers` there is nothing to compare with.
///
/// # Errors
///
/// None.
#[cfg(not(feature = "peers"))]
pub fn rows(_: Effort, _: &Path) -> std::io::Result<Vec<Row>> {
    let why = "built without the feature `peers`";
    Ok(vec![Row::skipped("local-vs-etcd", Bar::Below(1.0), RENEWAL, why)])
}

#[cfg(feature = "peers")]
pub use measured::rows;

#[cfg(feature = "peers")]
mod measured {
    use super::{Bar, Effort, Path, RENEWAL, Row};
    use crate::{
        holder,
        paired::{self, Pairs},
        peers::{Etcd, Postgres, Redis, Refused, named},
        rows::local::{Bed, runtime},
    };
    use lease_core::LeaseManager;
    use lease_local::LocalStore;
    use std::{cell::RefCell, io};

    /// Renewals, and acquiring and releasing, beside each peer that the environment names.
    ///
    /// # Errors
    ///
    /// If `directory` cannot be used.
    pub fn rows(effort: Effort, directory: &Path) -> io::Result<Vec<Row>> {
        let ours = Ours { bed: Bed::below(directory)?, lock: Lock::below(directory)? };
        let (ours, pairs) = (RefCell::new(ours), effort.of(1_000));
        let mut rows = etcd(&ours, pairs);
        rows.extend(redis(&ours, pairs));
        rows.extend(postgres(&ours, pairs));
        Ok(rows)
    }

    struct Ours {
        bed: Bed,
        lock: Lock,
    }

    /// A lease that is acquired and released through the runner.
    struct Lock {
        runtime: tokio::runtime::Runtime,
        lease: LeaseManager,
        _directory: tempfile::TempDir,
    }

    impl Lock {
        fn below(parent: &Path) -> io::Result<Self> {
            let (scratch, runtime) = (tempfile::tempdir_in(parent)?, runtime()?);
            let store = LocalStore::open(scratch.path().join("store")).map_err(io::Error::other)?;
            let lease = runtime.block_on(async {
                let lease = LeaseManager::builder(store, "orders")
                    .instance_dir(scratch.path().join("instance"))
                    .first_start(lease_core::machine::FirstStart::Immediate)
                    .keep_out_after_release(false)
                    .secret(holder::secret())
                    .start()
                    .await;
                lease.map_err(io::Error::other)
            })?;
            Ok(Self { runtime, lease, _directory: scratch })
        }

        fn acquire_and_release(&self) {
            self.runtime.block_on(async {
                let tenure = self.lease.acquire().await.expect("nobody else wants it");
                tenure.release().await;
            });
        }
    }

    fn renewals(ours: &RefCell<Ours>, pairs: usize, theirs: impl FnMut()) -> Pairs {
        paired::run(pairs, || ours.borrow_mut().bed.renew(), theirs)
    }

    fn locks(ours: &RefCell<Ours>, pairs: usize, theirs: impl FnMut()) -> Pairs {
        paired::run(pairs, || ours.borrow_mut().lock.acquire_and_release(), theirs)
    }

    fn skipped(path: &'static str, bar: Bar, what: &str, why: &Refused) -> Vec<Row> {
        vec![Row::skipped(path, bar, what, &why.to_string())]
    }

    fn etcd(ours: &RefCell<Ours>, pairs: usize) -> Vec<Row> {
        let mut etcd = match named("HA_TEST_ETCD_URL", Etcd::connect) {
            Ok(etcd) => etcd,
            Err(why) => return skipped("local-vs-etcd", Bar::Below(1.0), RENEWAL, &why),
        };
        let renewed = renewals(ours, pairs, || etcd.renew());
        let kept = renewals(ours, pairs, || etcd.keep_alive());
        let locked = locks(ours, pairs, || etcd.acquire_and_release());
        let lock = "acquire and release in a directory (history included), beside etcd's grant, lock, revoke: each on disk";
        let keep = "a durable renewal in a directory, beside etcd's keep-alive alone: in memory";
        vec![
            Row::of("local-vs-etcd", &renewed, Bar::Below(1.0), RENEWAL),
            Row::of("local-vs-etcd-keep-alive", &kept, Bar::None, keep),
            Row::of("local-vs-etcd-lock", &locked, Bar::None, lock),
        ]
    }

    fn redis(ours: &RefCell<Ours>, pairs: usize) -> Vec<Row> {
        let names = [
            (
                "always",
                "local-vs-redis-always",
                "local-vs-redis-always-lock",
                "on disk before it answers",
            ),
            (
                "everysec",
                "local-vs-redis-everysec",
                "local-vs-redis-everysec-lock",
                "on disk within a second",
            ),
        ];
        let mut redis = match named("HA_TEST_REDIS_URL", Redis::connect) {
            Ok(redis) => redis,
            Err(why) => return skipped(names[0].1, Bar::None, "the same beside Redis", &why),
        };
        let mut rows = Vec::new();
        for (policy, renewal, lock, durability) in names {
            if let Err(why) = redis.sync(policy) {
                rows.extend(skipped(renewal, Bar::None, "the same beside Redis", &why));
                continue;
            }
            let renewed = renewals(ours, pairs, || redis.renew());
            let locked = locks(ours, pairs, || redis.acquire_and_release());
            let what = |what: &str| format!("{what}, appendfsync {policy}: {durability}");
            rows.push(Row::of(
                renewal,
                &renewed,
                Bar::None,
                &what("a durable renewal in a directory, beside a Lua extend in Redis"),
            ));
            rows.push(Row::of(
                lock,
                &locked,
                Bar::None,
                &what("acquire and release in a directory, beside SET NX PX and a Lua release"),
            ));
        }
        rows
    }

    fn postgres(ours: &RefCell<Ours>, pairs: usize) -> Vec<Row> {
        let mut postgres = match named("HA_TEST_POSTGRES_URL", Postgres::connect) {
            Ok(postgres) => postgres,
            Err(why) => {
                return skipped("local-vs-postgres", Bar::None, "the same beside PostgreSQL", &why);
            }
        };
        let renewed = renewals(ours, pairs, || postgres.renew());
        let locked = locks(ours, pairs, || postgres.acquire_and_release());
        let advisory = locks(ours, pairs, || postgres.lock_and_unlock());
        vec![
            Row::of(
                "local-vs-postgres",
                &renewed,
                Bar::None,
                "a durable renewal in a directory, beside an UPDATE of a row, synchronous_commit on: on disk",
            ),
            Row::of(
                "local-vs-postgres-lock",
                &locked,
                Bar::None,
                "acquire and release in a directory, beside a row taken and given back: on disk",
            ),
            Row::of(
                "local-vs-postgres-advisory",
                &advisory,
                Bar::None,
                "acquire and release in a directory, beside an advisory lock: in memory, for as long as its connection",
            ),
        ]
    }
}
