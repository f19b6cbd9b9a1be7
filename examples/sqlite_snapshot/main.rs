//! Two instances that share nothing but a directory, each with a SQLite database of its own. The
//! active one stores snapshots; the other takes over from the newest, and refuses to when somebody
//! has deleted it.
//!
//! ```sh
//! cargo run --example sqlite_snapshot
//! ```
//!
//! To copy into a service: `instance.rs` (what a takeover does, in its order) and `sqlite.rs` (what
//! SQLite wants of a snapshot and of a swap).

mod instance;
mod sqlite;
mod told;

use fencing::Epoch;
use instance::{Cluster, Instance, Taken};
use snapshot_format::{
    catalog::ListedSnapshot, object_store::ObjectStoreExt as _, rollback::Override,
};
use told::Told;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let scratch = tempfile::tempdir()?;
    let (told, cluster) = (Told::new(), Cluster::in_directory(&scratch.path().join("shared"))?);
    println!("the time since the start, the instance, and what it did\n");

    // The first of a new cluster. Somebody has to say that it is new.
    let mut a = Instance::start(&cluster, &told, scratch.path(), "a", true).await?;
    let Taken::Active(tenure) = a.take_over(None).await? else { return Err("a is refused".into()) };
    a.add_orders(&tenure, 3)?;
    a.store_snapshot(&tenure).await?;

    // Another machine. It has nothing but the secret and the shared directory.
    let mut b = Instance::start(&cluster, &told, scratch.path(), "b", false).await?;
    a.add_orders(&tenure, 2)?;
    a.store_snapshot(&tenure).await?;
    a.release(tenure).await;

    let Taken::Active(tenure) = b.take_over(None).await? else { return Err("b is refused".into()) };
    expect(b.orders()?, 5)?;
    b.add_orders(&tenure, 1)?;
    b.store_snapshot(&tenure).await?;
    b.release(tenure).await;

    // Whoever can write to the directory deletes what is newest, so that an older one is.
    let newest = delete_epoch(&cluster, &told, b.last_epoch()).await?;
    let Taken::Refused = a.take_over(None).await? else { return Err("a was rolled back".into()) };

    // An operator has looked, and decides: the newest that is left, this once.
    told.by("operator", format!("{} is lost: a is to go on from {}", newest.0, newest.1.name));
    let forced = Override::FromSnapshot(newest.1.key);
    let Taken::Active(tenure) = a.take_over(Some(forced)).await? else {
        return Err("a is refused, forced or not".into());
    };
    expect(a.orders()?, 5)?;
    a.store_snapshot(&tenure).await?;
    a.release(tenure).await;
    println!("\na has 5 orders; the one that b had added is in b's own database alone");
    Ok(())
}

fn expect(found: u32, expected: u32) -> Result<(), Error> {
    if found == expected { Ok(()) } else { Err(format!("{found} orders, not {expected}").into()) }
}

/// Deletes every snapshot of `epoch`; returns the name of the newest, and what is the newest now.
async fn delete_epoch(
    cluster: &Cluster,
    told: &Told,
    epoch: Epoch,
) -> Result<(String, ListedSnapshot), Error> {
    let listing = cluster.catalog.list().await?;
    let of_epoch = listing.snapshots.iter().filter(|it| it.name.epoch() == epoch);
    let mut newest = None;
    for listed in of_epoch {
        cluster.catalog.store().delete(&listed.key).await?;
        told.by("somebody", format!("deletes {}", listed.name));
        newest.get_or_insert(listed.name.to_string());
    }
    let left = cluster.catalog.list().await?.snapshots.into_iter().next();
    Ok((newest.ok_or("nothing to delete")?, left.ok_or("nothing is left")?))
}
