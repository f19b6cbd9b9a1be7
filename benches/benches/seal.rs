//! Sealing and opening a snapshot, beside the `age` crate's own stream over the same bytes.
//!
//! **Go by the ratios at the end**, which are of runs in turn and in processor time: what else the
//! machine does moves criterion's times by more than we add.

use age::secrecy::SecretString;
use benches::{clocks, paired};
use criterion::{Criterion, Throughput, criterion_group};
use snapshot_format::{
    cipher::{CHUNK_BYTES, Cipher, WORK_FACTOR},
    fencing::Epoch,
    header::Header,
    lease_core::{
        auth::ClusterSecret,
        key::{ClusterName, InstanceId},
    },
    name::{Application, Layout},
    stream::{self, Headerless},
};
use std::{
    io::{self, Read, Write as _},
    iter,
    time::Duration,
};

const DATABASE_BYTES: usize = 64 * 1024 * 1024;

/// A snapshot, and what seals and opens it, both ways.
struct Bed {
    cipher: Cipher,
    layout: Layout,
    header: Header,
    recipient: age::scrypt::Recipient,
    identity: age::scrypt::Identity,
    /// The header and the database, as age alone gets them.
    plaintext: Vec<u8>,
    start: usize,
    sealed: Vec<u8>,
}

impl Bed {
    fn new() -> Self {
        let secret = ClusterSecret::new(b"0123456789abcdef0123456789abcdef").expect("32 bytes");
        let cipher = Cipher::new(&secret);
        let passphrase = SecretString::from(cipher.passphrase().to_string());
        let mut recipient = age::scrypt::Recipient::new(passphrase.clone());
        recipient.set_work_factor(WORK_FACTOR);
        let cluster = ClusterName::new("prod").expect("a name");
        let layout = Layout::new(Application::new("orders").expect("a name"), cluster.clone());
        let header = Header {
            cluster,
            epoch: Epoch::MIN,
            instance_id: InstanceId::new("s-1").expect("an id"),
            created_at: "2026-10-12T09:58:41.517Z".parse().expect("a time"),
            suffix: None,
        };
        let mut plaintext = header.encode(layout.application()).into_bytes();
        let start = plaintext.len();
        plaintext.extend((0..DATABASE_BYTES).map(|at| (at % 251) as u8));
        let identity = age::scrypt::Identity::new(passphrase);
        let sealed = Vec::new();
        let mut bed =
            Self { cipher, layout, header, recipient, identity, plaintext, start, sealed };
        let mut sealed = Vec::with_capacity(DATABASE_BYTES + DATABASE_BYTES / 1000);
        bed.seal(&mut sealed);
        bed.sealed = sealed;
        bed
    }

    fn seal(&self, sink: impl io::Write) {
        let database = &self.plaintext[self.start..];
        stream::seal(&self.cipher, self.layout.application(), &self.header, database, sink)
            .expect("memory does not fail");
    }

    fn seal_by_age(&self, sink: impl io::Write) {
        let recipients = iter::once(&self.recipient as &dyn age::Recipient);
        let encryptor = age::Encryptor::with_recipients(recipients).expect("one recipient");
        let mut writer = encryptor.wrap_output(sink).expect("memory does not fail");
        writer.write_all(&self.plaintext).expect("memory does not fail");
        writer.finish().expect("memory does not fail");
    }

    fn open(&self) {
        let name = self.header.name();
        let sealed = &*self.sealed;
        stream::open(&self.cipher, &self.layout, &name, Headerless::Refuse, sealed, io::sink())
            .expect("it was sealed so");
    }

    fn open_by_age(&self) {
        let decryptor = age::Decryptor::new(&*self.sealed).expect("it is sealed");
        let identities = iter::once(&self.identity as &dyn age::Identity);
        let mut reader = decryptor.decrypt(identities).expect("it is its secret");
        let mut buffer = vec![0; CHUNK_BYTES];
        while reader.read(&mut buffer).expect("it is whole") > 0 {}
    }
}

fn streams(criterion: &mut Criterion) {
    let bed = Bed::new();
    let mut group = criterion.benchmark_group("snapshot");
    group.sample_size(10).measurement_time(Duration::from_secs(4));
    group.throughput(Throughput::Bytes(DATABASE_BYTES as u64));
    group.bench_function("seal", |bencher| bencher.iter(|| bed.seal(io::sink())));
    group.bench_function("seal, age alone", |bencher| bencher.iter(|| bed.seal_by_age(io::sink())));
    group.bench_function("open", |bencher| bencher.iter(|| bed.open()));
    group.bench_function("open, age alone", |bencher| bencher.iter(|| bed.open_by_age()));
    group.finish();
}

criterion_group!(benches, streams);

/// Time beside time: throughput is the inverse.
fn ratios() {
    let told = |argument| std::env::args().any(|it| it == argument);
    if told("--list") {
        return;
    }
    let pairs = if told("--bench") && !told("--test") { 60 } else { 1 };
    let bed = Bed::new();
    let seal = paired::run_by(
        clocks::thread_time,
        pairs,
        || bed.seal(io::sink()),
        || bed.seal_by_age(io::sink()),
    );
    println!("seal: time {seal}; throughput {:.3} of age's own", seal.throughput());
    let open = paired::run_by(clocks::thread_time, pairs, || bed.open(), || bed.open_by_age());
    println!("open: time {open}; throughput {:.3} of age's own", open.throughput());
}

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
    ratios();
}
