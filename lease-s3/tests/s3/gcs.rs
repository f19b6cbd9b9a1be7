//! The same driver on Google Cloud Storage's XML API, over a server of its preconditions in this
//! process (feature `gcp`).

use crate::{run, trials};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use lease_core::{
    LeaseStore as _, ObjectKey, StoreErrorKind, Timing, Version,
    testing::conformance::{Capabilities, Case, Suite, Target},
};
use lease_s3::{GoogleCloudStorageBuilder, Provider, S3Store};
use libtest_mimic::{Failed, Trial};
use std::{
    collections::HashMap,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::net::TcpListener;

/// Generations grow with every write, and this server tells no dates.
const GCS: Capabilities =
    Capabilities { content_versions: false, tells_age: false, ..Capabilities::ALL };

pub(crate) fn trials() -> Vec<Trial> {
    let mut all = trials![a_generation_is_the_version, a_lease_that_is_too_fast_is_warned_about];
    all.extend(Suite::new(GCS).cases().map(trial));
    all
}

fn trial(case: Case) -> Trial {
    let body = move || {
        run(async move {
            let target = Target::new(connected().await, ObjectKey::new("suite")?);
            case.run(target.with_increments(20)).await.map_err(Failed::from)
        })
    };
    let skipped = case.skipped_for(GCS).is_some();
    Trial::test(format!("conformance::gcs::{}", case.name()), body).with_ignored_flag(skipped)
}

/// The last generation that was given, and the objects by their path, each with its own.
type Objects = Arc<Mutex<(u64, HashMap<String, (u64, Bytes)>)>>;

/// A store that was connected to a server of its own.
async fn connected() -> S3Store {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let objects = Objects::default();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let objects = Arc::clone(&objects);
            let service = service_fn(move |request| answer(Arc::clone(&objects), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });
    let builder = GoogleCloudStorageBuilder::new()
        .with_bucket_name("leases")
        .with_base_url(&endpoint)
        .with_bearer_token("token");
    S3Store::from_gcs_builder(builder, "p").unwrap().connect().await.unwrap()
}

async fn answer(
    objects: Objects,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let value =
        |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let key = parts.uri.path().to_owned();
    let mut objects = objects.lock().unwrap();
    let (last, objects) = &mut *objects;
    let current = objects.get(&key).cloned();
    let generation = current.as_ref().map_or(0, |(generation, _)| *generation);
    let told = |status: StatusCode, generation: u64, body: Bytes| {
        Response::builder()
            .status(status)
            .header("etag", format!("\"tag-{generation}\""))
            .header("x-goog-generation", generation)
            .body(Full::new(body))
            .unwrap()
    };
    let error = |status: StatusCode, code: &str| {
        let text = format!("<?xml version='1.0'?><Error><Code>{code}</Code></Error>");
        Response::builder().status(status).body(Full::new(Bytes::from(text))).unwrap()
    };
    Ok(match (parts.method, current) {
        (Method::PUT, _) => {
            let expected = value("x-goog-if-generation-match").expect("no write is unconditional");
            if expected.parse() == Ok(generation) {
                *last += 7;
                objects.insert(key, (*last, body));
                told(StatusCode::OK, *last, Bytes::new())
            } else {
                error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed")
            }
        }
        (Method::DELETE, _) => {
            objects.remove(&key);
            Response::builder().status(204).body(Full::default()).unwrap()
        }
        (_, None) => error(StatusCode::NOT_FOUND, "NoSuchKey"),
        (_, Some(_)) if value("if-none-match") == Some(format!("\"tag-{generation}\"")) => {
            told(StatusCode::NOT_MODIFIED, generation, Bytes::new())
        }
        (_, Some((_, content))) => told(StatusCode::OK, generation, content),
    })
}

async fn a_generation_is_the_version() {
    let store = connected().await;
    let key = crate::key();
    assert_eq!(store.provider(), Provider::Gcs);
    let version = store.create_if_absent(&key, "one".into()).await.unwrap();
    assert_eq!(version.tag(), format!("tag-{}", version.generation().unwrap()));
    let next = store.replace_if_match(&key, "two".into(), &version).await.unwrap();
    // A version without its generation is none of this store's, and never sent as "any".
    let bare = Version::new(next.tag());
    let refused = store.replace_if_match(&key, "three".into(), &bare).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Precondition);
}

async fn a_lease_that_is_too_fast_is_warned_about() {
    let store = connected().await;
    let timing = Timing::short(Duration::from_millis(900), Duration::from_millis(300)).unwrap();
    assert!(store.check_timing(&timing).is_some());
    assert!(store.check_timing(&Timing::default()).is_none());
}
