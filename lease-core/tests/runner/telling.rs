//! Status, events and logs: what a person is told, and what nobody may be told.

use crate::rig::{R, Rig, T};
use lease_core::{
    auth::ClusterSecret,
    fencing::Clock as _,
    machine::{Event, Role, WaitReason},
    runner::Delivery,
};
use std::{
    io::Write,
    sync::{Arc, Mutex},
};
use tokio::time::sleep;
use tracing_subscriber::fmt::MakeWriter;

#[tokio::test(start_paused = true)]
async fn whatever_is_waited_for_is_told_with_its_length() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut status = lease.status();
    let acquiring = lease.acquire();
    let watching = async {
        let held_back = |status: &lease_core::runner::Status| {
            status.waiting.is_some_and(|waiting| waiting.reason == WaitReason::HeldBack)
        };
        status.wait_for(held_back).await.unwrap().clone()
    };
    let (tenure, seen) = tokio::join!(acquiring, watching);
    let waiting = seen.waiting.unwrap();
    let sentence = seen.sentence(waiting.until.unwrap() - T);
    assert!(sentence.contains("another") || sentence.contains("holder"), "{sentence}");
    assert!(sentence.contains("10.0s"), "{sentence}");
    let status = lease.status().borrow().clone();
    assert_eq!((status.role, status.waiting), (Role::Active, None));
    assert_eq!(status.epoch, Some(tenure.unwrap().epoch()));
    assert!(status.time_to_deadline(rig.clock.monotonic()) > R);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_told_how_many_events_it_missed() {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    sleep(R * 1000).await;
    let mut seen = 0;
    let mut missed = 0;
    drop((tenure, lease));
    while let Some(delivery) = events.next().await {
        match delivery {
            Delivery::Missed(count) => missed += count,
            Delivery::Event(_) => seen += 1,
        }
    }
    assert!(missed >= 700, "missed {missed}, saw {seen}");
    assert!((200..=256).contains(&seen), "saw {seen}");
}

/// What 100 renew intervals of a holder and a standby cost: replaces and reads, and nothing else.
async fn cost_of_a_hundred(phase_lock: bool) -> (u64, u64) {
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let standby = rig.builder().phase_lock(phase_lock).start().await.unwrap();
    sleep(R / 2).await;
    let before = rig.memory.requests();
    sleep(R * 100).await;
    let spent = rig.memory.requests().since(before);
    assert_eq!(spent.total(), spent.replaces + spent.reads, "{spent:?}");
    assert_eq!(spent.refused, 0, "{spent:?}");
    drop((tenure, standby));
    (spent.replaces, spent.reads)
}

#[tokio::test(start_paused = true)]
async fn a_renewal_is_one_replace_and_a_poll_is_one_read() {
    assert_eq!(cost_of_a_hundred(false).await, (100, 100));
}

#[tokio::test(start_paused = true)]
async fn the_phase_lock_costs_at_most_a_tenth_more_requests_and_is_told() {
    let (replaces, reads) = cost_of_a_hundred(true).await;
    assert_eq!(replaces, 100);
    assert!((100..=110).contains(&reads), "{reads} reads");
    let rig = Rig::new();
    let lease = rig.builder().start().await.unwrap();
    let tenure = lease.acquire().await.unwrap();
    let standby = rig.builder().start().await.unwrap();
    let mut status = standby.status();
    let locked = status.wait_for(|status| status.phase.is_some_and(|phase| phase <= R / 10));
    let found = tokio::time::timeout(R * 24, locked).await.expect("no phase was found").unwrap();
    assert!(found.sentence(rig.clock.monotonic()).contains("behind its renewals"));
    drop(found);
    drop(tenure);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test(start_paused = true)]
async fn logs_tell_every_transition_and_no_secret() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .with_ansi(false)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let rig = Rig::new();
    let text = "correct horse battery staple, and then some";
    let builder = rig.builder().secret(ClusterSecret::new(text.as_bytes()).unwrap());
    let debug = format!("{builder:?}");
    let lease = builder.start().await.unwrap();
    let mut events = lease.events();
    let tenure = lease.acquire().await.unwrap();
    let epoch = tenure.epoch();
    tenure.release().await;
    lease.stop().await;
    let mut told = Vec::new();
    while let Some(Delivery::Event(event)) = events.next().await {
        told.push(event);
    }
    assert!(told.iter().any(|event| matches!(event, Event::Active { .. })));

    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    for words in ["taking over", "active", "waiting for", "the tenure ended: released"] {
        assert!(logged.contains(words), "no {words:?} in:\n{logged}");
    }
    assert!(logged.contains("cluster=orders") && logged.contains(&epoch.to_string()), "{logged}");
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    for secret in [text, &hex] {
        assert!(!logged.contains(secret) && !debug.contains(secret));
        assert!(!format!("{lease:?} {told:?}").contains(secret));
    }
}
