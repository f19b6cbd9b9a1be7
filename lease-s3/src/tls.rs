//! Whom a store's certificate is trusted by, and what to do about one that is not accepted.

use crate::error::UrlError;
use object_store::{Certificate, ClientOptions};
use std::{fmt, io::Read as _, path::Path};

/// The most that is read of a file of certificates: all that Mozilla trusts take a fifth of it.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Certificates that are trusted beside those of the system. Never a secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(Vec<Certificate>);

impl Roots {
    /// Adds those of a text in PEM form, of which there must be one at least.
    pub(crate) fn add(&mut self, pem: &[u8]) -> Result<(), UrlError> {
        let none = UrlError::Certificates { found: "hold no certificate in PEM form" };
        match Certificate::from_pem_bundle(pem) {
            Ok(certificates) if !certificates.is_empty() => {
                self.0.extend(certificates);
                Ok(())
            }
            _ => Err(none),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The client's settings with them.
    pub(crate) fn trusted_by(&self, options: &ClientOptions) -> ClientOptions {
        self.0.iter().cloned().fold(options.clone(), ClientOptions::with_root_certificate)
    }
}

/// The text of a file of certificates.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, UrlError> {
    let refused = |found| Err(UrlError::Certificates { found });
    // Opening a pipe would wait for its writer.
    if !path.metadata().is_ok_and(|it| it.is_file()) {
        return refused("are not there: the path leads to no file");
    }
    let mut pem = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut pem));
    match read {
        Ok(_) if pem.len() as u64 <= MAX_FILE_BYTES => Ok(pem),
        Ok(_) => refused("are larger than 1 MiB"),
        Err(_) => refused("cannot be read"),
    }
}

/// A certificate that was not accepted, in the words of the TLS library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unaccepted(String);

impl Unaccepted {
    /// If that is what the text of a failed connection is about: what rustls says of a certificate
    /// begins like that.
    pub(crate) fn of(text: &str) -> Option<Self> {
        text.contains("invalid peer certificate").then(|| Self(text.to_owned()))
    }

    fn advice(&self) -> &'static str {
        let says = |words: &[&str]| words.iter().any(|word| self.0.contains(word));
        if says(&["UnknownIssuer", "not trusted"]) {
            "nobody whom this machine trusts has signed it; if that is a private CA, name the file \
             of its certificate by the option `ca` (`S3Options::root_certificates`), or install it \
             on this machine"
        } else if says(&["NotValidForName", "not valid for name"]) {
            "it is made out to another host name; name the host by the name in it, or let it be made \
             out to this one"
        } else if says(&["xpired", "NotValidYet", "not valid yet", "not valid before"]) {
            "it is out of date; renew it, and look at this machine's clock"
        } else if says(&["CaUsedAsEndEntity"]) {
            "it is the certificate of a CA itself; give the server one that this CA has signed"
        } else if says(&["BadSignature"]) {
            "a CA that is trusted here has the name of the one that signed it, and did not; give the \
             certificate of the CA that did"
        } else {
            "let the server have one that this machine accepts"
        }
    }
}

impl fmt::Display for Unaccepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.0, self.advice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_of_a_certificate_has_its_own_advice() {
        let advice = |found: &str| {
            let text = format!("invalid peer certificate: {found}");
            Unaccepted::of(&text).unwrap().to_string()
        };
        for (found, expected) in [
            ("UnknownIssuer", "option `ca`"),
            (
                "certificate not valid for name \"a\"; certificate is not valid for any names",
                "host",
            ),
            ("certificate expired: verification time 2 (UNIX), but …", "renew it"),
            ("certificate not valid yet: verification time 2 (UNIX), but …", "clock"),
            ("Other(OtherError(CaUsedAsEndEntity))", "a CA itself"),
            ("BadSignature", "the CA that did"),
            ("BadEncoding", "this machine accepts"),
        ] {
            assert!(advice(found).contains(expected), "{}", advice(found));
        }
        assert_eq!(Unaccepted::of("connection refused"), None);
    }

    #[test]
    fn files_without_certificates_are_refused_and_never_quoted() {
        let scratch = tempfile::tempdir().unwrap();
        let file = |name: &str, content: &[u8]| {
            let path = scratch.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let large = file("large", &vec![b'x'; 1024 * 1024 + 1]);
        for (path, expected) in [
            (scratch.path().join("missing"), "no file"),
            (scratch.path().to_owned(), "no file"),
            (large, "1 MiB"),
        ] {
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("missing"), "{error}");
        }
        for text in ["", "SECRET", "-----BEGIN CERTIFICATE-----\nSECRET\n-----END CERTIFICATE-----"]
        {
            let pem = read(&file("pem", text.as_bytes())).unwrap();
            let mut roots = Roots::default();
            // What is no certificate inside is found out at the latest when a client is made of it.
            let refused = roots.add(&pem);
            if !text.contains("BEGIN") {
                let error = refused.unwrap_err();
                assert!(error.to_string().contains("PEM"), "{error}");
                assert!(!format!("{error} {error:?}").contains("SECRET"));
            }
        }
    }
}
