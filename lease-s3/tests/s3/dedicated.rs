//! Renewals on a thread of their own, with the server on another thread still.

use crate::{
    lease::{R, T, builder},
    rig::server_elsewhere,
};
use lease_core::fencing::{Clock as _, SystemClock};
use libtest_mimic::{Failed, Trial};
use std::{sync::mpsc, time::Duration};

pub(crate) fn trials() -> Vec<Trial> {
    let name = "dedicated::a_dedicated_thread_renews_while_the_service_blocks";
    vec![Trial::test(name, a_dedicated_thread_renews_while_the_service_blocks)]
}

/// The service has one thread, which also drove the connections of the probe, and blocks it for
/// longer than T.
fn a_dedicated_thread_renews_while_the_service_blocks() -> Result<(), Failed> {
    let server = server_elsewhere();
    let service = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    service.block_on(async {
        let store = server.options("p").connect().await?;
        let lease = builder(store).dedicated_thread().start().await?;
        let tenure = lease.acquire().await?;
        let fence = tenure.fence();
        let _before = server.take_requests();
        let (clock, (_nobody, never)) = (SystemClock::new(), mpsc::channel::<()>());
        let began = clock.monotonic();
        while began.until(clock.monotonic()) < T * 2 {
            fence.check()?;
            // Blocks the thread, as a service should not.
            let _ = never.recv_timeout(Duration::from_millis(10));
        }
        let renewals = server.take_requests().put;
        assert!(renewals >= 5, "{renewals} renewals in {:?}, R is {R:?}", T * 2);
        Ok(())
    })
}
