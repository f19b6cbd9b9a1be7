//! Servers with certificates of their own making: whom the driver trusts, and what it says otherwise.

use crate::{key, trials};
use lease_core::{LeaseStore as _, StoreErrorKind};
use lease_s3::{
    OpenError, S3Options, S3Store, UrlError,
    testing::{Requests, TestServer},
};
use libtest_mimic::Trial;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::sync::Arc;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
    },
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_certificate_that_nobody_signed_is_refused_with_what_to_do,
        a_private_ca_is_trusted_when_it_is_named,
        a_certificate_for_another_name_is_told,
        a_certificate_that_is_out_of_date_is_told,
        a_certificate_of_a_ca_itself_is_told,
        files_of_certificates_that_cannot_be_used_are_told,
    ]
}

/// A private CA.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: CertificateDer<'static>,
    pem: String,
}

/// A certificate with its key.
struct Identity(CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let (der, pem) = (certificate.der().clone(), certificate.pem());
        Self { issuer: Issuer::new(params, key), der, pem }
    }

    /// A server's certificate, valid until the year.
    fn signs(&self, name: &str, until: i32) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity(certificate.der().clone(), private(&key))
    }

    /// The CA's own certificate, as if it were a server's.
    fn itself(&self) -> Identity {
        Identity(self.der.clone(), private(self.issuer.key()))
    }
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}

/// The server behind TLS: its endpoint is `https://localhost:port`.
async fn behind_tls(server: &TestServer, identity: Identity) -> String {
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![identity.0], identity.1)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let server = server.endpoint().replace("http://", "");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, server) = (acceptor.clone(), server.clone());
            tokio::spawn(async move {
                let mut client = acceptor.accept(stream).await?;
                let mut server = TcpStream::connect(server).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    endpoint
}

fn options(server: &TestServer, endpoint: &str) -> S3Options {
    S3Store::from_builder(server.builder().with_endpoint(endpoint), "p").unwrap()
}

/// What is said of the certificate, by connecting and by a lease that is held already.
async fn refused(server: &TestServer, options: S3Options) -> String {
    let error = options.clone().connect().await.unwrap_err();
    let OpenError::Certificate { found, .. } = &error else { panic!("{error:?}") };
    let store = options.unprobed().unwrap();
    let write = store.create_if_absent(&key(), "content".into()).await.unwrap_err();
    assert_eq!(write.kind(), StoreErrorKind::Unavailable, "certainly not written");
    let (_, advice) = found.rsplit_once("; ").unwrap();
    assert!(crate::text(&write).contains(advice), "{write}");
    assert_eq!(server.take_requests(), Requests::default());
    println!("{error}");
    error.to_string()
}

async fn a_certificate_that_nobody_signed_is_refused_with_what_to_do() {
    let server = TestServer::start().await.unwrap();
    let endpoint = behind_tls(&server, Authority::new().signs("localhost", 2100)).await;
    let text = refused(&server, options(&server, &endpoint)).await;
    assert!(text.contains(&endpoint) && text.contains("private CA"), "{text}");
    assert!(text.contains("option `ca`"), "{text}");
    // Nor is it signed by another CA than the one that is named.
    let other = options(&server, &endpoint).root_certificates(Authority::new().pem.as_bytes());
    refused(&server, other.unwrap()).await;
}

async fn a_private_ca_is_trusted_when_it_is_named() {
    let (server, ca) = (TestServer::start().await.unwrap(), Authority::new());
    let endpoint = behind_tls(&server, ca.signs("localhost", 2100)).await;
    // A bundle of several, in any order.
    let bundle = Authority::new().pem + &ca.pem;
    let options = options(&server, &endpoint).root_certificates(bundle.as_bytes()).unwrap();
    assert!(format!("{options:?}").contains("root_certificates: 2"), "{options:?}");
    let store = options.clone().connect().await.unwrap();
    store.create_if_absent(&key(), "content".into()).await.unwrap();
    assert_eq!(server.content(crate::OBJECT).unwrap(), "content");
    // So does the client for what is no lease.
    let objects = options.object_store().unwrap();
    let path = object_store::path::Path::from(key().as_str());
    let read = object_store::ObjectStoreExt::get(&objects, &path).await.unwrap();
    assert_eq!(read.bytes().await.unwrap(), "content");
}

async fn a_certificate_for_another_name_is_told() {
    let (server, ca) = (TestServer::start().await.unwrap(), Authority::new());
    let endpoint = behind_tls(&server, ca.signs("minio.internal", 2100)).await;
    let options = options(&server, &endpoint).root_certificates(ca.pem.as_bytes()).unwrap();
    let text = refused(&server, options).await;
    assert!(text.contains("minio.internal") && text.contains("another host name"), "{text}");
}

async fn a_certificate_that_is_out_of_date_is_told() {
    let (server, ca) = (TestServer::start().await.unwrap(), Authority::new());
    let endpoint = behind_tls(&server, ca.signs("localhost", 2001)).await;
    let options = options(&server, &endpoint).root_certificates(ca.pem.as_bytes()).unwrap();
    let text = refused(&server, options).await;
    assert!(text.contains("expired") && text.contains("renew it"), "{text}");
}

async fn a_certificate_of_a_ca_itself_is_told() {
    let (server, ca) = (TestServer::start().await.unwrap(), Authority::new());
    let endpoint = behind_tls(&server, ca.itself()).await;
    let options = options(&server, &endpoint).root_certificates(ca.pem.as_bytes()).unwrap();
    let text = refused(&server, options).await;
    assert!(text.contains("the certificate of a CA itself"), "{text}");
}

async fn files_of_certificates_that_cannot_be_used_are_told() {
    let scratch = tempfile::tempdir().unwrap();
    let url = |path: &std::path::Path| {
        let path = path.display();
        S3Store::from_url(&format!("s3://ha/orders?endpoint=https://localhost&ca={path}"))
    };
    let file = scratch.path().join("ca.pem");
    assert!(matches!(url(&file), Err(UrlError::Certificates { .. })));
    std::fs::write(&file, "no certificate").unwrap();
    assert!(matches!(url(&file), Err(UrlError::Certificates { .. })));
    let torn = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n";
    std::fs::write(&file, torn).unwrap();
    let error = url(&file).unwrap_err();
    assert!(matches!(error, UrlError::Certificates { .. }), "{error}");
    std::fs::write(&file, Authority::new().pem).unwrap();
    let options = url(&file).unwrap();
    assert!(format!("{options:?}").contains("root_certificates: 1"), "{options:?}");
}
