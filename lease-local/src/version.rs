//! Versions that come from the file itself.

use fencing::durable::{Content, Oversize};
use lease_core::Version;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// The version of a content: its SHA-256, in hexadecimal.
pub(crate) fn of_content(content: &[u8]) -> Version {
    Version::new(hex(&Sha256::digest(content)))
}

/// The version of what was read, also of a file too large to be read: that one is told by which file
/// it is, its size, when it was modified, and its beginning.
pub(crate) fn of(content: &Content) -> Version {
    match content {
        Content::Whole(content) => of_content(content),
        Content::Oversize(oversize) => of_oversize(oversize),
    }
}

fn of_oversize(file: &Oversize) -> Version {
    let mut digest = Sha256::new();
    digest.update(file.identity.dev.to_be_bytes());
    digest.update(file.identity.ino.to_be_bytes());
    digest.update(file.size.to_be_bytes());
    digest.update(file.modified_unix_nanos.to_be_bytes());
    digest.update(&file.head);
    // No content has a digest of this form.
    Version::new(format!("oversize-{}", hex(&digest.finalize())))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencing::durable::FileIdentity;

    #[test]
    fn a_content_has_its_well_known_digest() {
        assert_eq!(
            of_content(b"abc").tag(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn case_37_each_trait_of_an_oversize_file_makes_another_version() {
        let file = || Oversize {
            identity: FileIdentity { dev: 1, ino: 2 },
            size: 3,
            modified_unix_nanos: 4,
            head: vec![5],
        };
        let same = of_oversize(&file());
        assert_eq!(of_oversize(&file()), same);
        let others = [
            Oversize { identity: FileIdentity { dev: 9, ino: 2 }, ..file() },
            Oversize { identity: FileIdentity { dev: 1, ino: 9 }, ..file() },
            Oversize { size: 9, ..file() },
            Oversize { modified_unix_nanos: -4, ..file() },
            Oversize { head: vec![9], ..file() },
        ];
        for other in others {
            assert_ne!(of_oversize(&other), same, "{other:?}");
        }
    }
}
