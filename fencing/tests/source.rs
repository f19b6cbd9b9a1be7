//! Tokens: strictly growing in a process whatever the clock does, and from one process to the next as
//! far as the clocks allow.

use fencing::{
    Clock as _, Epoch, Reading, SystemClock, TokenSource, WallTime,
    source::{COUNTER_BITS, LARGEST, TokensExhausted, clock_floor},
    testing::ManualClock,
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::{cell::Cell, sync::Barrier, time::Duration};

/// How many grants the random test makes, over all its cases.
const GRANTS: u32 = 1_000_000;
const CASES: u32 = 50;

fn clock_at(second: u64) -> ManualClock {
    ManualClock::starting_at(Reading {
        wall: WallTime::from_unix_seconds(second),
        ..Reading::default()
    })
}

fn second_of(token: Epoch) -> u64 {
    token.as_u64() >> COUNTER_BITS
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Stands,
    Passes(u16),
    Jumps(i8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Stands),
        2 => (0..1500_u16).prop_map(Step::Passes),
        1 => any::<i8>().prop_map(Step::Jumps),
    ]
}

#[test]
fn a_million_grants_grow_strictly_whatever_the_clock_does() {
    let granted = Cell::new(0);
    let config = Config { failure_persistence: None, ..Config::with_cases(CASES) };
    let steps = prop::collection::vec((step(), 1..2000_u32), 40);
    let result = TestRunner::new(config).run(&steps, |steps| {
        let clock = clock_at(1_790_000_000);
        let source = TokenSource::with_clock(clock.clone());
        let (mut last, mut of_case) = (None, 0);
        // Over and over, until this case has its part of the million.
        for (step, grants) in steps.iter().cycle() {
            match *step {
                Step::Stands => {}
                Step::Passes(millis) => clock.advance(Duration::from_millis(millis.into())),
                Step::Jumps(seconds) => clock.jump_wall(seconds.into()),
            }
            let now = clock.wall().unix_seconds();
            for _ in 0..*grants {
                let token = source.next().unwrap();
                prop_assert!(Some(token) > last);
                prop_assert!(token.as_u64() <= LARGEST);
                prop_assert!(second_of(token) >= now, "behind the clock");
                last = Some(token);
            }
            of_case += grants;
            if of_case >= GRANTS / CASES {
                break;
            }
        }
        granted.set(granted.get() + of_case);
        Ok(())
    });
    result.unwrap();
    println!("{} grants in {CASES} histories of clock steps, all growing", granted.get());
    assert!(granted.get() >= GRANTS);
}

#[test]
fn a_counter_that_is_full_carries_into_the_next_second() {
    let clock = clock_at(1000);
    let source = TokenSource::with_clock(clock.clone());
    let nearly_full = Epoch::new((1001 << COUNTER_BITS) - 2).unwrap();
    source.advance_past(nearly_full).unwrap();
    let (last, carried) = (source.next().unwrap(), source.next().unwrap());
    assert_eq!((second_of(last), second_of(carried)), (1000, 1001));
    assert_eq!(source.lead(), Duration::from_secs(1), "ahead of the clock, and says so");
    clock.advance(Duration::from_secs(1));
    assert_eq!(source.lead(), Duration::ZERO);
    assert_eq!(source.next().unwrap().as_u64(), carried.as_u64() + 1, "within that second still");
}

#[test]
fn a_wall_clock_that_stands_or_steps_back_does_not_matter() {
    let clock = clock_at(1000);
    let source = TokenSource::with_clock(clock.clone());
    let first = source.next().unwrap();
    assert_eq!(first, clock_floor(clock.wall()));
    clock.jump_wall(-1000);
    let second = source.next().unwrap();
    assert_eq!(second.as_u64(), first.as_u64() + 1);
    assert_eq!(source.lead(), Duration::from_secs(1000));
    // In the very first second of 1970 the first token is 1: zero is none.
    assert_eq!(TokenSource::with_clock(clock_at(0)).next().unwrap(), Epoch::MIN);
}

#[test]
fn the_next_process_grants_larger_ones_a_second_later_however_old_it_is() {
    let clock = clock_at(1000);
    let standby = TokenSource::with_clock(clock.clone()); // runs for months, grants nothing
    let active = TokenSource::with_clock(clock.clone());
    clock.advance(Duration::from_secs(90 * 24 * 3600));
    let last = (0..5000).map(|_| active.next().unwrap()).last().unwrap();
    clock.advance(Duration::from_secs(1));
    standby.after(last).unwrap();
    assert!(standby.next().unwrap() > last);
}

#[test]
fn a_new_process_a_second_behind_breaks_the_order_and_after_reports_it() {
    let clock = clock_at(1000);
    let old = TokenSource::with_clock(clock.clone());
    let seen = old.next().unwrap();

    // The failover took no time, and the other machine's clock is a second behind.
    let behind = ManualClock::starting_at(Reading { wall: clock.wall(), ..Reading::default() });
    behind.jump_wall(-1);
    let new = TokenSource::with_clock(behind.clone());
    assert!(new.next().unwrap() < seen, "the order is broken");

    let new = TokenSource::with_clock(behind.clone());
    let told = new.after(seen).unwrap_err();
    assert_eq!((told.seen, told.by), (seen, Duration::from_secs(2)));
    assert!(told.to_string().contains("2s short of the second after token"), "{told}");
    // The same second is not enough: the old process may have granted more within it.
    behind.advance(Duration::from_millis(1_999));
    assert_eq!(new.after(seen).unwrap_err().by, Duration::from_millis(1));
    behind.advance(Duration::from_millis(1));
    new.after(seen).unwrap();
    assert!(new.next().unwrap() > seen);
    // A clock that is set back between that answer and a grant does not matter any more.
    let new = TokenSource::with_clock(behind.clone());
    new.after(seen).unwrap();
    behind.jump_wall(-500);
    assert!(new.next().unwrap() > seen);
}

#[test]
fn a_source_waits_until_the_clock_is_past_what_was_seen() {
    let clock = SystemClock::new();
    let source = TokenSource::new();
    let seen = clock_floor(clock.wall());
    let began = clock.monotonic();
    source.wait_after(seen, Duration::from_secs(10)).unwrap();
    assert!(began.until(clock.monotonic()) < Duration::from_secs(10));
    assert!(clock.wall().unix_seconds() > second_of(seen));
    assert!(source.next().unwrap() > seen);

    // A wait that is longer than the limit is not begun.
    let tomorrow = clock_floor(clock.wall() + Duration::from_secs(24 * 3600));
    let told = source.wait_after(tomorrow, Duration::from_secs(10)).unwrap_err();
    assert!(told.by > Duration::from_secs(23 * 3600), "{told}");
}

#[test]
fn no_token_is_granted_above_what_javascript_can_tell() {
    let last_second = u64::from(u32::MAX);
    assert_eq!(second_of(clock_floor(WallTime::MAX)), last_second);
    let source = TokenSource::with_clock(clock_at(last_second));
    let first = source.next().unwrap();
    assert_eq!(second_of(first), last_second);
    source.advance_past(Epoch::new(LARGEST - 1).unwrap()).unwrap();
    assert_eq!(source.next().unwrap().as_u64(), LARGEST);
    assert_eq!(source.next(), Err(TokensExhausted));
    assert_eq!(source.next(), Err(TokensExhausted), "and it stays so");

    // A clock that is wrong by centuries grants nothing that nobody could ever follow.
    let wrong = TokenSource::with_clock(clock_at(last_second + 1));
    assert_eq!(wrong.next(), Err(TokensExhausted));
    let unchanged = TokenSource::with_clock(clock_at(1000));
    assert_eq!(unchanged.advance_past(Epoch::MAX), Err(TokensExhausted));
    assert_eq!(second_of(unchanged.next().unwrap()), 1000);
    assert!(unchanged.after(Epoch::MAX).unwrap_err().by > Duration::from_secs(3600 * 24 * 365));
}

#[test]
fn two_threads_are_never_granted_one_token() {
    const EACH: usize = 500_000;
    let (source, barrier) = (TokenSource::new(), Barrier::new(2));
    let grant = || {
        barrier.wait();
        let tokens: Vec<u64> = (0..EACH).map(|_| source.next().unwrap().as_u64()).collect();
        assert!(tokens.is_sorted_by(|a, b| a < b), "each thread sees them grow");
        tokens
    };
    let (mut tokens, others) = std::thread::scope(|scope| {
        let threads = [scope.spawn(grant), scope.spawn(grant)];
        let [a, b] = threads.map(|thread| thread.join().unwrap());
        (a, b)
    });
    tokens.extend(others);
    tokens.sort_unstable();
    tokens.dedup();
    println!("{} grants by 2 threads, {} of them equal", 2 * EACH, 2 * EACH - tokens.len());
    assert_eq!(tokens.len(), 2 * EACH);
}
