//! How old a version is, told by one clock alone: that of the store.

use crate::wire::Reply;
use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use std::time::Duration;

/// `Date` minus `Last-Modified` of one reply, less one second, since both are cut to whole seconds:
/// never more than it is, if one clock wrote both.
///
/// `None` without both, and behind a cache or a proxy that says so: its `Date` may be its own.
pub(crate) fn age(reply: &Reply) -> Option<Duration> {
    seconds(reply).map(|seconds| Duration::from_secs(seconds.saturating_sub(1)))
}

/// The same without the deduction.
pub(crate) fn seconds(reply: &Reply) -> Option<u64> {
    if reply.header("age").is_some() || reply.headers.contains_key("via") {
        return None;
    }
    let at = |name| http_date(reply.header(name)?);
    u64::try_from(at("date")?.as_second() - at("last-modified")?.as_second()).ok()
}

fn http_date(text: &str) -> Option<Timestamp> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    PARSER.parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Body;
    use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

    fn age_of(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        let body = Body::Whole(bytes::Bytes::new());
        let reply = Reply { status: StatusCode::OK, headers, body, is_redirected: false };
        age(&reply).map(|age| age.as_secs())
    }

    #[test]
    fn an_age_is_never_more_than_it_is() {
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(age_of(&[date, ("last-modified", "Sun, 06 Nov 1994 08:49:07 GMT")]), Some(29));
        assert_eq!(age_of(&[date, ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT")]), Some(0));
        // Two clocks, at least: nothing is known.
        assert_eq!(age_of(&[date, ("last-modified", "Sun, 06 Nov 1994 08:49:38 GMT")]), None);
        assert_eq!(age_of(&[date, ("last-modified", "yesterday")]), None);
        assert_eq!(age_of(&[date]), None);
        let old = ("last-modified", "Sat, 05 Nov 1994 08:49:37 GMT");
        assert_eq!(age_of(&[date, old]), Some(86_399));
        assert_eq!(age_of(&[date, old, ("age", "0")]), None);
        assert_eq!(age_of(&[date, old, ("via", "1.1 varnish")]), None);
    }
}
