//! What holds of the statements on any database.

use crate::table::{Row, Server, column, epoch, statement};
use fencing::{
    Epoch,
    testing::gates::{Step, compare},
};
use libtest_mimic::Trial;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use std::sync::{
    Barrier,
    atomic::{AtomicU64, Ordering::SeqCst},
};

const WRITERS: usize = 8;
const WRITES: usize = 250;

pub(crate) fn add_trials(trials: &mut Vec<Trial>, database: &str, server: Option<Server>) {
    type Test = fn(&Server);
    let tests: [(&str, Test); 5] = [
        ("the_statements_are_the_model", is_the_model),
        ("case_46_numbers_are_compared_and_ties_pass", case_46_numbers_are_compared_and_ties_pass),
        ("eight_racing_writers_never_take_the_mark_back", race),
        ("a_transaction_that_was_let_in_ends_before_a_larger_token_is_raised", transactions),
        ("a_check_before_the_write_would_let_a_stale_one_in", check_then_write),
    ];
    for (name, test) in tests {
        let (is_absent, server) = (server.is_none(), server.clone());
        let body = move || {
            test(&server.unwrap());
            Ok(())
        };
        trials.push(Trial::test(format!("{database}::{name}"), body).with_ignored_flag(is_absent));
    }
}

/// A row that no other test has.
fn row(server: &Server) -> Row {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, SeqCst));
    Row { id, connection: server() }
}

fn is_the_model(server: &Server) {
    let config = Config { failure_persistence: None, ..Config::with_cases(64) };
    let steps = prop::collection::vec(any::<(u8, u8)>().prop_map(Step::from), 1..30);
    let run = |steps: Vec<Step>| compare(&steps, &mut row(server)).map_err(TestCaseError::fail);
    let found = TestRunner::new(config).run(&steps, run);
    assert_eq!(found.map_err(|error| error.to_string()), Ok(()));
}

fn case_46_numbers_are_compared_and_ties_pass(server: &Server) {
    let mut row = row(server);
    let mut pass = |token: i64| row.pass("write", token, Some("x")).unwrap();
    pass(9).unwrap();
    pass(10).unwrap();
    pass(10).unwrap();
    let stale = pass(9).unwrap_err();
    assert_eq!((stale.presented, stale.highest), (epoch(9), epoch(10)));
    pass((1 << 53) + 1).unwrap();
    pass(1 << 53).unwrap_err();
    pass(i64::MAX).unwrap();
    // A raise keeps what is written, and a NULL stands for what was deleted.
    row.pass("raise", i64::MAX, None).unwrap().unwrap();
    assert_eq!(row.connection.row(&row.id).unwrap(), Some((i64::MAX, Some("x".to_owned()))));
    row.pass("write", i64::MAX, None).unwrap().unwrap();
    assert_eq!(row.connection.row(&row.id).unwrap(), Some((i64::MAX, None)));
}

/// Eight connections, random tokens around a mark that grows. The table itself notes every change, in
/// its order.
fn race(server: &Server) {
    let first = row(server);
    let (barrier, written) = (Barrier::new(WRITERS), AtomicU64::new(0));
    let writer = |seed: usize| {
        let mut rng = fastrand::Rng::with_seed(seed as u64);
        let mut row = Row { id: first.id.clone(), connection: server() };
        let (mut admitted, mut largest) = (0, 0);
        barrier.wait();
        for _ in 0..WRITES {
            let around = i64::try_from(written.fetch_add(1, SeqCst)).unwrap() / 4;
            let token = 1 + around + rng.i64(0..16);
            let (name, body) = match rng.u8(0..4) {
                0 => ("raise", None),
                _ => ("write", Some(format!("of {token}"))),
            };
            if row.pass(name, token, body.as_deref()).unwrap().is_ok() {
                admitted += 1;
                largest = largest.max(token);
            }
        }
        (admitted, largest)
    };
    let results: Vec<(usize, i64)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..WRITERS).map(|seed| scope.spawn(move || writer(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let admitted: usize = results.iter().map(|(admitted, _)| admitted).sum();
    let largest = results.iter().map(|(_, largest)| *largest).max();

    let mut connection = server();
    let audit = connection.audit(&first.id).unwrap();
    let (mark, body) = connection.row(&first.id).unwrap().unwrap();
    println!(
        "{WRITERS} writers, {} writes: {admitted} admitted, {} stale; the mark went back 0 times in {} changes",
        WRITERS * WRITES,
        WRITERS * WRITES - admitted,
        audit.len()
    );
    assert!(audit.is_sorted(), "the mark went back");
    assert_eq!(
        (audit.len(), audit.last()),
        (admitted, Some(&mark)),
        "each admission is one change"
    );
    assert_eq!(largest, Some(mark));
    if let Some(of) = body.as_deref().and_then(|body| body.strip_prefix("of ")) {
        assert!(of.parse::<i64>().unwrap() <= mark);
    }
    assert!(admitted > 100 && admitted < WRITERS * WRITES, "nobody was stale: it proves nothing");
}

/// The first statement of a transaction raises the row that stands for all that the transaction writes.
fn transactions(server: &Server) {
    let (mut old, mut new) = (row(server), row(server));
    new.id.clone_from(&old.id);
    old.connection.begin().unwrap();
    old.pass("raise", 7, None).unwrap().unwrap();
    new.connection.wait_no_longer_than_100_ms().unwrap();
    new.pass("raise", 8, None).expect_err("it waits for who was let in, and gives up here");
    let other = format!("{}-other", old.id);
    old.connection.change(statement("write"), &other, 7, Some("of 7")).unwrap();
    old.connection.run("COMMIT").unwrap();

    new.pass("raise", 8, None).unwrap().unwrap();
    old.connection.begin().unwrap();
    assert!(old.pass("raise", 7, None).unwrap().is_err());
    old.connection.run("ROLLBACK").unwrap();
    assert_eq!(new.connection.audit(&old.id).unwrap(), [7, 8]);
    assert_eq!(new.connection.row(&other).unwrap(), Some((7, Some("of 7".to_owned()))));
}

/// The counterpart, step by step: two statements, and somebody between them.
fn check_then_write(server: &Server) {
    let (mut old, mut new) = (row(server), row(server));
    new.id.clone_from(&old.id);
    old.pass("write", 7, Some("of 7")).unwrap().unwrap();
    let (seen, _) = old.connection.row(&old.id).unwrap().unwrap();
    assert!(seen <= 7, "the check passes");
    new.pass("raise", 8, None).unwrap().unwrap();
    // SQLite numbers `$1` by where it first stands.
    let unconditional = "UPDATE report SET id = $1, epoch = $2, body = $3 WHERE id = $1";
    old.connection.change(unconditional, &old.id, 7, Some("stale")).unwrap();
    let shown = new.connection.row(&new.id).unwrap();
    assert_eq!(shown, Some((7, Some("stale".to_owned()))), "and the mark goes back");
    // The audit of the race would have seen it.
    assert!(!new.connection.audit(&new.id).unwrap().is_sorted());
}

pub(crate) fn tokens_fit_or_are_refused() {
    assert_eq!(column(Epoch::new(i64::MAX as u64).unwrap()).unwrap(), i64::MAX);
    for above in [1 << 63, u64::MAX] {
        column(Epoch::new(above).unwrap()).unwrap_err();
    }
}

/// The example and the document say the same.
pub(crate) fn the_example_has_the_statements_of_the_document() {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let example = words(include_str!("../../fenced_sql.rs"));
    for name in ["schema", "write", "raise"] {
        let statement = words(statement(name));
        assert!(example.contains(&format!("\"{statement}\";")), "no {name}: {statement}");
    }
}
