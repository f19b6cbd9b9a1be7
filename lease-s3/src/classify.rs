//! From what the wire showed to what is known of a write (protocol, section 3).

use crate::{
    place::Place,
    tls::Unaccepted,
    wire::{Body, Reply, Shown},
    xml,
};
use http::StatusCode;
use lease_core::{ObjectKey, StoreError, store::Cause};
use std::fmt;

/// One operation on one object, for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt<'a> {
    pub(crate) op: Op,
    pub(crate) key: &'a ObjectKey,
    pub(crate) place: &'a Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Create,
    Read,
    Remove,
    Replace,
}

impl fmt::Display for Attempt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let doing = match self.op {
            Op::Create => "creating",
            Op::Read => "reading",
            Op::Remove => "removing",
            Op::Replace => "replacing",
        };
        write!(f, "{doing} {} in {}", self.key, self.place)
    }
}

impl Attempt<'_> {
    pub(crate) fn cause(&self, found: impl fmt::Display) -> Cause {
        Cause::new(format!("{self}: {found}"))
    }

    /// What a write came to: the reply that says that it was written, or what is known otherwise.
    /// Whatever is not known to be certain is [`StoreError::InDoubt`].
    pub(crate) fn written(&self, shown: Shown, why_not_sent: &str) -> Result<Reply, StoreError> {
        let reply = match shown {
            Shown::Nothing => return Err(StoreError::Unavailable(self.cause(why_not_sent))),
            Shown::NotSent(text) => return Err(StoreError::Unavailable(self.no_connection(&text))),
            Shown::Started => return Err(StoreError::InDoubt(self.cause("it was not waited for"))),
            Shown::Lost(text) => {
                let found = format_args!("no reply came ({text}); what was sent may still land");
                return Err(StoreError::InDoubt(self.cause(found)));
            }
            Shown::Replied(reply) => reply,
        };
        if reply.is_redirected {
            let found = "it was redirected, and the reply may be one to something else; name the \
                         endpoint that answers itself";
            return Err(StoreError::InDoubt(self.cause(found)));
        }
        let code = code(&reply);
        let told = || self.cause(Told { reply: &reply, code: code.as_deref() });
        match (reply.status.as_u16(), code.as_deref(), self.op) {
            // A 200 whose body tells of an error is one of S3's ways to answer 500.
            (200 | 201 | 204, None, _) => Ok(reply),
            (304, _, Op::Create) | (412, _, _) => Err(StoreError::Precondition(told())),
            (409, Some("BlobAlreadyExists"), Op::Create) => Err(StoreError::Precondition(told())),
            (404, Some("NoSuchBucket" | "ContainerNotFound"), _) => {
                Err(StoreError::Unavailable(told()))
            }
            (404, _, Op::Replace) => Err(StoreError::Precondition(told())),
            (409, _, _) => Err(StoreError::Contended(told())),
            (501, _, _) | (400, Some("NotImplemented"), _) => Err(StoreError::Unsupported(told())),
            (408 | 429, _, _) => Err(StoreError::InDoubt(told())),
            (300..=303 | 305..=499, _, _) => Err(StoreError::Unavailable(told())),
            _ => Err(StoreError::InDoubt(told())),
        }
    }

    /// What a read came to: a 200 or a 304 or a 404 that says "no such object". All else is no answer.
    pub(crate) fn read(&self, shown: Shown, why_not_sent: &str) -> Result<ReadReply, StoreError> {
        let unavailable = |found: &dyn fmt::Display| StoreError::Unavailable(self.cause(found));
        let reply = match shown {
            Shown::Nothing => return Err(unavailable(&why_not_sent)),
            Shown::NotSent(text) => return Err(StoreError::Unavailable(self.no_connection(&text))),
            Shown::Started => return Err(unavailable(&"it was not waited for")),
            Shown::Lost(text) => return Err(unavailable(&format_args!("no reply came ({text})"))),
            Shown::Replied(reply) => reply,
        };
        if reply.is_redirected {
            return Err(unavailable(&"it was redirected; name the endpoint that answers itself"));
        }
        if let (true, Body::Broken(text)) = (reply.status.is_success(), &reply.body) {
            return Err(unavailable(&format_args!("the reply broke off ({text})")));
        }
        match reply.status.as_u16() {
            200 => return Ok(ReadReply::Found(reply)),
            304 => return Ok(ReadReply::NotModified(reply)),
            _ => {}
        }
        let code = code(&reply);
        let told = self.cause(Told { reply: &reply, code: code.as_deref() });
        match (reply.status.as_u16(), code.as_deref()) {
            (404, Some("NoSuchKey" | "BlobNotFound")) => Ok(ReadReply::Missing),
            (501, _) | (400, Some("NotImplemented")) => Err(StoreError::Unsupported(told)),
            _ => Err(StoreError::Unavailable(told)),
        }
    }

    fn no_connection(&self, text: &str) -> Cause {
        self.cause(no_connection(text))
    }
}

/// Why nothing was sent, and what to do about it.
pub(crate) fn no_connection(text: &str) -> String {
    match Unaccepted::of(text) {
        Some(unaccepted) => format!("no connection ({unaccepted})"),
        None => {
            format!("no connection ({text}); check the endpoint, the network and its certificate")
        }
    }
}

/// A reply that says how an object stands.
#[derive(Debug)]
pub(crate) enum ReadReply {
    Found(Reply),
    Missing,
    NotModified(Reply),
}

/// The code of an error, if it looks like one. Nothing else of a body is ever shown: some servers
/// quote the request, its signature and its key.
pub(crate) fn code(reply: &Reply) -> Option<String> {
    let code = match reply.header("x-ms-error-code") {
        Some(code) => code.to_owned(),
        None => xml::child(reply.text(), "Error", "Code")?,
    };
    let is_code = (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
    is_code.then_some(code)
}

/// A reply as it is told to people, with what to do about it.
pub(crate) struct Told<'a> {
    pub(crate) reply: &'a Reply,
    pub(crate) code: Option<&'a str>,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store answered {}", self.reply.status.as_u16())?;
        if let Some(code) = self.code {
            write!(f, " ({code})")?;
        }
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl Told<'_> {
    fn advice(&self) -> Option<&'static str> {
        Some(match (self.reply.status, self.code) {
            (_, Some("SignatureDoesNotMatch")) => {
                "the secret access key is wrong, or a proxy changes the request"
            }
            (_, Some("InvalidAccessKeyId" | "NotSignedUp")) => {
                "the store does not know the access key; correct it"
            }
            (_, Some("RequestTimeTooSkewed")) => "set this machine's clock",
            (_, Some("ExpiredToken" | "TokenRefreshRequired" | "InvalidToken")) => {
                "the credentials have expired; they are fetched again if they come from a role, \
                 renew them otherwise"
            }
            (_, Some("NoSuchBucket" | "ContainerNotFound")) => {
                "there is no such bucket; create it, or correct its name"
            }
            (
                _,
                Some(
                    "AuthorizationHeaderMalformed"
                    | "PermanentRedirect"
                    | "IllegalLocationConstraintException",
                ),
            ) => "the bucket is in another region; set `region`",
            (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, _) => {
                "let the credentials read and write objects under the prefix (s3:GetObject, \
                 s3:PutObject, s3:DeleteObject for the probe, and s3:ListBucket, without which a \
                 missing object is told as forbidden)"
            }
            (StatusCode::NOT_FOUND, None) => {
                "that is no store's answer for a missing object; check the endpoint"
            }
            (status, _) if status.is_redirection() => {
                "the bucket is elsewhere; set `region` or `endpoint`"
            }
            (StatusCode::NOT_IMPLEMENTED, _) | (_, Some("NotImplemented")) => {
                "the store has no conditional writes; use one that has"
            }
            _ => return None,
        })
    }
}
