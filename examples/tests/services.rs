//! The examples that are services: two processes of each, one of which is killed or stopped.

#![expect(
    clippy::panic,
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod program;

use fencing::{Clock as _, Epoch, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Stdio},
    sync::mpsc,
    time::Duration,
};

/// Everything awaited comes sooner, however busy the machine is.
const LIMIT: Duration = Duration::from_secs(60);

/// A running example, and the lines it prints. Killed when dropped.
struct Program {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Program {
    fn start(example: &str, dir: &Path, name: &str, args: &[&str]) -> Self {
        let mut command = program::example(example);
        command.arg("--dir").arg(dir).args(["--name", name]).args(args);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                // The test may have ended.
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(LIMIT).unwrap()
    }

    fn terminate(&self) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
    }

    /// It ends by itself, without an error. What it printed until then.
    fn ends_well(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let end = loop {
            match self.lines.recv_timeout(LIMIT) {
                Ok(line) => lines.push(line),
                Err(end) => break end,
            }
        };
        assert_eq!(end, mpsc::RecvTimeoutError::Disconnected);
        assert!(self.child.wait().unwrap().success());
        lines
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Who ran each period, under which epoch.
#[derive(Default)]
struct Runs(BTreeMap<u64, (String, Epoch)>);

impl Runs {
    fn add(&mut self, line: &str) {
        let words: Vec<_> = line.split(' ').collect();
        let [name, "ran", "period", period, "under", "epoch", epoch] = words[..] else {
            panic!("{line}")
        };
        let epoch = Epoch::new(epoch.parse().unwrap()).unwrap();
        let before = self.0.insert(period.parse().unwrap(), (name.to_owned(), epoch));
        assert_eq!(before, None, "it ran twice: {line}");
    }

    /// Takes in what `program` says, until it has run so many more.
    fn listen(&mut self, program: &Program, count: u32) {
        for _ in 0..count {
            self.add(&program.line());
        }
    }

    /// The names in the order in which they ran, one for each epoch.
    fn tenures(&self) -> Vec<&str> {
        let mut tenures: Vec<(&str, Epoch)> = Vec::new();
        for (name, epoch) in self.0.values() {
            match tenures.last() {
                Some((last, at)) if at == epoch => assert_eq!(last, name),
                Some((_, at)) if at > epoch => panic!("epoch {epoch} after {at}"),
                _ => tenures.push((name, *epoch)),
            }
        }
        tenures.into_iter().map(|(name, _)| name).collect()
    }
}

#[test]
fn a_singleton_job_runs_once_and_goes_on_elsewhere_when_its_replica_is_killed_or_stopped() {
    let scratch = tempfile::tempdir().unwrap();
    let start = |name| Program::start("singleton_job", scratch.path(), name, &["--every", "100"]);
    let mut runs = Runs::default();

    let mut a = start("a");
    runs.listen(&a, 1);
    let mut b = start("b");
    runs.listen(&a, 20);
    a.child.kill().unwrap();
    runs.listen(&b, 5);
    a.lines.iter().for_each(|line| runs.add(&line)); // what it still did

    let c = start("c");
    runs.listen(&b, 20);
    b.terminate();
    b.ends_well().iter().for_each(|line| runs.add(line));
    runs.listen(&c, 5);
    assert_eq!(runs.tenures(), ["a", "b", "c"]);
}

struct Answer {
    status: u16,
    head: String,
    body: Value,
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Reads one answer, up to the end of the connection.
fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap() }
}

fn ask(address: &str, method: &str, path: &str, body: &str) -> Answer {
    let mut stream = connect(address);
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close");
    write!(stream, "{head}\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    answer(stream)
}

fn health(address: &str) -> Value {
    let answer = ask(address, "GET", "/healthz", "");
    assert_eq!(answer.status, 200);
    answer.body
}

#[expect(clippy::disallowed_methods, reason = "a health page is polled: it cannot tell")]
fn wait_for_role(address: &str, role: &str) -> Value {
    let clock = SystemClock::new();
    let begun = clock.monotonic();
    loop {
        let health = health(address);
        if health["role"] == role {
            return health;
        }
        assert!(clock.monotonic() - begun < LIMIT, "{address} is not {role}: {health}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn start_http(scratch: &Path, name: &str) -> (Program, String) {
    let program = Program::start("leader_only_http", scratch, name, &[]);
    let line = program.line();
    let address = line.strip_prefix("listening on http://").unwrap().to_owned();
    (program, address)
}

#[test]
fn only_the_active_instance_takes_orders_and_it_hands_over_once_the_last_one_is_answered() {
    let scratch = tempfile::tempdir().unwrap();
    let (mut a, at_a) = start_http(scratch.path(), "a");
    let first = wait_for_role(&at_a, "active")["epoch"].as_u64().unwrap();
    let (_b, at_b) = start_http(scratch.path(), "b");

    let taken = ask(&at_a, "POST", "/orders", "one book");
    assert_eq!((taken.status, &taken.body["epoch"]), (201, &first.into()));
    wait_for_role(&at_b, "standby");
    let refused = ask(&at_b, "POST", "/orders", "one book");
    assert_eq!(refused.status, 503);
    assert!(refused.head.contains("\r\nretry-after: 1\r\n"), "{}", refused.head);
    let status = &refused.body["status"];
    assert_eq!((&status["role"], &health(&at_b)["role"]), (&"standby".into(), &"standby".into()));
    assert!(status["holder_seen"].is_string(), "{status}");
    assert!(status["waiting_seconds_max"].as_f64().unwrap() < 4.5, "{status}");
    assert!(status["sentence"].as_str().unwrap().starts_with("standby; the lease is held by"));

    // An order that is under way: it was let in, and its body is still to come.
    let mut slow = connect(&at_a);
    write!(slow, "POST /orders HTTP/1.1\r\nhost: {at_a}\r\ncontent-length: 8\r\n").unwrap();
    write!(slow, "expect: 100-continue\r\n\r\n").unwrap();
    let mut goes_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
    slow.read_exact(&mut goes_on).unwrap();
    assert!(goes_on.starts_with(b"HTTP/1.1 100 "));
    a.terminate();
    // Had it been released now, the other would have taken it within 1.1 R.
    let clock = SystemClock::new();
    let told = clock.monotonic();
    while clock.monotonic() - told < Duration::from_secs(2) {
        assert_eq!(health(&at_b)["role"], "standby");
    }
    write!(slow, "one book").unwrap();
    let taken = answer(slow);
    assert_eq!((taken.status, &taken.body["epoch"]), (201, &first.into()));

    a.ends_well();
    let second = wait_for_role(&at_b, "active")["epoch"].as_u64().unwrap();
    assert!(second > first, "{second} after {first}");
    let taken = ask(&at_b, "POST", "/orders", "one book");
    assert_eq!((taken.status, &taken.body["epoch"]), (201, &second.into()));
}
