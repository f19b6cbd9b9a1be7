//! A real server as the environment names it, and its buckets.

use lease_s3::{AmazonS3Builder, S3Options, S3Store};
use libtest_mimic::Failed;
use object_store::{
    ClientOptions,
    aws::{AwsAuthorizer, AwsCredential},
    client::{HttpConnector as _, HttpRequest, HttpRequestBody, ReqwestConnector},
};

/// A server, its bucket and its keys.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) bucket: String,
    endpoint: String,
    access_key: String,
    secret_key: String,
}

impl Server {
    /// From `HA_TEST_S3_<NAME>_URL` (an `s3://bucket/prefix?endpoint=…`) and the keys beside it.
    pub(crate) fn from_env(name: &str) -> Option<Self> {
        let prefix =
            if name.is_empty() { "HA_TEST_S3".to_owned() } else { format!("HA_TEST_S3_{name}") };
        let value = |what: &str| std::env::var(format!("{prefix}_{what}")).ok();
        let url = value("URL")?;
        let (bucket, rest) = url.strip_prefix("s3://")?.split_once('/')?;
        let (_, endpoint) = rest.split_once("endpoint=")?;
        let endpoint = endpoint.split('&').next()?.to_owned();
        let key = |what: &str, aws: &str| value(what).or_else(|| std::env::var(aws).ok());
        let access_key = key("ACCESS_KEY", "AWS_ACCESS_KEY_ID")?;
        let secret_key = key("SECRET_KEY", "AWS_SECRET_ACCESS_KEY")?;
        let name = if name.is_empty() { "MINIO" } else { name };
        Some(Self::new(name, bucket, &endpoint, (&access_key, &secret_key)))
    }

    pub(crate) fn new(name: &str, bucket: &str, endpoint: &str, keys: (&str, &str)) -> Self {
        Self {
            name: name.to_owned(),
            bucket: bucket.to_owned(),
            endpoint: endpoint.to_owned(),
            access_key: keys.0.to_owned(),
            secret_key: keys.1.to_owned(),
        }
    }

    pub(crate) fn options(&self) -> S3Options {
        self.options_of(&self.bucket)
    }

    pub(crate) fn options_of(&self, bucket: &str) -> S3Options {
        self.options_at(&self.endpoint, bucket)
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The same, reached by a proxy.
    pub(crate) fn options_through(&self, endpoint: &str) -> S3Options {
        self.options_at(endpoint, &self.bucket)
    }

    fn options_at(&self, endpoint: &str, bucket: &str) -> S3Options {
        let builder = AmazonS3Builder::new()
            .with_endpoint(endpoint)
            .with_bucket_name(bucket)
            .with_access_key_id(&self.access_key)
            .with_secret_access_key(&self.secret_key);
        S3Store::from_builder(builder, "p").unwrap()
    }

    /// Creates a bucket; one that is there already will do.
    pub(crate) async fn create_bucket(&self, bucket: &str) -> Result<(), Failed> {
        match self.put(bucket, "").await? {
            200..=299 | 409 => Ok(()),
            status => Err(format!("creating the bucket {bucket} was answered {status}").into()),
        }
    }

    pub(crate) async fn enable_versions(&self, bucket: &str) -> Result<(), Failed> {
        let body = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                    <Status>Enabled</Status></VersioningConfiguration>";
        match self.put(&format!("{bucket}?versioning"), body).await? {
            200..=299 => Ok(()),
            status => Err(format!("versioning {bucket} was answered {status}").into()),
        }
    }

    /// A signed PUT on the server, and its status.
    async fn put(&self, path: &str, body: &str) -> Result<u16, Failed> {
        let credential = AwsCredential {
            key_id: self.access_key.clone(),
            secret_key: self.secret_key.clone(),
            token: None,
        };
        let mut request = HttpRequest::new(HttpRequestBody::from(body.to_owned()));
        *request.method_mut() = http::Method::PUT;
        *request.uri_mut() = format!("{}/{path}", self.endpoint).parse()?;
        let signer = AwsAuthorizer::new(&credential, "s3", "us-east-1");
        signer.try_authorize(&mut request, None)?;
        let options = ClientOptions::new().with_allow_http(true);
        let client = ReqwestConnector::default().connect(&options)?;
        Ok(client.execute(request).await?.status().as_u16())
    }
}
