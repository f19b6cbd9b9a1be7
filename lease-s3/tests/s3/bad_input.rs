//! What people get wrong: each a typed error that says what to fix, without a secret.

use crate::{key, trials};
use lease_core::{LeaseStore as _, StoreErrorKind};
use lease_s3::{
    AmazonS3Builder, OpenError, S3Options, S3Store, UrlError,
    testing::{Fault, Method, Quirk, TestServer},
};
use libtest_mimic::Trial;
use tokio::{io::AsyncWriteExt as _, net::TcpListener};

const SECRET: &str = "a-secret-that-nobody-may-see";

pub(crate) fn trials() -> Vec<Trial> {
    #[cfg(feature = "azure")]
    let azure = trials![an_azure_builder_is_looked_at_as_an_s3_one_is];
    #[cfg(not(feature = "azure"))]
    let azure = [];
    of_s3().into_iter().chain(azure).collect()
}

fn of_s3() -> Vec<Trial> {
    trials![
        a_wrong_bucket_is_named,
        a_wrong_access_key_is_told,
        a_wrong_secret_key_is_told,
        a_wrong_region_is_told,
        no_network_is_told_and_nothing_was_sent,
        a_host_that_does_not_exist_is_told,
        a_tls_failure_is_told_and_nothing_was_sent,
        plain_http_only_where_the_endpoint_says_so,
        read_only_credentials_are_told,
        a_server_that_is_no_store_is_told,
        half_credentials_are_told,
        prefixes_and_urls_are_refused_not_rewritten,
    ]
}

/// How connecting failed, after making sure that nothing shows the secret.
async fn refused(options: S3Options) -> OpenError {
    let debug = format!("{options:?} {options}");
    let error = options.connect().await.unwrap_err();
    let all = format!("{debug} {error} {error:?}");
    assert!(!all.contains(SECRET) && !all.contains("test-secret-key"), "{all}");
    assert!(!all.contains("Signature="), "{all}");
    error
}

/// The same where the store could not be asked.
async fn unavailable(options: S3Options) -> String {
    let error = refused(options).await;
    let OpenError::Unavailable { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), StoreErrorKind::Unavailable, "{error}");
    error.to_string()
}

fn options(builder: AmazonS3Builder) -> S3Options {
    S3Store::from_builder(builder, "p").unwrap()
}

fn with_keys(endpoint: &str) -> AmazonS3Builder {
    AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_bucket_name("leases")
        .with_access_key_id("key")
        .with_secret_access_key(SECRET)
}

async fn a_wrong_bucket_is_named() {
    let server = TestServer::start().await.unwrap();
    let text = unavailable(options(server.builder().with_bucket_name("other"))).await;
    assert!(text.contains("s3://other/p") && text.contains("no such bucket"), "{text}");
}

async fn a_wrong_access_key_is_told() {
    let server = TestServer::start().await.unwrap();
    let text = unavailable(options(server.builder().with_access_key_id("other"))).await;
    assert!(text.contains("does not know the access key"), "{text}");
}

async fn a_wrong_secret_key_is_told() {
    let server = TestServer::start().await.unwrap();
    let text = unavailable(options(server.builder().with_secret_access_key(SECRET))).await;
    assert!(text.contains("the secret access key is wrong"), "{text}");
}

async fn a_wrong_region_is_told() {
    for (status, code) in [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed")] {
        let server = TestServer::start().await.unwrap();
        server.next(Method::GET, Fault::Answer(status, code));
        let text = unavailable(server.options("p")).await;
        assert!(text.contains("set `region`"), "{text}");
    }
}

/// A port on which nothing listens.
async fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("127.0.0.1:{}", listener.local_addr().unwrap().port())
}

async fn no_network_is_told_and_nothing_was_sent() {
    let endpoint = format!("http://{}", free_port().await);
    let text = unavailable(options(with_keys(&endpoint))).await;
    assert!(text.contains("no connection") && text.contains(&endpoint), "{text}");
    // A write that could not be sent is certainly not written.
    let store = options(with_keys(&endpoint)).unprobed().unwrap();
    let error = store.create_if_absent(&key(), "content".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
}

async fn a_host_that_does_not_exist_is_told() {
    let text = unavailable(options(with_keys("http://no-such-host.invalid"))).await;
    assert!(text.contains("no connection"), "{text}");
}

async fn a_tls_failure_is_told_and_nothing_was_sent() {
    // A server that speaks no TLS, and one that closes at once.
    let server = TestServer::start().await.unwrap();
    let closing = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closes_at = closing.local_addr().unwrap();
    let closer = tokio::spawn(async move {
        while let Ok((mut stream, _)) = closing.accept().await {
            drop(stream.shutdown().await);
        }
    });
    let https = |address: &str| format!("https://{address}");
    let plain = server.endpoint().replace("http://", "");
    for endpoint in [https(&plain), https(&closes_at.to_string())] {
        let text = unavailable(options(with_keys(&endpoint))).await;
        assert!(text.contains("no connection") && text.contains("certificate"), "{text}");
        let store = options(with_keys(&endpoint)).unprobed().unwrap();
        let error = store.create_if_absent(&key(), "content".into()).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    }
    assert_eq!(server.writes(), 0);
    closer.abort();
}

async fn plain_http_only_where_the_endpoint_says_so() {
    let server = TestServer::start().await.unwrap();
    // Whatever the builder was told.
    let https = server.endpoint().replace("http://", "https://");
    let builder = server.builder().with_endpoint(https).with_allow_http(true);
    unavailable(options(builder)).await;
    assert_eq!(server.take_requests(), lease_s3::testing::Requests::default());
    options(server.builder().with_allow_http(false)).connect().await.unwrap();
}

async fn read_only_credentials_are_told() {
    let server = TestServer::start().await.unwrap();
    server.set_quirks(&[Quirk::ReadOnly]);
    let text = unavailable(server.options("p")).await;
    assert!(text.contains("403") && text.contains("s3:PutObject"), "{text}");
}

async fn a_server_that_is_no_store_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let web = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let page =
                "HTTP/1.1 200 OK\r\nContent-Length: 13\r\nConnection: close\r\n\r\n<html></html>";
            drop(stream.write_all(page.as_bytes()).await);
        }
    });
    let error = refused(options(with_keys(&endpoint))).await;
    // It answered, but nothing that a lease could rest on.
    assert!(matches!(error, OpenError::Refused { .. } | OpenError::Unavailable { .. }), "{error}");
    web.abort();
}

async fn half_credentials_are_told() {
    let half = AmazonS3Builder::new().with_bucket_name("leases").with_secret_access_key(SECRET);
    let error = S3Store::from_builder(half, "p").unwrap_err();
    assert_eq!(error, UrlError::HalfCredentials);
    assert_eq!(S3Store::from_builder(AmazonS3Builder::new(), "p").unwrap_err(), UrlError::Bucket);
}

#[cfg(feature = "azure")]
async fn an_azure_builder_is_looked_at_as_an_s3_one_is() {
    use lease_s3::MicrosoftAzureBuilder;
    let account = || {
        MicrosoftAzureBuilder::new()
            .with_account("account")
            .with_access_key("c2VjcmV0")
            .with_endpoint(format!("http://{SECRET}@127.0.0.1:1/account"))
    };
    let error = S3Store::from_azure_builder(account(), "p").unwrap_err();
    assert_eq!(error, UrlError::Bucket);
    let error = S3Store::from_azure_builder(account().with_container_name("ha"), "p").unwrap_err();
    assert!(matches!(error, UrlError::Value { name: "endpoint", .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains(SECRET));

    let endpoint = format!("http://{}", free_port().await);
    let builder = account().with_container_name("ha").with_endpoint(endpoint.clone());
    let error = S3Store::from_azure_builder(builder.clone(), "a//b").unwrap_err();
    assert_eq!(error, UrlError::Prefix);
    // Plain HTTP, since the endpoint says so, whatever the builder was told.
    let options = S3Store::from_azure_builder(builder.with_allow_http(false), "p").unwrap();
    assert_eq!(options.to_string(), format!("az://ha/p at {endpoint}"));
    let text = unavailable(options).await;
    assert!(text.contains("no connection") && !text.contains("c2VjcmV0"), "{text}");
}

async fn prefixes_and_urls_are_refused_not_rewritten() {
    let server = TestServer::start().await.unwrap();
    for prefix in ["/abs", "a//b", "a/", "../x", ".", "a b", "%2e", "a\0b", "é"] {
        let error = S3Store::from_builder(server.builder(), prefix).unwrap_err();
        assert_eq!(error, UrlError::Prefix, "{prefix:?}");
    }
    let schemes = ["ftp://leases/p", "http://leases/p", "file:///leases", "minio://leases/p"];
    for url in schemes {
        assert_eq!(S3Store::from_url(url).unwrap_err(), UrlError::Scheme, "{url}");
    }
    // An empty prefix is the bucket itself, and its keys are what they say.
    let store = server.options("").connect().await.unwrap();
    store.create_if_absent(&key(), "content".into()).await.unwrap();
    assert_eq!(server.keys(), ["orders/lease.json"]);
}
