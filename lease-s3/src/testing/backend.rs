//! Objects in memory, behind one lock: comparing and writing are one step.

use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::BodyExt as _;
use lease_core::fencing::{Clock as _, SystemClock};
use s3s::{
    Body, S3, S3Error, S3Request, S3Response, S3Result,
    dto::{
        DeleteObjectInput, DeleteObjectOutput, ETag, ETagCondition, GetObjectInput,
        GetObjectLockConfigurationInput, GetObjectLockConfigurationOutput, GetObjectOutput,
        PutObjectInput, PutObjectOutput, StreamingBlob,
    },
    s3_error,
};
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The bucket that there is.
pub(super) const BUCKET: &str = "leases";

#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) content: bytes::Bytes,
    pub(super) tag: String,
    /// In seconds since 1970.
    modified: i64,
}

/// How the conditions of one request are looked at; travels in its extensions.
#[derive(Clone, Debug, Default)]
pub(super) struct Lax {
    pub(super) ignores_if_match: bool,
    pub(super) ignores_if_none_match: bool,
    pub(super) writes_missing: bool,
    pub(super) missing_is_412: bool,
    pub(super) never_304: bool,
    /// How many creators of one object are let win.
    pub(super) creators_win: usize,
    /// How many replacers of one version are let win.
    pub(super) replacers_win: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Backend(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    objects: HashMap<String, Object>,
    /// Who came with one condition on one key: how many, and how many of them won.
    came: HashMap<(String, String), (usize, usize)>,
    writes: usize,
}

impl Backend {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn object(&self, key: &str) -> Option<Object> {
        self.lock().objects.get(key).cloned()
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.lock().objects.keys().cloned().collect();
        keys.sort();
        keys
    }

    /// How many writes were applied.
    pub(super) fn writes(&self) -> usize {
        self.lock().writes
    }

    pub(super) fn put_by_hand(&self, key: &str, content: bytes::Bytes) {
        self.lock().put(key, content);
    }

    pub(super) fn remove(&self, key: &str) {
        self.lock().objects.remove(key);
    }
}

impl State {
    fn put(&mut self, key: &str, content: bytes::Bytes) -> String {
        let digest = Sha256::digest(&content);
        let tag: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let object = Object { content, tag: tag.clone(), modified: now() };
        self.objects.insert(key.to_owned(), object);
        self.writes += 1;
        tag
    }

    /// Whether the conditions let this write pass, in the way of this server.
    fn check(&mut self, input: &PutObjectInput, lax: &Lax) -> S3Result<()> {
        let (condition, most) = match &input.if_match {
            Some(ETagCondition::ETag(tag)) => (tag.value().to_owned(), lax.replacers_win),
            Some(ETagCondition::Any) | None => ("*".to_owned(), lax.creators_win),
        };
        let passes = self.passes(input, lax);
        let (came, won) = self.came.entry((input.key.clone(), condition)).or_default();
        *came += 1;
        // Two of them may have come one after the other; from the third on it is a race, in which
        // a server that compares first and writes later lets more than one win.
        let passes = if *came > 2 && *won < most { Ok(()) } else { passes };
        *won += usize::from(passes.is_ok());
        passes
    }

    fn passes(&self, input: &PutObjectInput, lax: &Lax) -> S3Result<()> {
        let current = self.objects.get(&input.key).map(|object| &object.tag);
        if input.if_none_match.is_some() && current.is_some() && !lax.ignores_if_none_match {
            return Err(s3_error!(PreconditionFailed));
        }
        let Some(ETagCondition::ETag(expected)) = &input.if_match else { return Ok(()) };
        match current {
            _ if lax.ignores_if_match => Ok(()),
            None if lax.writes_missing => Ok(()),
            None if lax.missing_is_412 => Err(s3_error!(PreconditionFailed)),
            None => Err(s3_error!(NoSuchKey)),
            Some(tag) if expected.as_strong() == Some(tag) => Ok(()),
            Some(_) => Err(s3_error!(PreconditionFailed)),
        }
    }
}

pub(super) fn now() -> i64 {
    i64::try_from(SystemClock::new().reading().wall.unix_seconds()).unwrap_or_default()
}

/// The date as HTTP has it.
pub(super) fn http_date(second: i64) -> String {
    let at = jiff::Timestamp::from_second(second).unwrap_or_default();
    at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

fn headers(pairs: &[(HeaderName, String)]) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).ok();
    pairs.iter().filter_map(|(name, text)| Some((name.clone(), value(text)?))).collect()
}

fn bucket(name: &str) -> S3Result<()> {
    if name == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

async fn collect(body: Option<StreamingBlob>) -> S3Result<bytes::Bytes> {
    let Some(body) = body else { return Ok(bytes::Bytes::new()) };
    let collected = Body::from(body).collect().await;
    collected.map(http_body_util::Collected::to_bytes).map_err(|_| s3_error!(IncompleteBody))
}

#[async_trait::async_trait]
impl S3 for Backend {
    async fn put_object(
        &self,
        mut request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        bucket(&request.input.bucket)?;
        let lax = request.extensions.get::<Lax>().cloned().unwrap_or_default();
        let content = collect(request.input.body.take()).await?;
        let mut state = self.lock();
        state.check(&request.input, &lax)?;
        let tag = state.put(&request.input.key, content);
        let output = PutObjectOutput { e_tag: Some(ETag::Strong(tag)), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        bucket(&request.input.bucket)?;
        let lax = request.extensions.get::<Lax>().cloned().unwrap_or_default();
        let object = self.object(&request.input.key).ok_or_else(|| s3_error!(NoSuchKey))?;
        let known = request.input.if_none_match.as_ref().and_then(ETagCondition::as_etag);
        if known.is_some_and(|known| known.value() == object.tag) && !lax.never_304 {
            let mut error: S3Error = s3_error!(NotModified);
            error.set_headers(headers(&[(http::header::ETAG, format!("\"{}\"", object.tag))]));
            return Err(error);
        }
        let length = i64::try_from(object.content.len()).ok();
        let output = GetObjectOutput {
            body: Some(StreamingBlob::from(Body::from(object.content))),
            content_length: length,
            e_tag: Some(ETag::Strong(object.tag)),
            ..Default::default()
        };
        let mut response = S3Response::new(output);
        let modified = http_date(object.modified);
        response.headers = headers(&[(http::header::LAST_MODIFIED, modified)]);
        Ok(response)
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        bucket(&request.input.bucket)?;
        self.remove(&request.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    async fn get_object_lock_configuration(
        &self,
        request: S3Request<GetObjectLockConfigurationInput>,
    ) -> S3Result<S3Response<GetObjectLockConfigurationOutput>> {
        bucket(&request.input.bucket)?;
        Err(s3_error!(ObjectLockConfigurationNotFoundError))
    }
}
