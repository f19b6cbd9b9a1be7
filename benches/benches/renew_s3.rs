//! A renewal in a bucket through the runner, beside a bare `put_opts` on the same server.

use benches::rows::s3::{Bed, Server};
use criterion::{Criterion, criterion_group};

fn renewal(criterion: &mut Criterion) {
    let server = Server::start().expect("a port");
    let mut bed = Bed::on(server.options("store")).expect("the server is one");
    let mut group = criterion.benchmark_group("renew s3");
    group.bench_function("renewal", |bencher| bencher.iter(|| bed.renew()));
    group.bench_function("store alone", |bencher| bencher.iter(|| bed.write()));
    group.bench_function("bare put_opts", |bencher| bencher.iter(|| bed.put()));
    group.bench_function("bare conditional GET", |bencher| bencher.iter(|| bed.get()));
    group.finish();
}

criterion_group!(benches, renewal);

fn main() {
    benches();
    Criterion::default().configure_from_args().final_summary();
}
