//! Whether a bucket has S3 Object Lock, asked for by a signed `GET ?object-lock`.

use crate::{
    classify::{code, no_connection},
    wire::{Connector, Recorder, Reply, Shown},
    xml,
};
use http::Method;
use lease_core::{StoreError, store::Cause};
use object_store::{
    aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer},
    client::{HttpClient, HttpRequest, HttpRequestBody},
    path::Path,
    signer::Signer,
};
use std::time::Duration;

/// What the bucket says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Locked {
    CannotTell,
    No,
    Yes,
}

/// The answers to requests whose credentials are wrong, rather than not allowed to ask.
const BAD_CREDENTIALS: [&str; 7] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "NotSignedUp",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
];

/// Asks the bucket. `attempted` is for messages.
pub(crate) async fn ask(
    builder: &AmazonS3Builder,
    connector: &Connector,
    attempted: &str,
) -> Result<Locked, StoreError> {
    let unavailable =
        |found: &str| StoreError::Unavailable(Cause::new(format!("{attempted}: {found}")));
    let objects = builder.clone().with_http_connector(connector.clone()).build();
    let (Ok(objects), Some(client)) = (objects, connector.latest()) else {
        return Err(unavailable("no client can be made of the settings"));
    };
    let no_credentials = || {
        let why = connector.credential_trouble().unwrap_or_else(|| "they could not be read".into());
        unavailable(&format!("nothing was sent, for want of credentials ({why})"))
    };
    // The URL of the bucket as object_store makes it, whatever the style: that of an object in it,
    // less the object.
    let within = objects.signed_url(Method::GET, &Path::from("x"), Duration::from_secs(60)).await;
    let mut bucket = within.map_err(|_| no_credentials())?;
    bucket.set_query(Some("object-lock"));
    let path = bucket.path().strip_suffix("/x").unwrap_or_default().to_owned();
    bucket.set_path(&path);
    let recorder = Recorder::default();
    let mut request = HttpRequest::new(HttpRequestBody::empty());
    *request.uri_mut() =
        bucket.as_str().parse().map_err(|_| unavailable("the endpoint makes no URL"))?;
    request.extensions_mut().insert(recorder.clone());
    if builder.get_config_value(&AmazonS3ConfigKey::SkipSignature).as_deref() != Some("true") {
        let credential = objects.credentials().get_credential().await;
        let credential = credential.map_err(|_| no_credentials())?;
        let region = builder.get_config_value(&AmazonS3ConfigKey::Region);
        let region = region.unwrap_or_else(|| "us-east-1".to_owned());
        AwsAuthorizer::new(&credential, "s3", &region)
            .try_authorize(&mut request, None)
            .map_err(|_| unavailable("the request could not be signed"))?;
    }
    send(&client, request).await;
    match recorder.shown() {
        Shown::Replied(reply) => told(&reply, attempted),
        Shown::NotSent(text) => Err(unavailable(&no_connection(&text))),
        Shown::Lost(text) => Err(unavailable(&format!("no reply came ({text})"))),
        Shown::Nothing | Shown::Started => Err(unavailable("nothing was sent")),
    }
}

/// The recorder has the outcome.
async fn send(client: &HttpClient, request: HttpRequest) {
    drop(client.execute(request).await);
}

fn told(reply: &Reply, attempted: &str) -> Result<Locked, StoreError> {
    let code = code(reply);
    let is_credential = code.as_deref().is_some_and(|code| BAD_CREDENTIALS.contains(&code));
    match (reply.status.as_u16(), code.as_deref()) {
        // Some servers do not know the question, and answer another one.
        (200, _) if is_locked(reply.text()) => Ok(Locked::Yes),
        (200, _) => Ok(Locked::No),
        (401 | 403, _) if !is_credential => Ok(Locked::CannotTell),
        (404, Some("NoSuchBucket")) => Err(unexpected(reply, code.as_deref(), attempted)),
        (404 | 405 | 501, _) | (400, Some("NotImplemented")) => Ok(Locked::No),
        _ => Err(unexpected(reply, code.as_deref(), attempted)),
    }
}

fn is_locked(text: &[u8]) -> bool {
    let enabled = xml::child(text, "ObjectLockConfiguration", "ObjectLockEnabled");
    enabled.as_deref() == Some("Enabled")
}

fn unexpected(reply: &Reply, code: Option<&str>, attempted: &str) -> StoreError {
    StoreError::Unavailable(Cause::new(format!(
        "{attempted}: {}",
        crate::classify::Told { reply, code }
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Body;
    use http::{HeaderMap, StatusCode};

    fn answer(status: u16, body: &'static str) -> Result<Locked, StoreError> {
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            headers: HeaderMap::new(),
            body: Body::Whole(body.into()),
            is_redirected: false,
        };
        told(&reply, "asking")
    }

    #[test]
    fn only_an_enabled_configuration_counts() {
        let locked = "<ObjectLockConfiguration xmlns=\"x\"><ObjectLockEnabled>Enabled\
                      </ObjectLockEnabled></ObjectLockConfiguration>";
        let denied = "<Error><Code>AccessDenied</Code></Error>";
        let none = "<Error><Code>ObjectLockConfigurationNotFoundError</Code></Error>";
        let passes = [
            (
                200,
                "<ListBucketResult><ObjectLockEnabled>Enabled</ObjectLockEnabled></ListBucketResult>",
            ),
            (200, "<ObjectLockConfiguration/>"),
            (200, ""),
            (404, none),
            (404, ""),
            (405, ""),
            (501, "<Error><Code>NotImplemented</Code></Error>"),
            (400, "<Error><Code>NotImplemented</Code></Error>"),
        ];
        assert_eq!(answer(200, locked).unwrap(), Locked::Yes);
        assert_eq!(answer(403, denied).unwrap(), Locked::CannotTell);
        assert_eq!(answer(403, "").unwrap(), Locked::CannotTell);
        for (status, body) in passes {
            assert_eq!(answer(status, body).unwrap(), Locked::No, "{status} {body}");
        }
    }

    #[test]
    fn what_is_no_answer_says_what_to_do() {
        for (status, code, expected) in [
            (403, "SignatureDoesNotMatch", "secret access key"),
            (403, "InvalidAccessKeyId", "access key"),
            (404, "NoSuchBucket", "no such bucket"),
            (301, "PermanentRedirect", "region"),
            (400, "AuthorizationHeaderMalformed", "region"),
            (500, "InternalError", "500"),
            (503, "SlowDown", "503"),
        ] {
            let body: String = format!("<Error><Code>{code}</Code></Error>");
            let body: &'static str = Box::leak(body.into_boxed_str());
            let error = answer(status, body).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }
}
