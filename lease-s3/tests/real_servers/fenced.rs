//! The schedules of fenced objects on a real server, behind a proxy that delays.

use crate::{
    bucket::Server,
    fresh,
    proxy::Proxy,
    schedule::{self, Network, Sum},
};
use bytes::Bytes;
use lease_core::{LeaseStore as _, ObjectKey, Read};
use lease_s3::{
    S3Store,
    testing::{Fault, Method},
};
use libtest_mimic::Failed;
use std::sync::Arc;
use tokio::task::JoinSet;

/// How many schedules, unless `HA_TEST_FENCED_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 500;
/// How many at once, each behind a proxy of its own.
const AT_ONCE: u64 = 8;

/// A proxy, and the server without it.
struct Delayed {
    proxy: Proxy,
    direct: S3Store,
}

impl Network for Delayed {
    fn next(&self, method: Method, fault: Fault) {
        self.proxy.next(method, fault);
    }

    fn calm(&self) {
        self.proxy.calm();
    }

    async fn bytes(&self, key: &ObjectKey) -> Option<Bytes> {
        match self.direct.read_versioned(key, None).await.unwrap() {
            Read::Found { content, .. } => Some(content),
            Read::Missing => None,
            Read::NotModified => panic!("it was not asked for"),
        }
    }
}

pub(crate) async fn no_stale_write_shows_after_the_seal(server: Server) -> Result<(), Failed> {
    server.create_bucket(&server.bucket).await?;
    let count = std::env::var("HA_TEST_FENCED_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let (count, run) = (count.unwrap_or(SCHEDULES), fresh());
    let server = Arc::new(server);
    let direct = server.options().connect().await?;
    let mut sums = [Sum::default(); 2];
    for (sum, seals) in sums.iter_mut().zip([true, false]) {
        let mut running = JoinSet::new();
        for worker in 0..AT_ONCE {
            let (server, direct) = (Arc::clone(&server), direct.clone());
            running.spawn(async move {
                let proxy = Proxy::start(server.endpoint(), worker).await;
                let store = server.options_through(proxy.endpoint()).connect().await.unwrap();
                let delayed = Delayed { proxy, direct };
                let mut sum = Sum::default();
                for seed in (worker..count).step_by(AT_ONCE as usize) {
                    let key = ObjectKey::new(&format!("fenced-{run:x}/{seals}-{seed}")).unwrap();
                    sum += schedule::run(&delayed, &store, key, seed, seals).await;
                }
                sum
            });
        }
        while let Some(worker) = running.join_next().await {
            *sum += worker.map_err(|error| error.to_string())?;
        }
    }
    let [sealed, unsealed] = sums;
    println!("{}, fenced, with a seal: {sealed:?}", server.name);
    println!("{}, fenced, without:     {unsealed:?}", server.name);
    println!(
        "{}: stale writes visible after the takeover: {} of {count} with a seal, {} of {count} without",
        server.name, sealed.visible, unsealed.visible
    );
    assert_eq!((sealed.visible, sealed.applied[2]), (0, 0));
    assert!(sealed.applied[0] > 0 && sealed.applied[1] > 0 && sealed.arrived[2] > 0, "{sealed:?}");
    assert!(unsealed.visible > 0, "the seal has nothing to do: this proves nothing");
    Ok(())
}
