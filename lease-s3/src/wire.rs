//! The HTTP client underneath: what it shows of each request is all that outcomes are made of.
//!
//! object_store tells several outcomes apart by text only, calls a connection that was closed
//! without a reply "not sent", and makes an error of a write that it cannot read an ETag from. So
//! it is used for what it does well (URLs, signatures, credentials), and a [`Recorder`] that
//! travels with each request keeps what really happened.

use crate::tls::{Roots, Unaccepted};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use lease_core::store::MAX_OBJECT_BYTES;
use object_store::{
    ClientOptions,
    client::{
        HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
        HttpResponseBody, HttpService, ReqwestConnector,
    },
};
use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// How long one request for credentials may take. Nothing else bounds it: requests of the lease wait
/// behind it, and a tenure that waits too long steps down at its deadline.
pub(crate) const CREDENTIALS_LIMIT: Duration = Duration::from_secs(10);

/// What the wire showed of one request.
#[derive(Clone, Debug, Default)]
pub(crate) enum Shown {
    /// It never got as far as the client: no credentials, an impossible URL.
    #[default]
    Nothing,
    /// It was handed to the client, and no outcome has come.
    Started,
    /// No connection: nothing was sent.
    NotSent(String),
    /// It may have been sent, in part or as a whole, and no reply came.
    Lost(String),
    /// A reply.
    Replied(Reply),
}

/// A reply, of which no more was read than of an object.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    /// The client followed a redirect: this may be the answer to another request.
    pub(crate) is_redirected: bool,
}

/// What was read of a body.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// All of it.
    Whole(Bytes),
    /// It is longer than what is read; the rest was not.
    TooLong,
    /// It broke off.
    Broken(String),
}

impl Reply {
    /// The body, as far as it is whole.
    pub(crate) fn text(&self) -> &[u8] {
        match &self.body {
            Body::Whole(body) => body,
            Body::TooLong | Body::Broken(_) => &[],
        }
    }

    /// A header that is there once, as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => value.to_str().ok(),
            _ => None,
        }
    }
}

/// Travels in the extensions of one request and keeps what the wire showed of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder(Arc<Mutex<Shown>>);

impl Recorder {
    pub(crate) fn shown(&self) -> Shown {
        self.lock().clone()
    }

    /// Whether the request may go out: once. What sits between here and the driver must not retry,
    /// and if it does, the first outcome is the one that counts.
    fn admit(&self) -> bool {
        let mut shown = self.lock();
        let is_first = matches!(*shown, Shown::Nothing);
        if is_first {
            *shown = Shown::Started;
        }
        is_first
    }

    fn note(&self, outcome: Shown) {
        *self.lock() = outcome;
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the clients of one store, each with connections of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connector {
    /// The most that is read of an object.
    max_object_bytes: usize,
    roots: Roots,
    troubles: Troubles,
    /// The client made last: object_store makes that of the objects after those for credentials.
    latest: Arc<Mutex<Option<HttpClient>>>,
}

impl Connector {
    pub(crate) fn new(roots: Roots, max_object_bytes: usize) -> Self {
        Self { roots, max_object_bytes, ..Self::default() }
    }

    pub(crate) fn max_object_bytes(&self) -> usize {
        self.max_object_bytes
    }

    /// Why no credentials came, the last time that none did.
    pub(crate) fn credential_trouble(&self) -> Option<String> {
        self.troubles.credentials.noted()
    }

    /// The certificate for which the last request could not be sent.
    pub(crate) fn unaccepted(&self) -> Option<Unaccepted> {
        self.troubles.certificate.noted()
    }

    /// The client that object_store sends the requests for objects by.
    pub(crate) fn latest(&self) -> Option<HttpClient> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(&self.roots.trusted_by(options))?;
        let (troubles, max_object_bytes) = (self.troubles.clone(), self.max_object_bytes);
        let client = HttpClient::new(Wire { inner, troubles, max_object_bytes });
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(client.clone());
        Ok(client)
    }
}

/// Makes clients for what is no lease: nothing is recorded, nothing bounded.
#[derive(Debug)]
pub(crate) struct PlainConnector(pub(crate) Roots);

impl HttpConnector for PlainConnector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        ReqwestConnector::default().connect(&self.0.trusted_by(options))
    }
}

/// What went wrong the last time, if nothing has gone well since. Shared by all clients of a store.
#[derive(Clone, Debug, Default)]
struct Troubles {
    credentials: Trouble<String>,
    certificate: Trouble<Unaccepted>,
}

#[derive(Clone, Debug)]
struct Trouble<T>(Arc<Mutex<Option<T>>>);

impl<T> Default for Trouble<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }
}

impl<T: Clone> Trouble<T> {
    fn note(&self, trouble: Option<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    fn noted(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Wire {
    inner: HttpClient,
    troubles: Troubles,
    max_object_bytes: usize,
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wire").finish_non_exhaustive()
    }
}

#[async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        match request.extensions().get::<Recorder>().cloned() {
            Some(recorder) => self.recorded(request, &recorder).await,
            // The removal of a probe object: nothing but its success is looked at.
            None if request.method() == http::Method::DELETE => {
                let response = self.inner.execute(request).await?;
                Ok(read(response, false, MAX_OBJECT_BYTES).await.1)
            }
            None => self.credentials(request).await,
        }
    }
}

impl Wire {
    async fn recorded(
        &self,
        request: HttpRequest,
        recorder: &Recorder,
    ) -> Result<HttpResponse, HttpError> {
        if !recorder.admit() {
            return Err(ours(HttpErrorKind::Unknown, "a request is not sent twice"));
        }
        let uri = request.uri().clone();
        match self.inner.execute(request).await {
            Ok(response) => {
                self.troubles.certificate.note(None);
                let redirected = redirected_to(&response).is_some_and(|last| *last != uri);
                // Only objects may be larger: what a server says of an error is cut as ever.
                let limit = match response.status().is_success() {
                    true => self.max_object_bytes,
                    false => MAX_OBJECT_BYTES,
                };
                let (reply, response) = read(response, redirected, limit).await;
                recorder.note(Shown::Replied(reply));
                Ok(response)
            }
            Err(error) => {
                let text = innermost(&error);
                self.troubles.certificate.note(Unaccepted::of(&text));
                recorder.note(match error.kind() {
                    HttpErrorKind::Connect => Shown::NotSent(text),
                    _ => Shown::Lost(text),
                });
                Err(error)
            }
        }
    }

    /// A request for credentials. The text of its reply goes no further than to object_store's
    /// parser: its errors would quote it.
    async fn credentials(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let exchange = async {
            let response = self.inner.execute(request).await?;
            Ok::<_, HttpError>(read(response, false, MAX_OBJECT_BYTES).await)
        };
        let (trouble, result) = match tokio::time::timeout(CREDENTIALS_LIMIT, exchange).await {
            Err(_) => {
                let text =
                    format!("the source of credentials was silent for {CREDENTIALS_LIMIT:?}");
                (Some(text.clone()), Err(ours(HttpErrorKind::Timeout, &text)))
            }
            Ok(Err(error)) => {
                let text = format!("the source of credentials: {}", innermost(&error));
                (Some(text), Err(error))
            }
            Ok(Ok((reply, response))) if !reply.status.is_success() => {
                let text = format!("the source of credentials answered {}", reply.status.as_u16());
                let (parts, _) = response.into_parts();
                let empty = HttpResponseBody::from(Bytes::new());
                (Some(text), Ok(HttpResponse::from_parts(parts, empty)))
            }
            Ok(Ok((_, response))) => (None, Ok(response)),
        };
        self.troubles.credentials.note(trouble);
        result
    }
}

/// Where the reply came from in the end, as the client's redirect layer tells it.
fn redirected_to(response: &HttpResponse) -> Option<&http::Uri> {
    response.extensions().get::<tower_http::follow_redirect::RequestUri>().map(|uri| &uri.0)
}

/// Reads a reply up to the limit, and makes one of it for object_store to go on with.
async fn read(response: HttpResponse, is_redirected: bool, limit: usize) -> (Reply, HttpResponse) {
    let (parts, body) = response.into_parts();
    let body = read_body(body, limit).await;
    let rest = match &body {
        Body::Whole(bytes) => bytes.clone(),
        Body::TooLong | Body::Broken(_) => Bytes::new(),
    };
    let (status, headers) = (parts.status, parts.headers.clone());
    let reply = Reply { status, headers, body, is_redirected };
    (reply, HttpResponse::from_parts(parts, HttpResponseBody::from(rest)))
}

async fn read_body(mut body: HttpResponseBody, limit: usize) -> Body {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map(http_body::Frame::into_data) {
            Ok(Ok(data)) if read.len() + data.len() > limit => return Body::TooLong,
            Ok(Ok(data)) => read.extend_from_slice(&data),
            // Trailers say nothing that is needed.
            Ok(Err(_)) => {}
            Err(error) => return Body::Broken(innermost(&error)),
        }
    }
    Body::Whole(read.freeze())
}

fn ours(kind: HttpErrorKind, text: &str) -> HttpError {
    HttpError::new(kind, std::io::Error::other(text.to_owned()))
}

/// The text of the first cause: what the system or the TLS library said. Those above it repeat it, or
/// name URLs.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(source) = error.source() {
        error = source;
    }
    error.to_string()
}
