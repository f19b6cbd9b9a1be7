//! The server: a socket, the S3 protocol, and what goes wrong in between.

use super::{
    backend::{BUCKET, Backend, Lax, Object},
    faults::{Endless, Fault, Faults, Seen},
    quirks::{Asked, Quirk, error},
};
use crate::{AmazonS3Builder, S3Options, S3Store};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use s3s::{
    Body,
    auth::SimpleAuth,
    service::{S3Service, S3ServiceBuilder},
};
use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::{net::TcpListener, task::JoinHandle};

/// The key that the server takes.
const ACCESS_KEY: &str = "test-access-key";
const SECRET_KEY: &str = "test-secret-key";

/// How many requests were met on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Requests {
    /// `DELETE`.
    pub delete: usize,
    /// `GET`.
    pub get: usize,
    /// Replies 304, whatever was asked.
    pub not_modified: usize,
    /// Any other method.
    pub other: usize,
    /// `PUT`.
    pub put: usize,
}

/// An S3 server on the loopback interface, in this process. Dropping it closes its socket.
pub struct TestServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

struct Shared {
    backend: Backend,
    service: S3Service,
    faults: Faults,
    quirks: Mutex<Vec<Quirk>>,
    requests: Mutex<Requests>,
}

/// Told to hyper, which closes the connection.
#[derive(Debug)]
struct Closed;

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("closed without a reply, as the test asked")
    }
}

impl std::error::Error for Closed {}

impl TestServer {
    /// Starts a server on a free port, with one empty bucket.
    ///
    /// # Errors
    ///
    /// If there is no port.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let backend = Backend::default();
        let mut builder = S3ServiceBuilder::new(backend.clone());
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let shared = Arc::new(Shared {
            backend,
            service: builder.build(),
            faults: Faults::default(),
            quirks: Mutex::default(),
            requests: Mutex::default(),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { shared, address, accepting })
    }

    /// `http://127.0.0.1:port`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a store on the server under `prefix`. Its keys come from the environment, where
    /// [`env`](Self::env) has to be set.
    #[must_use]
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}?endpoint={}", self.endpoint())
    }

    /// The environment in which a program finds the keys of the server.
    #[must_use]
    pub fn env(&self) -> [(&'static str, &'static str); 2] {
        [("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY)]
    }

    /// A builder with the server's endpoint, bucket and credentials.
    #[must_use]
    pub fn builder(&self) -> AmazonS3Builder {
        AmazonS3Builder::new()
            .with_endpoint(self.endpoint())
            .with_bucket_name(BUCKET)
            .with_access_key_id(ACCESS_KEY)
            .with_secret_access_key(SECRET_KEY)
    }

    /// Options for a store on the server under `prefix`.
    ///
    /// # Panics
    ///
    /// If the prefix is none.
    #[expect(clippy::expect_used, reason = "documented, and for tests")]
    pub fn options(&self, prefix: &str) -> S3Options {
        S3Store::from_builder(self.builder(), prefix).expect("the prefix is one")
    }

    /// The next request by `method` meets this fault. Faults of one method are met in order.
    pub fn next(&self, method: Method, fault: Fault) {
        self.shared.faults.push(method, fault);
    }

    /// Every request that meets no [`next`](Self::next) fault is shown to `choose`.
    pub fn choose(&self, choose: impl FnMut(&Seen) -> Option<Fault> + Send + 'static) {
        self.shared.faults.choose(Some(Box::new(choose)));
    }

    /// Ends [`choose`](Self::choose).
    pub fn heal(&self) {
        self.shared.faults.choose(None);
    }

    /// How the server is from now on.
    pub fn set_quirks(&self, quirks: &[Quirk]) {
        *lock(&self.shared.quirks) = quirks.to_vec();
    }

    /// The content of an object, by its key in the bucket.
    #[must_use]
    pub fn content(&self, key: &str) -> Option<Bytes> {
        self.shared.backend.object(key).map(|object| object.content)
    }

    /// The ETag of an object, without quotes.
    #[must_use]
    pub fn tag(&self, key: &str) -> Option<String> {
        self.shared.backend.object(key).map(|Object { tag, .. }| tag)
    }

    /// The keys that there are.
    #[must_use]
    pub fn keys(&self) -> Vec<String> {
        self.shared.backend.keys()
    }

    /// Writes an object as if by hand, unconditionally.
    pub fn put_by_hand(&self, key: &str, content: impl Into<Bytes>) {
        self.shared.backend.put_by_hand(key, content.into());
    }

    /// Removes an object as if by hand.
    pub fn remove_by_hand(&self, key: &str) {
        self.shared.backend.remove(key);
    }

    /// How many writes were applied since the server was started, those by hand included.
    #[must_use]
    pub fn writes(&self) -> usize {
        self.shared.backend.writes()
    }

    /// How many requests came since this was asked last.
    #[must_use]
    pub fn take_requests(&self) -> Requests {
        std::mem::take(&mut *lock(&self.shared.requests))
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl fmt::Debug for TestServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestServer").field("address", &self.address).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    // Connections end with the task that accepts them.
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Small replies must not wait for the next.
        drop(stream.set_nodelay(true));
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| {
            let shared = Arc::clone(&shared);
            async move { shared.meet(request).await }
        });
        connections.spawn(async move {
            // A connection that broke is what a test asked for.
            drop(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
        });
        while connections.try_join_next().is_some() {}
    }
}

impl Shared {
    async fn meet(self: Arc<Self>, request: Request<Incoming>) -> Result<Response<Body>, Closed> {
        let asked = Asked::of(&request);
        self.count(&asked);
        let fault = self.faults.take(&asked);
        // A request that is dropped or answered early is read to its end, so that the connection
        // ends as the fault says and not by a reset.
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
        let request = Request::from_parts(parts, Body::from(body));
        let response = match fault {
            None => self.answer(request, &asked).await,
            Some(fault) => Self::suffer(&self, fault, request, &asked).await?,
        };
        if response.status() == StatusCode::NOT_MODIFIED {
            lock(&self.requests).not_modified += 1;
        }
        Ok(response)
    }

    fn count(&self, asked: &Asked) {
        let mut requests = lock(&self.requests);
        match asked.seen.method {
            Method::DELETE => requests.delete += 1,
            Method::GET => requests.get += 1,
            Method::PUT => requests.put += 1,
            _ => requests.other += 1,
        }
    }

    async fn suffer(
        self: &Arc<Self>,
        fault: Fault,
        request: Request<Body>,
        asked: &Asked,
    ) -> Result<Response<Body>, Closed> {
        match fault {
            Fault::Answer(status, code) => Ok(error(status, code)),
            Fault::ApplyThenAnswer(status, code) => {
                self.answer(request, asked).await;
                Ok(error(status, code))
            }
            Fault::ApplyThenDrop => {
                self.answer(request, asked).await;
                Err(Closed)
            }
            Fault::ApplyThenHold(held) => {
                let response = self.answer(request, asked).await;
                held.pass().await;
                Ok(response)
            }
            Fault::Drop => Err(Closed),
            Fault::EndlessBody => {
                let mut response = Response::new(Body::http_body(Endless));
                response
                    .headers_mut()
                    .insert(header::ETAG, HeaderValue::from_static("\"endless\""));
                Ok(response)
            }
            Fault::Hold(held) => {
                held.pass().await;
                Ok(self.answer(request, asked).await)
            }
            Fault::LandLater(late) => {
                let (shared, asked) = (Arc::clone(self), asked.clone());
                late.push(async move { shared.answer(request, &asked).await.status().as_u16() });
                Err(Closed)
            }
            Fault::Redirect(status, to) => {
                let mut response = error(status, "TemporaryRedirect");
                response.headers_mut().insert(header::LOCATION, HeaderValue::from_static(to));
                Ok(response)
            }
        }
    }

    /// As the store with its quirks answers.
    async fn answer(&self, mut request: Request<Body>, asked: &Asked) -> Response<Body> {
        let quirks = lock(&self.quirks).clone();
        if let Some(response) = quirks.iter().find_map(|quirk| quirk.answers(asked)) {
            return response;
        }
        let mut lax = Lax::default();
        quirks.iter().for_each(|quirk| quirk.relax(&mut lax));
        request.extensions_mut().insert(lax);
        let mut response = match self.service.call(request).await {
            Ok(response) => response,
            Err(_) => error(500, "InternalError"),
        };
        quirks.iter().for_each(|quirk| quirk.rewrite(asked, &mut response));
        response
    }
}
