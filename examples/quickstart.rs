//! One instance holds a lease in a directory: `cargo run --example quickstart`, as often as you like.

use lease_core::fencing::FencingGate;
use lease_core::{LeaseManager, machine::FirstStart};
use lease_local::LocalStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    tracing_subscriber::fmt().init(); // whatever is waited for is logged, with how long

    // In the system's directory for temporary files. Instances that share a lease share the
    // store; each has an instance directory of its own, which remembers what it did.
    let dir = std::env::temp_dir().join("holdfast-quickstart");
    std::fs::create_dir_all(&dir)?;
    let lease = LeaseManager::builder(LocalStore::open(dir.join("store"))?, "orders")
        .instance_dir(dir.join("instance"))
        .first_start(FirstStart::Immediate) // the cluster is new: there is no holder to wait for
        .start()
        .await?;

    let storage = FencingGate::new(); // stands for a resource that refuses tokens of the past
    let tenure = lease.acquire().await?; // a standby until the lease is ours
    let fence = tenure.fence();
    tenure
        .run(async |_lost| {
            for line in 1..=3 {
                fence.check()?; // before every side effect: do I still hold it, now?
                storage.admit(fence.epoch())?; // the token travels with the write
                println!("wrote line {line} under epoch {}", fence.epoch());
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        })
        .await?; // released: the next start need not wait
    lease.stop().await;
    Ok(())
}
