//! `s3://bucket/prefix?option=value`: parsed, not validated later.

use crate::{error::UrlError, options::ObjectLock, provider::Provider};
use std::{path::PathBuf, time::Duration};
use url::Url;

/// What a URL says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoreUrl {
    pub(crate) provider: Provider,
    pub(crate) bucket: String,
    pub(crate) prefix: String,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) region: Option<String>,
    pub(crate) path_style: bool,
    pub(crate) account: Option<String>,
    pub(crate) object_lock: ObjectLock,
    pub(crate) timeout: Duration,
    /// The file of certificates that are trusted beside those of the system.
    pub(crate) ca: Option<PathBuf>,
}

/// A server by its scheme, host and port, perhaps with a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Endpoint {
    /// Without a slash at its end.
    pub(crate) text: String,
    pub(crate) is_plain_http: bool,
}

const S3_OPTIONS: &str = "endpoint, region, path_style, allow_object_lock, timeout, ca";
const GCS_OPTIONS: &str = "endpoint, timeout, ca";
const AZURE_OPTIONS: &str = "account, endpoint, timeout, ca";
const ENDPOINT: &str = "http://host[:port] or https://host[:port], without a user";

impl StoreUrl {
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let url = Url::parse(text).map_err(|_| UrlError::NoUrl)?;
        let (provider, known) = match url.scheme() {
            "s3" => (Provider::S3, S3_OPTIONS),
            "gs" if cfg!(feature = "gcp") => (Provider::Gcs, GCS_OPTIONS),
            "az" if cfg!(feature = "azure") => (Provider::Azure, AZURE_OPTIONS),
            _ => return Err(UrlError::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            let instead = "credentials come from the environment or from a role";
            return Err(UrlError::HasNo { what: "user or password", instead });
        }
        if url.port().is_some() {
            let instead = "name the server by `endpoint`";
            return Err(UrlError::HasNo { what: "port", instead });
        }
        if url.fragment().is_some() {
            let instead = "leave out the '#'";
            return Err(UrlError::HasNo { what: "fragment", instead });
        }
        let bucket = url.host_str().map(bucket).ok_or(UrlError::Bucket)??;
        let path = url.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        // One slash at the end means nothing else than none.
        let prefix = prefix(path.strip_suffix('/').unwrap_or(path))?;
        let mut parsed = Self {
            provider,
            bucket,
            prefix,
            endpoint: None,
            region: None,
            path_style: true,
            account: None,
            object_lock: ObjectLock::default(),
            timeout: Duration::from_secs(30),
            ca: None,
        };
        parsed.take_options(&url, known)?;
        Ok(parsed)
    }

    fn take_options(&mut self, url: &Url, known: &'static str) -> Result<(), UrlError> {
        let mut seen = Vec::new();
        for (name, value) in url.query_pairs() {
            let Some(name) = known.split(", ").find(|known| *known == name) else {
                return Err(UrlError::UnknownOption { name: shown(&name), known });
            };
            if seen.contains(&name) {
                return Err(UrlError::RepeatedOption { name });
            }
            seen.push(name);
            self.take(name, &value)?;
        }
        Ok(())
    }

    fn take(&mut self, name: &'static str, value: &str) -> Result<(), UrlError> {
        let refuse = |expected| Err(UrlError::Value { name, expected });
        match (name, value) {
            ("endpoint", _) => self.endpoint = Some(Endpoint::parse(value)?),
            ("region", _) if is_word(value, b"-") => self.region = Some(value.to_owned()),
            ("region", _) => return refuse("the name of a region, such as eu-central-1"),
            ("account", _) if is_word(value, b"") => self.account = Some(value.to_owned()),
            ("account", _) => return refuse("the name of a storage account"),
            ("path_style", "true") => self.path_style = true,
            ("path_style", "false") => self.path_style = false,
            ("path_style", _) => return refuse("`true` or `false`"),
            ("allow_object_lock", "true") => self.object_lock = ObjectLock::Allow,
            ("allow_object_lock", "unknown") => self.object_lock = ObjectLock::AllowUnknown,
            ("allow_object_lock", "false") => self.object_lock = ObjectLock::Refuse,
            ("allow_object_lock", _) => return refuse("`false`, `unknown` or `true`"),
            ("ca", "") => return refuse("the path of a file with certificates in PEM form"),
            ("ca", _) => self.ca = Some(value.into()),
            (_, seconds) => match seconds.parse() {
                Ok(seconds @ 1..=600) => self.timeout = Duration::from_secs(seconds),
                _ => return refuse("a whole number of seconds, 1 to 600"),
            },
        }
        Ok(())
    }
}

impl Endpoint {
    pub(crate) fn parse(text: &str) -> Result<Self, UrlError> {
        let refused = UrlError::Value { name: "endpoint", expected: ENDPOINT };
        let Ok(url) = Url::parse(text) else { return Err(refused) };
        let is_plain_http = url.scheme() == "http";
        let is_server = (is_plain_http || url.scheme() == "https")
            && url.host_str().is_some()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_server {
            return Err(refused);
        }
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned(), is_plain_http })
    }

    /// The same server with the bucket in its host name.
    pub(crate) fn of_bucket(&self, bucket: &str) -> String {
        match self.text.split_once("://") {
            Some((scheme, rest)) => format!("{scheme}://{bucket}.{rest}"),
            None => self.text.clone(),
        }
    }
}

pub(crate) fn bucket(text: &str) -> Result<String, UrlError> {
    let is_bucket = text.len() <= 255
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && is_word(text, b"._-");
    if is_bucket { Ok(text.to_owned()) } else { Err(UrlError::Bucket) }
}

/// A prefix without slashes at its ends; may be empty.
pub(crate) fn prefix(text: &str) -> Result<String, UrlError> {
    let is_segment = |segment: &str| is_word(segment, b"._-") && !matches!(segment, "." | "..");
    let is_prefix = text.is_empty() || (text.len() <= 400 && text.split('/').all(is_segment));
    if is_prefix { Ok(text.to_owned()) } else { Err(UrlError::Prefix) }
}

fn is_word(text: &str, besides: &[u8]) -> bool {
    let is_taken = |byte: u8| byte.is_ascii_alphanumeric() || besides.contains(&byte);
    !text.is_empty() && text.bytes().all(is_taken)
}

/// The name of an option that does not exist, if it cannot be anything else than a name.
fn shown(name: &str) -> String {
    let is_name = (1..=24).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_name { name.to_owned() } else { "…".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_everything_is_taken_as_it_is() {
        let text = "s3://ha-1/orders/prod/?endpoint=http://127.0.0.1:9000/&region=eu-central-1\
                    &path_style=false&allow_object_lock=unknown&timeout=5&ca=/etc/our%20ca.pem";
        let url = StoreUrl::parse(text).unwrap();
        assert_eq!((&*url.bucket, &*url.prefix), ("ha-1", "orders/prod"));
        let endpoint = url.endpoint.unwrap();
        assert_eq!(endpoint.text, "http://127.0.0.1:9000");
        assert!(endpoint.is_plain_http && !url.path_style);
        assert_eq!(endpoint.of_bucket("ha-1"), "http://ha-1.127.0.0.1:9000");
        assert_eq!(url.region.unwrap(), "eu-central-1");
        assert_eq!(url.object_lock, ObjectLock::AllowUnknown);
        assert_eq!(url.timeout, Duration::from_secs(5));
        assert_eq!(url.ca.unwrap().to_str(), Some("/etc/our ca.pem"));
        for text in ["s3://ha", "s3://ha/"] {
            assert_eq!(StoreUrl::parse(text).unwrap().prefix, "");
        }
        let encoded = StoreUrl::parse("s3://ha/p?endpoint=https%3A%2F%2Fs3.example.com").unwrap();
        assert_eq!(encoded.endpoint.unwrap().text, "https://s3.example.com");
    }

    #[test]
    fn what_is_no_store_is_refused_and_never_quoted() {
        let bad = [
            "",
            "SECRET",
            "file:///SECRET",
            "http://ha/SECRET",
            "s3:",
            "s3:///SECRET",
            "s3://-SECRET/p",
            "s3://key:SECRET@ha/p",
            "s3://SECRET@ha/p",
            "s3://ha:9000/SECRET",
            "s3://ha/p#SECRET",
            "s3://ha/SECRET//q",
            "s3://ha/SECRET%2e",
            "s3://ha/SECRET q",
            "s3://ha/SECRET/\u{e9}",
            "s3://ha/p?SECRET=1",
            "s3://ha/p?secret_access_key=SECRET",
            "s3://ha/p?access_key_id=SECRET",
            "s3://ha/p?region=SECRET!",
            "s3://ha/p?region=a&region=SECRET",
            "s3://ha/p?path_style=SECRET",
            "s3://ha/p?allow_object_lock=SECRET",
            "s3://ha/p?timeout=SECRET",
            "s3://ha/p?timeout=0",
            "s3://ha/p?account=SECRET",
            "s3://ha/p?ca=&endpoint=SECRET",
            "s3://ha/p?endpoint=SECRET",
            "s3://ha/p?endpoint=ftp://SECRET",
            "s3://ha/p?endpoint=http://key:SECRET@host",
            "s3://ha/p?endpoint=http://host/?key=SECRET",
        ];
        for text in bad {
            let error = StoreUrl::parse(text).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("SECRET"), "{text}: {shown}");
        }
        assert_eq!(StoreUrl::parse("file:///p"), Err(UrlError::Scheme));
        let unknown = StoreUrl::parse("s3://ha/p?colour=green").unwrap_err().to_string();
        assert!(unknown.contains("`colour`") && unknown.contains("endpoint"), "{unknown}");
    }
}
