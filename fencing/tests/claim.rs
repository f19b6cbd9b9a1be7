//! The client's side of a lock on some other server.
#![expect(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

use fencing::{Claim, Clock as _, Epoch, ShutReason, claim::Terms, testing::ManualClock};
use std::{sync::Arc, time::Duration};

const LEASE: Duration = Duration::from_secs(10);
const TICK: Duration = Duration::from_nanos(1);

fn granted(terms: Terms) -> (ManualClock, Claim) {
    let clock = ManualClock::new();
    let sent = clock.reading();
    (clock.clone(), Claim::granted(terms, Epoch::MIN, sent, Arc::new(clock)).unwrap())
}

#[test]
fn silence_of_0_8_of_the_lease_abandons_at_that_very_instant() {
    let (clock, claim) = granted(Terms::new(LEASE).unwrap());
    let fence = claim.fence();
    clock.advance(Duration::from_secs(8) - TICK);
    fence.check().unwrap();
    clock.advance(TICK);
    assert_eq!(fence.check().unwrap_err().reason, ShutReason::Expired);
}

#[test]
fn a_confirmation_counts_from_when_it_was_sent() {
    let (clock, mut claim) = granted(Terms::new(LEASE).unwrap());
    let fence = claim.fence();
    clock.advance(Duration::from_secs(3));
    let sent = clock.reading();
    clock.advance(Duration::from_secs(4)); // the answer takes its time
    claim.confirmed(sent).unwrap();
    assert_eq!(fence.remaining(), Duration::from_secs(4));
    // An older one that is answered later changes nothing.
    claim.confirmed(fencing::Reading::default()).unwrap();
    assert_eq!(fence.remaining(), Duration::from_secs(4));
}

#[test]
fn an_answer_that_comes_too_late_revives_nothing() {
    let (clock, mut claim) = granted(Terms::new(LEASE).unwrap());
    let sent = clock.reading();
    clock.advance(Duration::from_secs(8));
    claim.confirmed(sent).unwrap_err();
    claim.confirmed(clock.reading()).unwrap_err();
    assert!(!claim.fence().is_open());

    let clock = ManualClock::new();
    let sent = clock.reading();
    clock.advance(Duration::from_secs(8));
    let terms = Terms::new(LEASE).unwrap();
    Claim::granted(terms, Epoch::MIN, sent, Arc::new(clock)).unwrap_err();
}

#[test]
fn a_suspend_abandons_and_so_does_a_drop() {
    let (clock, claim) = granted(Terms::new(LEASE).unwrap());
    clock.suspend(Duration::from_secs(8), Duration::ZERO);
    assert_eq!(claim.fence().check().unwrap_err().reason, ShutReason::Suspended);

    let (_clock, mut claim) = granted(Terms::new(LEASE).unwrap());
    let fence = claim.fence();
    claim.abandon();
    assert_eq!(fence.check().unwrap_err().reason, ShutReason::Closed);

    let (_clock, claim) = granted(Terms::new(LEASE).unwrap());
    let fence = claim.fence();
    drop(claim);
    assert_eq!(fence.check().unwrap_err().reason, ShutReason::Closed);
}

#[test]
fn the_fraction_is_a_parameter_and_keeps_a_fifth() {
    let terms = Terms::new(LEASE).unwrap();
    let (clock, claim) = granted(terms.with_fraction(500).unwrap());
    clock.advance(Duration::from_secs(5) - TICK);
    claim.fence().check().unwrap();
    clock.advance(TICK);
    claim.fence().check().unwrap_err();

    for per_mille in [0, 801, 1000, u16::MAX] {
        let error = terms.with_fraction(per_mille).unwrap_err().to_string();
        assert!(error.contains("10s") && error.contains(&per_mille.to_string()), "{error}");
    }
    for lease in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        Terms::new(lease).unwrap_err();
    }
    let year = Terms::new(Duration::from_secs(365 * 24 * 3600)).unwrap();
    assert_eq!(year.window(), Duration::from_secs(365 * 24 * 3600) / 5 * 4);
}
