//! A gate in front of an HTTP endpoint (feature `tower`).
//!
//! The client sends the token of its tenure with each request; what is smaller than the highest seen
//! is answered 409, with the highest as JSON, and does not reach the service:
//!
//! ```text
//!  PUT /report                        HTTP/1.1 409 Conflict
//!  fencing-token: 41            ──►   content-type: application/json
//!
//!                                     {"error":"stale","presented":41,"highest":42}
//! ```
//!
//! The layer is generic over request and response bodies and links no runtime: it goes wherever
//! `tower::Layer`s go (axum's `Router::layer`, hyper through `tower`).
//!
//! The gate is in memory. Start it with what the resource remembers
//! ([`FencingGate::with_highest`]), or let the resource check again by a gate of its own.

use crate::{
    gate::{FencingGate, Stale},
    token::Epoch,
};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use futures_util::future::Either;
use std::{
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};
use tower_layer::Layer;
use tower_service::Service;

/// The header that is read unless another one is configured.
pub const TOKEN_HEADER: HeaderName = HeaderName::from_static("fencing-token");

/// What becomes of a request whose token is missing, or is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Policy {
    /// It passes, without an [`Admission`].
    Pass,
    /// It passes if its method is safe (GET, HEAD, OPTIONS, TRACE; RFC 9110, 9.2.1), and is answered
    /// with this status otherwise.
    PassSafe(StatusCode),
    /// It is answered with this status.
    Refuse(StatusCode),
}

impl Policy {
    fn refusal(self, method: &Method) -> Option<StatusCode> {
        match self {
            Self::Pass => None,
            Self::PassSafe(_) if method.is_safe() => None,
            Self::PassSafe(status) | Self::Refuse(status) => Some(status),
        }
    }
}

/// A layer that lets requests through a [`FencingGate`].
///
/// ```
/// use fencing::{FencingGate, http::{Admission, FencingLayer, Policy}};
/// use http::{Request, Response, StatusCode};
/// use std::{convert::Infallible, sync::Arc};
/// use tower::{Layer as _, ServiceExt as _, service_fn};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let gate = Arc::new(FencingGate::new());
/// let layer = FencingLayer::new(Arc::clone(&gate))
///     .missing(Policy::PassSafe(StatusCode::PRECONDITION_REQUIRED));    // reads need no token
/// let service = layer.layer(service_fn(async |request: Request<String>| {
///     if let Some(admission) = request.extensions().get::<Admission>() {
///         if let Err(stale) = admission.check() {                       // again, right before the commit
///             return Ok(fencing::http::conflict(&stale));
///         }
///     }
///     Ok::<_, Infallible>(Response::new("written".to_owned()))
/// }));
///
/// let put = |token| Request::put("/report").header("fencing-token", token).body(String::new());
/// assert_eq!(service.clone().oneshot(put("42")?).await?.status(), 200);
/// let stale = service.oneshot(put("41")?).await?;
/// assert_eq!(stale.status(), 409);
/// assert_eq!(stale.body(), r#"{"error":"stale","presented":41,"highest":42}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// | | default |
/// | --- | --- |
/// | header | `fencing-token` |
/// | no token | refused with 428 (Precondition Required, RFC 6585) |
/// | no decimal number from 1 to 2^64 − 1, or two headers | refused with 400 |
#[derive(Clone, Debug)]
pub struct FencingLayer {
    gate: Arc<FencingGate>,
    header: HeaderName,
    missing: Policy,
    malformed: Policy,
}

impl FencingLayer {
    /// A layer in front of what `gate` protects.
    #[must_use]
    pub fn new(gate: Arc<FencingGate>) -> Self {
        Self {
            gate,
            header: TOKEN_HEADER,
            missing: Policy::Refuse(StatusCode::PRECONDITION_REQUIRED),
            malformed: Policy::Refuse(StatusCode::BAD_REQUEST),
        }
    }

    /// Reads the token from this header.
    #[must_use]
    pub fn header(self, header: HeaderName) -> Self {
        Self { header, ..self }
    }

    /// What becomes of a request without a token.
    #[must_use]
    pub fn missing(self, missing: Policy) -> Self {
        Self { missing, ..self }
    }

    /// What becomes of a request whose header is no token.
    #[must_use]
    pub fn malformed(self, malformed: Policy) -> Self {
        Self { malformed, ..self }
    }

    /// The token to go on with, or the answer.
    fn look<B, R: From<String>>(&self, request: &Request<B>) -> Result<Option<Epoch>, Response<R>> {
        let (policy, what) = match token(request.headers(), &self.header) {
            Ok(Some(token)) => {
                return self.gate.admit(token).map(|()| Some(token)).map_err(|s| conflict(&s));
            }
            Ok(None) => (self.missing, "missing"),
            Err(Malformed) => (self.malformed, "malformed"),
        };
        match policy.refusal(request.method()) {
            None => Ok(None),
            Some(status) => {
                let body = format!(r#"{{"error":"{what}","header":"{}"}}"#, self.header);
                Err(json(status, body))
            }
        }
    }
}

impl<S> Layer<S> for FencingLayer {
    type Service = FencingService<S>;

    fn layer(&self, inner: S) -> FencingService<S> {
        FencingService { inner, layer: self.clone() }
    }
}

/// The service that a [`FencingLayer`] makes.
#[derive(Clone, Debug)]
pub struct FencingService<S> {
    inner: S,
    layer: FencingLayer,
}

impl<S, B, R> Service<Request<B>> for FencingService<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: From<String>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<S::Future, Ready<Result<Response<R>, S::Error>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match self.layer.look(&request) {
            Ok(token) => {
                // One that a client's code or another layer put there is not ours.
                request.extensions_mut().remove::<Admission>();
                if let Some(token) = token {
                    let gate = Arc::clone(&self.layer.gate);
                    request.extensions_mut().insert(Admission { token, gate });
                }
                Either::Left(self.inner.call(request))
            }
            Err(answer) => Either::Right(ready(Ok(answer))),
        }
    }
}

/// Travels in the extensions of an admitted request.
///
/// A handler that takes its time asks it again right before what cannot be taken back: a larger
/// token may have come by since the request was admitted.
#[derive(Clone, Debug)]
pub struct Admission {
    token: Epoch,
    gate: Arc<FencingGate>,
}

impl Admission {
    /// The token of the request: for the resource's own gate, and for what is stored.
    #[must_use]
    pub fn token(&self) -> Epoch {
        self.token
    }

    /// Whether no larger token has come by.
    ///
    /// # Errors
    ///
    /// [`Stale`] if one has; answer it with [`conflict`].
    pub fn check(&self) -> Result<(), Stale> {
        Stale::check(self.token, self.gate.highest())
    }
}

/// The answer to a stale token: 409, and as JSON what was presented and the highest seen, both as
/// integers.
#[must_use]
pub fn conflict<R: From<String>>(stale: &Stale) -> Response<R> {
    let Stale { presented, highest } = stale;
    let body = format!(r#"{{"error":"stale","presented":{presented},"highest":{highest}}}"#);
    json(StatusCode::CONFLICT, body)
}

fn json<R: From<String>>(status: StatusCode, body: String) -> Response<R> {
    let mut response = Response::new(R::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

struct Malformed;

/// Digits only, in one spelling: no sign, no leading zero. Twice is no token: which one counts?
fn token(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Epoch>, Malformed> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Malformed);
    }
    let digits = value.to_str().map_err(|_| Malformed)?;
    let is_spelled = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    let token = digits.parse().ok().filter(|_| is_spelled).and_then(Epoch::new);
    token.map(Some).ok_or(Malformed)
}
