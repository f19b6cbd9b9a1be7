//! What is wrong with a whole server, or unusual.

use super::{
    backend::{Lax, http_date, now},
    faults::Seen,
};
use http::{HeaderValue, Method, Response, StatusCode, header};
use s3s::Body;

/// A peculiarity of a server, for as long as it is set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Quirk {
    /// If-Match is only honoured without quotes (Ceph RGW 16).
    BareIfMatch,
    /// `Date` is told by another clock, which is so many seconds ahead.
    DateAhead(u16),
    /// `If-Match` is ignored.
    IgnoresIfMatch,
    /// `If-None-Match: *` is ignored.
    IgnoresIfNoneMatch,
    /// Looking and creating are two steps: so many win a race.
    LetsCreatorsWin(usize),
    /// Comparing and replacing are two steps: so many win a race.
    LetsReplacersWin(usize),
    /// A PUT with `If-Match` on a missing object is answered 412 instead of 404.
    MissingIs412,
    /// A read of an unchanged object is answered with its content.
    Never304,
    /// No reply has an ETag.
    NoEtag,
    /// Replies to PUT have no ETag.
    NoEtagOnPut,
    /// A conditional PUT is answered with this status and the code `NotImplemented`.
    NotImplemented(u16),
    /// The bucket has object lock.
    ObjectLock,
    /// The credentials may not ask for object lock.
    ObjectLockForbidden,
    /// The question for object lock is answered with a listing (rclone).
    ObjectLockIsAListing,
    /// PUT is answered 403.
    ReadOnly,
    /// ETags end in `-gzip`.
    RewrittenEtags,
    /// ETags are told without quotes.
    UnquotedEtags,
    /// ETags are told as weak ones.
    WeakEtags,
    /// `If-Match` on a missing object writes it.
    WritesMissing,
}

/// What a request asks for, as far as quirks and faults need to know.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) seen: Seen,
    pub(super) is_object_lock: bool,
    pub(super) if_match: Option<String>,
    pub(super) is_conditional: bool,
}

impl Asked {
    pub(super) fn of<B>(request: &http::Request<B>) -> Self {
        let headers = request.headers();
        let value = |name| headers.get(name).and_then(|it: &HeaderValue| it.to_str().ok());
        let path = request.uri().path().trim_start_matches('/');
        let key = path.split_once('/').map_or("", |(_, key)| key);
        Self {
            seen: Seen {
                method: request.method().clone(),
                key: key.to_owned(),
                headers: headers.clone(),
            },
            is_object_lock: request.uri().query().is_some_and(|it| it.starts_with("object-lock")),
            if_match: value(header::IF_MATCH).map(str::to_owned),
            is_conditional: headers.contains_key(header::IF_MATCH)
                || headers.contains_key(header::IF_NONE_MATCH),
        }
    }
}

impl Quirk {
    /// What the server answers at once, without its store.
    pub(super) fn answers(self, asked: &Asked) -> Option<Response<Body>> {
        let is_put = asked.seen.method == Method::PUT;
        let is_quoted = asked.if_match.as_ref().is_some_and(|it| it.starts_with('"'));
        match self {
            Self::BareIfMatch if is_put && is_quoted => Some(error(412, "PreconditionFailed")),
            Self::NotImplemented(status) if is_put && asked.is_conditional => {
                Some(error(status, "NotImplemented"))
            }
            Self::ReadOnly if is_put => Some(error(403, "AccessDenied")),
            Self::ObjectLockForbidden if asked.is_object_lock => Some(error(403, "AccessDenied")),
            Self::ObjectLockIsAListing if asked.is_object_lock => Some(xml(
                200,
                "<ListBucketResult><Name>leases</Name></ListBucketResult>".to_owned(),
            )),
            Self::ObjectLock if asked.is_object_lock => Some(xml(
                200,
                "<ObjectLockConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"
                    .to_owned(),
            )),
            _ => None,
        }
    }

    /// How the store is to look at conditions.
    pub(super) fn relax(self, lax: &mut Lax) {
        match self {
            Self::IgnoresIfMatch => lax.ignores_if_match = true,
            Self::IgnoresIfNoneMatch => lax.ignores_if_none_match = true,
            Self::LetsCreatorsWin(most) => lax.creators_win = most,
            Self::LetsReplacersWin(most) => lax.replacers_win = most,
            Self::MissingIs412 => lax.missing_is_412 = true,
            Self::Never304 => lax.never_304 = true,
            Self::WritesMissing => lax.writes_missing = true,
            _ => {}
        }
    }

    /// What becomes of the reply on its way.
    pub(super) fn rewrite(self, asked: &Asked, response: &mut Response<Body>) {
        let headers = response.headers_mut();
        let tag = headers.get(header::ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let rewritten = match (self, tag) {
            (Self::DateAhead(seconds), _) => {
                let date = http_date(now() + i64::from(seconds));
                if let Ok(date) = HeaderValue::from_str(&date) {
                    headers.insert(header::DATE, date);
                }
                return;
            }
            (_, None) => return,
            (Self::NoEtag, _) => String::new(),
            (Self::NoEtagOnPut, _) if asked.seen.method == Method::PUT => String::new(),
            (Self::RewrittenEtags, Some(tag)) => format!("{}-gzip\"", tag.trim_end_matches('"')),
            (Self::UnquotedEtags, Some(tag)) => tag.trim_matches('"').to_owned(),
            (Self::WeakEtags, Some(tag)) => format!("W/{tag}"),
            _ => return,
        };
        headers.remove(header::ETAG);
        if let (false, Ok(tag)) = (rewritten.is_empty(), HeaderValue::from_str(&rewritten)) {
            headers.insert(header::ETAG, tag);
        }
    }
}

/// An error as S3 tells it.
pub(super) fn error(status: u16, code: &str) -> Response<Body> {
    xml(status, format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>"))
}

fn xml(status: u16, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response
}
