//! The swap is made only by whoever may, to a database that is closed.

use crate::{
    place::{DATABASE, Place, content, epoch, verified},
    support::test,
};
use libtest_mimic::Trial;
use snapshot_format::{
    fencing::{Clock, FenceControl, MonotonicTime, ShutReason, WallTime, testing::ManualClock},
    install::{InstallError, Permit},
};
use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        test("an_active_instance_swaps_only_through_an_open_fence", active),
        test("a_takeover_swaps_before_its_fence_opens_but_not_after_it_is_lost", taking_over),
        test("the_fence_is_looked_at_right_before_the_rename", right_before),
        test("a_database_with_a_side_file_is_not_replaced", side_files),
        test("a_side_file_that_appears_meanwhile_is_seen_before_the_rename", side_file_appears),
        test("a_lock_file_that_is_removed_stops_the_swap", lock_lost),
        test("a_process_that_holds_the_place_keeps_others_out", busy),
    ]
}

/// A fence, open for `window`.
fn open(clock: impl Clock, window: Duration) -> FenceControl {
    let clock = Arc::new(clock);
    let mut control = FenceControl::new(epoch(), clock.clone());
    control.open(clock.reading(), window).unwrap();
    control
}

fn refused(place: &Place, permit: Permit) -> ShutReason {
    let database = place.settled();
    let error = verified(&database, &content("new")).install(permit, None).unwrap_err();
    assert!(error.left_it_as_it_was());
    assert_eq!(place.read(DATABASE), Some(content("old")));
    assert_eq!(place.names(), [DATABASE], "nothing is left of it");
    let InstallError::FenceShut(shut) = error else { panic!("{error}") };
    shut.reason
}

fn active() {
    let (clock, second) = (ManualClock::new(), Duration::from_secs(1));
    let place = Place::with_database();
    let not_open = FenceControl::new(epoch(), Arc::new(clock.clone()));
    assert_eq!(refused(&place, Permit::Active(not_open.fence())), ShutReason::NotOpen);
    let control = open(clock.clone(), second);
    clock.advance(second);
    assert_eq!(refused(&place, Permit::Active(control.fence())), ShutReason::Expired);

    let control = open(clock, second);
    let database = place.settled();
    verified(&database, &content("new")).install(Permit::Active(control.fence()), None).unwrap();
    assert_eq!(place.read(DATABASE), Some(content("new")));
    assert_eq!(database.backups().unwrap()[0].epoch, epoch());
}

fn taking_over() {
    let place = Place::with_database();
    let mut control = FenceControl::new(epoch(), Arc::new(ManualClock::new()));
    let fence = control.fence();
    control.shut();
    assert_eq!(refused(&place, Permit::TakingOver(fence)), ShutReason::Closed);

    let control = FenceControl::new(epoch(), Arc::new(ManualClock::new()));
    let database = place.settled();
    let permit = Permit::TakingOver(control.fence());
    verified(&database, &content("new")).install(permit, None).unwrap();
    assert_eq!(place.read(DATABASE), Some(content("new")));
}

/// A clock on which a second passes with each look at it.
#[derive(Clone, Debug, Default)]
struct Ticking(Arc<AtomicU64>);

impl Clock for Ticking {
    fn monotonic(&self) -> MonotonicTime {
        MonotonicTime::from_nanos(self.0.fetch_add(1_000_000_000, Ordering::SeqCst))
    }

    fn wall(&self) -> WallTime {
        WallTime::default()
    }
}

fn right_before() {
    let place = Place::with_database();
    // One look finds it open, the next one past its deadline.
    let clock = Ticking::default();
    let control = open(clock.clone(), Duration::from_millis(2500));
    let looks = clock.0.load(Ordering::SeqCst);
    assert_eq!(refused(&place, Permit::Active(control.fence())), ShutReason::Expired);
    assert_eq!(clock.0.load(Ordering::SeqCst) - looks, 2_000_000_000, "first, and last");
}

fn side_files() {
    for (suffix, bytes) in [("-wal", "frames"), ("-wal", ""), ("-shm", ""), ("-journal", "pages")] {
        let place = Place::with_database();
        let database = place.settled();
        let side_file = format!("{DATABASE}{suffix}");
        place.write(&side_file, bytes.as_bytes());
        let ready = verified(&database, &content("new"));
        let error = ready.install(Permit::Unfenced(epoch()), None).unwrap_err();
        assert!(error.left_it_as_it_was());
        assert!(error.to_string().contains("wal_checkpoint(TRUNCATE)"), "{error}");
        let InstallError::SideFile { path, size } = error else { panic!("{error}") };
        assert_eq!((path, size), (place.file(&side_file), bytes.len() as u64));
        assert_eq!(place.read(DATABASE), Some(content("old")));
        assert_eq!(place.names(), [DATABASE, &side_file]);

        drop(database);
        place.options().settle().unwrap();
        assert_eq!(place.read(&side_file), Some(bytes.into()), "a crashed database needs it");
    }
}

/// A clock whose reader opens the database: it is read when the backup gets its name.
#[derive(Debug)]
struct Opens(PathBuf);

impl Clock for Opens {
    fn monotonic(&self) -> MonotonicTime {
        MonotonicTime::default()
    }

    fn wall(&self) -> WallTime {
        fs::write(&self.0, b"frames").unwrap();
        WallTime::default()
    }
}

fn side_file_appears() {
    let place = Place::with_database();
    let side_file = format!("{DATABASE}-wal");
    let clock = Opens(place.file(&side_file));
    let (database, _) = place.options().clock(clock).settle().unwrap();
    let ready = verified(&database, &content("new"));
    let error = ready.install(Permit::Unfenced(epoch()), None).unwrap_err();
    assert!(matches!(error, InstallError::SideFile { .. }), "{error}");
    assert_eq!(place.read(DATABASE), Some(content("old")));
    assert_eq!(place.names(), [DATABASE, &side_file]);
}

fn lock_lost() {
    let place = Place::with_database();
    let database = place.settled();
    let ready = verified(&database, &content("new"));
    fs::remove_file(place.file("app.db.replace.lock")).unwrap();
    let error = ready.install(Permit::Unfenced(epoch()), None).unwrap_err();
    assert!(matches!(error, InstallError::LockLost { .. }), "{error}");
    assert_eq!(place.names(), [DATABASE]);
}

fn busy() {
    let place = Place::with_database();
    let database = place.settled();
    let error = place.options().settle().unwrap_err();
    assert!(error.to_string().contains("is held by another process"), "{error}");
    let ready = verified(&database, &content("new"));
    drop(database);
    place.options().settle().unwrap_err();
    drop(ready);
    place.options().settle().unwrap();
}
