//! The public `age` command, by its passphrase prompt in a pseudo-terminal. Without `age` or `script`
//! on the machine each is reported as *ignored*.
#![allow(clippy::unwrap_used, reason = "these are tests, whatever they are called")]

#[path = "support/mod.rs"]
mod support;

use libtest_mimic::{Arguments, Failed, Trial};
use peak_alloc::PeakAlloc;
use snapshot_format::{
    cipher::{OpenError, Unopenable},
    stream::{self, Headerless},
};
use std::{
    fs,
    io::{Read as _, Write as _},
    path::Path,
    process::{Command, Stdio},
};
use support::{CIPHER, header, layout, name};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Below what one derivation of work factor 10 takes.
const NO_DERIVATION: usize = 128 * 1024;

fn main() {
    let mut arguments = Arguments::from_args();
    // The second counts what the whole process allocates.
    arguments.test_threads = Some(1);
    let is_missing = ["age", "script"].iter().any(|tool| !is_there(tool));
    let trials = [
        Trial::test("age_opens_what_is_sealed_here", age_opens),
        Trial::test(
            "what_age_seals_is_refused_before_derivation_and_opens_with_a_raised_limit",
            age_seals,
        ),
    ];
    let trials = trials.map(|trial| trial.with_ignored_flag(is_missing));
    libtest_mimic::run(&arguments, trials.into()).exit();
}

fn is_there(tool: &str) -> bool {
    let mut asked = Command::new(tool);
    asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    asked.status().is_ok_and(|status| status.success())
}

/// Runs `age` in a terminal and answers each prompt with the cluster's passphrase.
fn age(directory: &Path, arguments: &str) -> Result<(), Failed> {
    let mut terminal = Command::new("script")
        .args(["-q", "-e", "-c", &format!("age {arguments}"), "/dev/null"])
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let (mut keyboard, mut screen) =
        (terminal.stdin.take().unwrap(), terminal.stdout.take().unwrap());
    let (mut shown, mut answered) = (String::new(), 0);
    let mut buffer = [0; 256];
    loop {
        let read = screen.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
        while shown.matches(": ").count() > answered {
            keyboard.write_all(CIPHER.passphrase().as_bytes())?;
            keyboard.write_all(b"\n")?;
            answered += 1;
        }
    }
    drop(keyboard);
    let status = terminal.wait()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("age {arguments}: {status}: {shown}").into())
    }
}

fn database(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn age_opens() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    for bytes in [0, 1_000, 300_000] {
        let (header, application) = (header(name(7, 0)), layout().application().clone());
        let mut sealed = Vec::new();
        stream::seal(&CIPHER, &application, &header, &*database(bytes), &mut sealed)?;
        fs::write(scratch.path().join("snapshot.db.age"), sealed)?;
        age(scratch.path(), "--decrypt --output plaintext snapshot.db.age")?;
        let plaintext = fs::read(scratch.path().join("plaintext"))?;
        let expected = [header.encode(&application).as_bytes(), &database(bytes)].concat();
        assert!(plaintext == expected, "{bytes}");
        println!("age opened a snapshot of a database of {bytes} bytes");
    }
    Ok(())
}

fn age_seals() -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let start = header(name(7, 0)).encode(layout().application());
    let plaintext = [start.as_bytes(), &database(100_000)].concat();
    fs::write(scratch.path().join("plaintext"), plaintext)?;
    age(scratch.path(), "--passphrase --output snapshot.db.age plaintext")?;
    let sealed = fs::read(scratch.path().join("snapshot.db.age"))?;

    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let refused = CIPHER.open(&*sealed).map(drop);
    let peak = ALLOCATOR.peak_usage() - before;
    println!("refused with {peak} bytes at the most: {refused:?}");
    let Err(OpenError::Unopenable(Unopenable::TooMuchWork { found: 18 })) = refused else {
        return Err(format!("{refused:?}").into());
    };
    assert!(peak < NO_DERIVATION, "{peak}");

    let (raised, mut found) = (CIPHER.with_work_factor_limit(18)?, Vec::new());
    let name = name(7, 0);
    let opened = stream::open(&raised, &layout(), &name, Headerless::Refuse, &*sealed, &mut found)?;
    assert!(found == database(100_000) && opened.header == Some(header(name)));
    Ok(())
}
