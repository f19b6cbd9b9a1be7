//! `s3s-fs`, a server that keeps its objects in a directory: the example of a store that does everything
//! right, one request after the other, and compares and writes in two steps. It runs in this process,
//! on threads of its own, so that nothing has to be installed.

use crate::bucket::Server;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use libtest_mimic::Failed;
use s3s::{auth::SimpleAuth, service::S3ServiceBuilder};
use std::{net::Ipv4Addr, sync::mpsc};
use tokio::net::TcpListener;

/// As the table in `docs/stores.md` knows it.
pub(crate) const NAME: &str = "S3SFS";
const KEYS: (&str, &str) = ("testak", "testsk");

/// Starts one, which runs as long as this process.
pub(crate) fn start() -> Result<Server, Failed> {
    let (started, start) = mpsc::channel();
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        match runtime.worker_threads(4).enable_all().build() {
            Ok(runtime) => runtime.block_on(async {
                if let Err(error) = serve(&started).await {
                    drop(started.send(Err(error)));
                }
            }),
            Err(error) => drop(started.send(Err(error.into()))),
        }
    });
    let endpoint = start.recv()??;
    Ok(Server::new(NAME, "leases", &endpoint, KEYS))
}

async fn serve(started: &mpsc::Sender<Result<String, Failed>>) -> Result<(), Failed> {
    let scratch = tempfile::tempdir()?;
    let objects = s3s_fs::FileSystem::new(scratch.path()).map_err(|error| format!("{error:?}"))?;
    let mut builder = S3ServiceBuilder::new(objects);
    builder.set_auth(SimpleAuth::from_single(KEYS.0, KEYS.1));
    let service = builder.build();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    started.send(Ok(format!("http://{}", listener.local_addr()?)))?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service.clone();
        let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let service = service.clone();
            async move { service.call(request.map(s3s::Body::from)).await }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}
