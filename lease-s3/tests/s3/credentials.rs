//! Where credentials come from, that they are fetched again, and what a hung source costs.

use crate::{
    key,
    rig::{R, Stepped, renewed},
    trials,
};
use lease_core::{
    LeaseStore as _, StoreErrorKind,
    fencing::{Clock as _, SystemClock},
    machine::EndReason,
};
use lease_s3::{
    AmazonS3Builder, S3Options, S3Store,
    testing::{Fault, Method, TestServer},
};
use libtest_mimic::Trial;
use object_store::aws::AmazonS3ConfigKey;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    sync::watch,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        case_10_expired_credentials_are_fetched_again,
        case_10_a_source_that_hangs_costs_the_tenure_at_its_deadline_not_later,
        a_source_that_refuses_is_told_and_never_quoted,
        no_source_at_all_is_told,
    ]
}

/// A container's credential endpoint.
struct Source {
    token_file: tempfile::NamedTempFile,
    url: String,
    /// How often it was asked.
    fetches: watch::Receiver<usize>,
    hangs: Arc<AtomicBool>,
}

impl Source {
    /// One that answers with this status, and credentials that are good for so many seconds.
    async fn start(status: &'static str, good_for: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/credentials", listener.local_addr().unwrap());
        let ((count, fetches), hangs) = (watch::channel(0), Arc::<AtomicBool>::default());
        let hang = Arc::clone(&hangs);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let _read = stream.read(&mut request).await;
                let fetch = *count.borrow() + 1;
                count.send_replace(fetch);
                if hang.load(SeqCst) {
                    // Kept open, and never answered.
                    std::mem::forget(stream);
                    continue;
                }
                let expiry = SystemClock::new().reading().wall.unix_seconds() + good_for;
                let expiry = rfc3339(expiry);
                let body = format!(
                    r#"{{"AccessKeyId":"test-access-key","SecretAccessKey":"test-secret-key","Token":"token-{fetch}","Expiration":"{expiry}"}}"#
                );
                let reply = format!(
                    "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                drop(stream.write_all(reply.as_bytes()).await);
            }
        });
        let token_file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(token_file.path(), "authorization").unwrap();
        Self { token_file, url, fetches, hangs }
    }

    fn options(&self, server: &TestServer) -> S3Options {
        let builder = AmazonS3Builder::new()
            .with_endpoint(server.endpoint())
            .with_bucket_name("leases")
            .with_config(AmazonS3ConfigKey::ContainerCredentialsFullUri, &self.url)
            .with_config(
                AmazonS3ConfigKey::ContainerAuthorizationTokenFile,
                self.token_file.path().to_str().unwrap(),
            );
        S3Store::from_builder(builder, "p").unwrap()
    }
}

fn rfc3339(second: u64) -> String {
    let at = jiff::Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
    at.to_string()
}

async fn case_10_expired_credentials_are_fetched_again() {
    let server = TestServer::start().await.unwrap();
    let source = Source::start("200 OK", 3_600).await;
    let store = source.options(&server).connect().await.unwrap();
    let tokens = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&tokens);
    server.choose(move |seen| {
        let token = seen.headers.get("x-amz-security-token").unwrap().to_str().unwrap().to_owned();
        log.lock().unwrap().push(token);
        None
    });
    store.create_if_absent(&key(), "one".into()).await.unwrap();
    store.read_versioned(&key(), None).await.unwrap();
    let fetches = *source.fetches.borrow();
    // They should be good for an hour, and the store says that they are not.
    server.next(Method::GET, Fault::Answer(403, "ExpiredToken"));
    let error = store.read_versioned(&key(), None).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    store.read_versioned(&key(), None).await.unwrap();
    assert_eq!(*source.fetches.borrow(), fetches + 1);
    let tokens = tokens.lock().unwrap().clone();
    assert_eq!(tokens[0], tokens[1], "good ones are kept");
    assert_ne!(tokens.last(), tokens.first(), "{tokens:?}");
}

async fn case_10_a_source_that_hangs_costs_the_tenure_at_its_deadline_not_later() {
    let server = TestServer::start().await.unwrap();
    // So short that they are fetched anew for every request but those of the next 100 ms.
    let source = Source::start("200 OK", 60).await;
    let store = source.options(&server).connect().await.unwrap();
    let mut lease = Stepped::start(store).await;
    let fence = lease.tenure.fence();
    source.hangs.store(true, SeqCst);
    let (clock, mut fetches) = (SystemClock::new(), source.fetches.clone());
    let asked = *fetches.borrow();
    loop {
        // Those that were fetched last may do for a renewal or two.
        lease.clock.advance(R);
        tokio::select! {
            _ = renewed(&mut lease.events) => {}
            hung = fetches.wait_for(|fetches| *fetches > asked) => break drop(hung),
        }
    }
    let (began, deadline) = (clock.monotonic(), lease.deadline());
    lease.clock.advance_to(deadline - Duration::from_nanos(1));
    assert!(fence.check().is_ok());
    lease.clock.advance(Duration::from_nanos(1));
    assert!(fence.check().is_err(), "at the deadline itself it is shut");
    assert_eq!(lease.tenure.ended().await, EndReason::Expired);
    // The source is silent for 10 s before it is given up, and nobody waited for it.
    let took = began.until(clock.monotonic());
    assert!(took < Duration::from_secs(8), "the end was told after {took:?}");
}

async fn a_source_that_refuses_is_told_and_never_quoted() {
    let server = TestServer::start().await.unwrap();
    let source = Source::start("403 Forbidden", 60).await;
    let error = source.options(&server).connect().await.unwrap_err();
    let text = format!("{error} {error:?}");
    assert!(text.contains("the source of credentials answered 403"), "{text}");
    assert!(!text.contains("test-secret-key") && !text.contains("token-"), "{text}");
    let store = source.options(&server).unprobed().unwrap();
    let error = store.create_if_absent(&key(), "one".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(!crate::text(&error).contains("token-"));
    assert_eq!(server.take_requests(), lease_s3::testing::Requests::default());
}

async fn no_source_at_all_is_told() {
    let server = TestServer::start().await.unwrap();
    // An address on which no metadata service listens.
    let builder = AmazonS3Builder::new()
        .with_endpoint(server.endpoint())
        .with_bucket_name("leases")
        .with_metadata_endpoint("http://127.0.0.1:1");
    let store = S3Store::from_builder(builder, "p").unwrap().unprobed().unwrap();
    let error = store.create_if_absent(&key(), "one".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    let text = crate::text(&error);
    assert!(text.contains("AWS_ACCESS_KEY_ID") && text.contains("profile files"), "{text}");
}
