//! Fenced objects on the server in this process.

use crate::{
    connected, key,
    resource::{Fenced, matches_the_model},
    schedule::{self, Network, Sum},
    trials,
};
use bytes::Bytes;
use lease_core::{
    LeaseStore as _, ObjectKey, StoreErrorKind,
    fenced::{FencedError, FencedObject},
    fencing::Epoch,
    store::MAX_OBJECT_BYTES,
};
use lease_s3::testing::{Fault, Method, Quirk, TestServer};
use libtest_mimic::Trial;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::task::JoinSet;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = trials![
        the_limit_of_what_is_read_is_an_option,
        a_store_without_conditions_fences_nothing_and_says_so,
        no_stale_write_shows_after_the_seal,
    ];
    trials.push(Trial::test("fenced::a_fenced_object_in_a_bucket_is_the_model", || {
        is_the_model();
        Ok(())
    }));
    trials
}

fn is_the_model() {
    let server = Arc::new(tokio::runtime::Runtime::new().unwrap());
    let (kept, store) = server.block_on(async {
        let server = TestServer::start().await.unwrap();
        let store = server.options("p").connect().await.unwrap();
        (server, store)
    });
    let mut fresh = 0;
    matches_the_model(24, || {
        fresh += 1;
        Fenced::new(store.clone(), &format!("orders/balance-{fresh}"))
    });
    drop(kept);
}

async fn the_limit_of_what_is_read_is_an_option() {
    let (server, ordinary) = connected().await;
    let limit = 1 << 20;
    let store = server.options("p").max_object_bytes(limit).connect().await.unwrap();
    assert_eq!((store.max_object_bytes(), ordinary.max_object_bytes()), (limit, MAX_OBJECT_BYTES));
    let object = FencedObject::new(store, key());
    let content = vec![b'x'; limit - 256];
    object.put(Epoch::MIN, content.clone()).await.unwrap();
    let sealed = object.seal(Epoch::MAX).await.unwrap();
    assert_eq!(sealed.content.unwrap(), content);
    assert_eq!(object.read().await.unwrap().unwrap().content.unwrap(), content);
    // One that was connected as ever reads no more than ever.
    let read = ordinary.read_versioned(&key(), None).await.unwrap_err();
    assert_eq!(read.kind(), StoreErrorKind::Corrupt);
    let refused = FencedObject::new(ordinary, key()).seal(Epoch::MAX).await.unwrap_err();
    assert!(matches!(refused, FencedError::TooLarge { .. }), "{refused}");
    // Whatever the limit, there is one.
    server.next(Method::GET, Fault::EndlessBody);
    let endless = object.read().await.unwrap_err();
    assert!(matches!(endless, FencedError::TooLarge { .. }), "{endless}");
}

async fn a_store_without_conditions_fences_nothing_and_says_so() {
    let (server, store) = connected().await;
    // It passed its probe, and then somebody put something else in its place.
    server.set_quirks(&[Quirk::NotImplemented(501)]);
    let error = FencedObject::new(store, key()).put(Epoch::MIN, "x").await.unwrap_err();
    assert!(matches!(error, FencedError::Unsupported { .. }), "{error}");
    assert_eq!(server.content("p/orders/lease.json"), None);
}

/// A server whose faults are of one schedule.
struct Scripted {
    server: TestServer,
    faults: Arc<Mutex<VecDeque<(Method, Fault)>>>,
}

impl Scripted {
    async fn start() -> Self {
        let server = TestServer::start().await.unwrap();
        let faults = Arc::<Mutex<VecDeque<(Method, Fault)>>>::default();
        let next = Arc::clone(&faults);
        server.choose(move |seen| {
            let mut next = next.lock().unwrap();
            let index = next.iter().position(|(method, _)| *method == seen.method)?;
            next.remove(index).map(|(_, fault)| fault)
        });
        Self { server, faults }
    }
}

impl Network for Scripted {
    fn next(&self, method: Method, fault: Fault) {
        self.faults.lock().unwrap().push_back((method, fault));
    }

    fn calm(&self) {
        self.faults.lock().unwrap().clear();
    }

    async fn bytes(&self, key: &ObjectKey) -> Option<Bytes> {
        self.server.content(&format!("p/{key}"))
    }
}

/// How many schedules, unless `HA_TEST_FENCED_SCHEDULES` says otherwise (`.ci/run` says 10 000).
const SCHEDULES: u64 = 500;
/// How many at once, each with a server of its own: faults are met in the order of requests.
const AT_ONCE: u64 = 4;

async fn no_stale_write_shows_after_the_seal() {
    let count = std::env::var("HA_TEST_FENCED_SCHEDULES").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(SCHEDULES);
    let mut sums = [Sum::default(); 2];
    for (sum, seals) in sums.iter_mut().zip([true, false]) {
        let mut running = JoinSet::new();
        for worker in 0..AT_ONCE {
            running.spawn(async move {
                let scripted = Scripted::start().await;
                let store = scripted.server.options("p").connect().await.unwrap();
                let mut sum = Sum::default();
                for seed in (worker..count).step_by(AT_ONCE as usize) {
                    let key = ObjectKey::new(&format!("seed-{seed}")).unwrap();
                    sum += schedule::run(&scripted, &store, key, seed, seals).await;
                    scripted.server.remove_by_hand(&format!("p/seed-{seed}"));
                }
                sum
            });
        }
        while let Some(worker) = running.join_next().await {
            *sum += worker.unwrap();
        }
    }
    let [sealed, unsealed] = sums;
    println!("with a seal: {sealed:?}");
    println!("without:     {unsealed:?}");
    println!(
        "stale writes visible after the takeover: {} of {count} with a seal, {} of {count} without",
        sealed.visible, unsealed.visible
    );
    assert_eq!((sealed.visible, sealed.applied[2]), (0, 0));
    assert!(sealed.applied[0] > 0 && sealed.applied[1] > 0 && sealed.arrived[2] > 0, "{sealed:?}");
    assert!(unsealed.visible > 0, "the seal has nothing to do: this proves nothing");
}
