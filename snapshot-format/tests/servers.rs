//! Snapshots on real S3 servers, where the environment names them; `tests/servers.sh` starts them.
//! Each that is not named is reported as *ignored*. `HA_TEST_S3_URL` is MinIO or any other.
#![allow(clippy::unwrap_used, reason = "these are tests, whatever they are called")]

#[path = "support/mod.rs"]
mod support;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use libtest_mimic::{Arguments, Failed, Trial};
use object_store::{
    ClientOptions, ObjectStore, ObjectStoreExt as _,
    aws::{AmazonS3Builder, AwsAuthorizer, AwsCredential},
    client::{HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector},
    prefix::PrefixStore,
};
use snapshot_format::{
    Catalog, Writer,
    catalog::Verdict,
    fencing::{Clock, FenceControl, SystemClock},
    lease_core::key::InstanceId,
    stream::Headerless,
    writer::{Stored, WriteError},
};
use std::{env, future::pending, io::Cursor, sync::Arc, time::Duration};
use support::{CIPHER, epoch, layout, name, snapshot};

const MIB: usize = 1024 * 1024;

fn main() {
    let mut trials = Vec::new();
    for server in ["", "CEPH", "MINISTACK", "MOTO"] {
        let store = open(server);
        let named = if server.is_empty() { "minio".to_owned() } else { server.to_lowercase() };
        let is_unset = store.is_none();
        let mut test = |what: &str, test: fn(Server) -> Result<(), Failed>| {
            let store = store.clone();
            let trial = Trial::test(format!("{named}::{what}"), move || test(store.unwrap()));
            trials.push(trial.with_ignored_flag(is_unset));
        };
        test("what_is_written_comes_back", |server| run(comes_back(server)));
        test("case_40_the_second_page_is_read", |server| run(second_page(server)));
        test("nothing_is_overwritten", |server| run(nothing_is_overwritten(server)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}

fn run(test: impl Future<Output = Result<(), Failed>>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let limit = Duration::from_secs(300);
    runtime
        .block_on(async { tokio::time::timeout(limit, test).await })
        .map_err(|_| format!("not done within {limit:?}"))?
}

#[derive(Clone)]
struct Server {
    endpoint: String,
    bucket: String,
    credential: (String, String),
}

fn open(server: &str) -> Option<Server> {
    let prefix =
        if server.is_empty() { "HA_TEST_S3".to_owned() } else { format!("HA_TEST_S3_{server}") };
    let value = |what: &str| env::var(format!("{prefix}_{what}")).ok();
    let url = value("URL")?;
    let (bucket, rest) = url.strip_prefix("s3://")?.split_once('/')?;
    let endpoint = rest.split_once("endpoint=")?.1.split('&').next()?.to_owned();
    let key = |what: &str, aws: &str| value(what).or_else(|| env::var(aws).ok());
    let credential =
        (key("ACCESS_KEY", "AWS_ACCESS_KEY_ID")?, key("SECRET_KEY", "AWS_SECRET_ACCESS_KEY")?);
    Some(Server { endpoint, bucket: bucket.to_owned(), credential })
}

impl Server {
    /// A prefix of its own, since others and earlier runs may use the bucket.
    async fn store(&self) -> Result<Arc<dyn ObjectStore>, Failed> {
        self.create_bucket().await?;
        let store = AmazonS3Builder::new()
            .with_endpoint(&self.endpoint)
            .with_allow_http(true)
            .with_bucket_name(&self.bucket)
            .with_access_key_id(&self.credential.0)
            .with_secret_access_key(&self.credential.1)
            .build()?;
        let own = SystemClock::new().reading().wall.unix_nanos();
        Ok(Arc::new(PrefixStore::new(store, format!("snapshots-{own:x}"))))
    }

    async fn create_bucket(&self) -> Result<(), Failed> {
        let (key_id, secret_key) = self.credential.clone();
        let credential = AwsCredential { key_id, secret_key, token: None };
        let mut request = HttpRequest::new(HttpRequestBody::empty());
        *request.method_mut() = http::Method::PUT;
        *request.uri_mut() = format!("{}/{}", self.endpoint, self.bucket).parse()?;
        AwsAuthorizer::new(&credential, "s3", "us-east-1").try_authorize(&mut request, None)?;
        let options = ClientOptions::new().with_allow_http(true);
        let answer = ReqwestConnector::default().connect(&options)?.execute(request).await?;
        match answer.status().as_u16() {
            200..=299 | 409 => Ok(()),
            status => Err(format!("creating the bucket was answered {status}").into()),
        }
    }
}

async fn write(writer: &mut Writer, bytes: usize) -> Result<Stored, WriteError> {
    let clock = SystemClock::new();
    let mut control = FenceControl::new(epoch(7), Arc::new(clock));
    control.open(clock.reading(), Duration::from_secs(600))?;
    writer.write(&control.fence(), Cursor::new(vec![b'x'; bytes]), pending()).await
}

fn writer(store: &Arc<dyn ObjectStore>) -> Writer {
    let instance = InstanceId::new("s-1").unwrap();
    Writer::new(store.clone(), layout(), CIPHER.clone(), instance).single_put_max(MIB)
}

async fn comes_back(server: Server) -> Result<(), Failed> {
    let store = server.store().await?;
    let catalog = Catalog::new(store.clone(), layout(), CIPHER.clone());
    assert!(catalog.list().await?.is_empty());
    let mut writer = writer(&store);
    for bytes in [0, 1000, 11 * MIB] {
        let stored = write(&mut writer, bytes).await?;
        let listed = catalog.list().await?.snapshots.remove(0);
        assert_eq!((&listed.key, listed.size), (&stored.key, stored.sealed_bytes));
        assert_eq!(catalog.check(&listed).await, Verdict::Verified(stored.header));
        let (opened, database) = catalog.restore(&listed, Headerless::Refuse, Vec::new()).await?;
        assert_eq!(opened.database_bytes, bytes as u64);
        assert!(database == vec![b'x'; bytes]);
    }
    assert_eq!(catalog.highest_epoch().await?, Some(epoch(7)));
    Ok(())
}

/// S3 lists a thousand at a time, by text; the newest is behind them.
async fn second_page(server: Server) -> Result<(), Failed> {
    let store = server.store().await?;
    let planted = stream::iter(0..1_010).map(|millis| {
        let (store, key) = (store.clone(), layout().key(&name(9, millis)));
        async move { store.put(&key, "planted".into()).await }
    });
    planted.buffer_unordered(16).try_collect::<Vec<_>>().await?;
    let newest = name(10, 5_000);
    store.put(&layout().key(&newest), snapshot(newest, b"database").into()).await?;
    let catalog = Catalog::new(store, layout(), CIPHER.clone());
    let listing = catalog.list().await?;
    assert_eq!((listing.snapshots.len(), listing.snapshots[0].name), (1_011, newest));
    assert_eq!(catalog.highest_epoch().await?, Some(epoch(10)));
    let refused = catalog.check(&listing.snapshots[1]).await;
    assert!(matches!(refused, Verdict::Refused(_)), "{refused:?}");
    Ok(())
}

/// A clock that stands still gives two writers one name.
async fn nothing_is_overwritten(server: Server) -> Result<(), Failed> {
    let store = server.store().await?;
    let clock = snapshot_format::fencing::testing::ManualClock::new();
    let mut first = writer(&store).clock(Arc::new(clock.clone()));
    let mut second = writer(&store).clock(Arc::new(clock));
    let stored = write(&mut first, 10).await?;
    match write(&mut second, 20).await {
        Err(WriteError::Taken { key }) if key == stored.key => {}
        other => return Err(format!("{other:?}").into()),
    }
    assert_eq!(store.head(&stored.key).await?.size, stored.sealed_bytes);
    Ok(())
}
