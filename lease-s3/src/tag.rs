//! Entity tags: which of them are versions, and how they are sent.

use lease_core::{StoreError, Version, store::Cause};

/// What middle boxes append to the tag of a body that they compressed.
const REWRITTEN: [&str; 6] = ["-gzip", ";gzip", "--gzip", "-br", "-zstd", "-deflate"];

/// How a store wants its entity tags in `If-Match`. Found by the probe.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Dialect {
    /// In quotes, as RFC 9110 has them and as they are told. Nearly all stores.
    #[default]
    Quoted,
    /// Without quotes: the store compares the text of the header with its own tag (Ceph RGW 16).
    Bare,
}

impl Dialect {
    /// The value of `If-Match` for a version. `None` if the version is no tag of any store: such a
    /// value (`*` among them) would match whatever is there.
    pub(crate) fn condition(self, version: &Version) -> Option<String> {
        let tag = version.tag();
        is_opaque(tag).then(|| match self {
            Self::Quoted => format!("\"{tag}\""),
            Self::Bare => tag.to_owned(),
        })
    }
}

/// The value of `If-None-Match` of a read. Every store takes it in quotes.
pub(crate) fn unless(version: &Version) -> Option<String> {
    Dialect::Quoted.condition(version)
}

/// Why a tag is no version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadTag {
    Malformed,
    Missing,
    Rewritten,
    Weak,
}

impl BadTag {
    /// As the refusal of a store: what to do about it does not depend on the object.
    pub(crate) fn refusal(self, attempted: &str) -> StoreError {
        let found = match self {
            Self::Malformed => "an ETag that is no entity tag",
            Self::Missing => "no ETag",
            Self::Rewritten => "an ETag that was rewritten by a compressing proxy",
            Self::Weak => "a weak ETag",
        };
        StoreError::Unsupported(Cause::new(format!(
            "{attempted} was answered with {found}, so that versions cannot be told apart; remove \
             the proxy or cache that rewrites ETags, or use another store"
        )))
    }
}

/// The opaque part of an `ETag` header, without its quotes: stores do not agree on them, and the
/// dialect says how it is sent.
pub(crate) fn parse(header: Option<&str>) -> Result<&str, BadTag> {
    let text = header.ok_or(BadTag::Missing)?.trim();
    if text.starts_with("W/") || text.starts_with("w/") {
        return Err(BadTag::Weak);
    }
    let opaque = match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').ok_or(BadTag::Malformed)?,
        None => text,
    };
    if REWRITTEN.iter().any(|suffix| opaque.ends_with(suffix)) {
        return Err(BadTag::Rewritten);
    }
    if is_opaque(opaque) { Ok(opaque) } else { Err(BadTag::Malformed) }
}

fn is_opaque(tag: &str) -> bool {
    // RFC 9110, 8.8.3: etagc without the bytes above ASCII. `*` means "any version", and `,` would
    // make a list of it.
    !tag.is_empty()
        && tag.len() <= 1024
        && tag.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x29 | 0x2b | 0x2d..=0x7e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_the_same_with_and_without_its_quotes() {
        assert_eq!(parse(Some("\"abc-3\"")), Ok("abc-3"));
        assert_eq!(parse(Some("abc-3")), Ok("abc-3"));
        assert_eq!(parse(Some("\"0x8D=+/\"")), Ok("0x8D=+/"));
    }

    #[test]
    fn case_07_weak_rewritten_and_empty_tags_are_no_versions() {
        let bad = [
            (None, BadTag::Missing),
            (Some("W/\"abc\""), BadTag::Weak),
            (Some("w/\"abc\""), BadTag::Weak),
            (Some("\"abc-gzip\""), BadTag::Rewritten),
            (Some("abc;gzip"), BadTag::Rewritten),
            (Some("\"abc-br\""), BadTag::Rewritten),
            (Some(""), BadTag::Malformed),
            (Some("\"\""), BadTag::Malformed),
            (Some("\""), BadTag::Malformed),
            (Some("\"abc"), BadTag::Malformed),
            (Some("*"), BadTag::Malformed),
            (Some("\"*\""), BadTag::Malformed),
            (Some("\"a\",\"b\""), BadTag::Malformed),
            (Some("a b"), BadTag::Malformed),
        ];
        for (header, expected) in bad {
            assert_eq!(parse(header), Err(expected), "{header:?}");
        }
    }

    #[test]
    fn case_07_no_condition_is_ever_empty_or_matches_everything() {
        for tag in ["", "*", "\"abc\"", "a,b", "a b", "é"] {
            for dialect in [Dialect::Quoted, Dialect::Bare] {
                assert_eq!(dialect.condition(&Version::new(tag)), None, "{tag}");
            }
        }
        let version = Version::new("abc");
        assert_eq!(Dialect::Quoted.condition(&version).unwrap(), "\"abc\"");
        assert_eq!(Dialect::Bare.condition(&version).unwrap(), "abc");
    }
}
