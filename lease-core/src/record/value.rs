//! The values in a record that carry rules of their own.

use fencing::{Epoch, WallTime};
use jiff::fmt::temporal::DateTimePrinter;
use std::{fmt, num::NonZeroU32, ops::Deref, str::FromStr, sync::Arc, time::Duration};

/// The longest text in a record, in bytes.
pub const MAX_LABEL_BYTES: usize = 128;

/// A short text for people (a holder's name, a time) or an opaque word of another's making: at most
/// 128 bytes, no control characters. May be empty.
///
/// ```
/// use lease_core::record::Label;
///
/// let name = Label::new("orders-0")?;
/// assert_eq!(&*name, "orders-0");
/// assert!(Label::new("two\nlines").is_err());
/// assert!(Label::new(&"x".repeat(129)).is_err());
/// # Ok::<(), lease_core::record::LabelError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(Arc<str>);

impl Label {
    /// A label with this text.
    ///
    /// # Errors
    ///
    /// [`LabelError`] if the text is too long or has control characters; it is never cut or changed.
    pub fn new(text: &str) -> Result<Self, LabelError> {
        if text.len() > MAX_LABEL_BYTES {
            return Err(LabelError::TooLong);
        }
        // To the end, so that many bytes are looked at in one step.
        let is_plain = text.bytes().fold(true, |all, byte| all & (b' '..=b'~').contains(&byte));
        if !is_plain && text.chars().any(char::is_control) {
            return Err(LabelError::ControlCharacter);
        }
        Ok(Self(text.into()))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Label {
    fn default() -> Self {
        Self("".into())
    }
}

impl Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        Self::new(text)
    }
}

impl PartialEq<str> for Label {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

/// A text cannot be a [`Label`]. It is not repeated here: it may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// It has a line break, a NUL, an escape or the like.
    #[error("a label of a lease record has a control character; use printable text")]
    ControlCharacter,
    /// It is longer than [`MAX_LABEL_BYTES`].
    #[error("a label of a lease record is longer than 128 bytes; use a shorter text")]
    TooLong,
}

const MILLISECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// A moment as text for people, in UTC with milliseconds: `2026-10-12T10:00:00.123Z`.
///
/// No decision reads it back (protocol, section 1).
///
/// ```
/// use lease_core::{fencing::WallTime, record::rfc3339};
///
/// let moment = WallTime::from_unix_nanos(1_791_799_200_123_999_999);
/// assert_eq!(&*rfc3339(moment), "2026-10-12T10:00:00.123Z");
/// ```
#[must_use]
pub fn rfc3339(wall: WallTime) -> Label {
    // Every `WallTime` is before the year 2555 and so in range; were it not, this is for people only.
    let moment = jiff::Timestamp::from_nanosecond(wall.unix_nanos().into()).unwrap_or_default();
    Label(MILLISECONDS.timestamp_to_string(&moment).into())
}

/// The ttl as a record states it: whole milliseconds, from 1 ms to 24 h.
///
/// What it is set to is the business of the timing, which is far stricter; this is what a record
/// can carry without a loss and what a reader believes.
///
/// ```
/// use lease_core::record::Ttl;
/// use std::time::Duration;
///
/// let ttl = Ttl::new(Duration::from_millis(1_500))?;
/// assert_eq!(ttl.duration(), Duration::from_millis(1_500));
/// assert!(Ttl::new(Duration::from_micros(1_500)).is_err());
/// # Ok::<(), lease_core::record::TtlError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(NonZeroU32);

impl Ttl {
    /// The shortest, 1 ms.
    pub const MIN: Self = Self(NonZeroU32::MIN);
    /// The longest, 24 h.
    pub const MAX: Self = Self(NonZeroU32::MIN.saturating_add(86_400_000 - 1));

    /// A ttl of this length.
    ///
    /// # Errors
    ///
    /// [`TtlError`] if it is not a whole number of milliseconds from 1 ms to 24 h: a ttl that was
    /// rounded would be another one for the holder than for whoever waits.
    pub fn new(ttl: Duration) -> Result<Self, TtlError> {
        let whole = ttl.subsec_nanos().is_multiple_of(1_000_000);
        let millis = u64::try_from(ttl.as_millis()).ok().filter(|_| whole);
        millis.and_then(Self::from_millis).ok_or(TtlError(ttl))
    }

    pub(crate) fn from_millis(millis: u64) -> Option<Self> {
        let ttl = Self(NonZeroU32::new(u32::try_from(millis).ok()?)?);
        (ttl <= Self::MAX).then_some(ttl)
    }

    /// Its length.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.as_millis())
    }

    /// Its length in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> u64 {
        self.0.get().into()
    }

    /// From a JSON number as it is written: digits, and at most three decimals. Never a float, since
    /// two readers may round one differently.
    pub(crate) fn from_json(number: &str) -> Option<Self> {
        let (seconds, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits(seconds) || !digits(decimals) || decimals.len() > 3 {
            return None;
        }
        let thousandths = format!("{decimals:0<3}").parse::<u64>().ok()?;
        let millis = seconds.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?;
        Self::from_millis(millis)
    }

    /// As a JSON number, without needless decimals: `30`, `0.05`, `1.5`.
    pub(crate) fn to_json(self) -> String {
        let (seconds, thousandths) = (self.as_millis() / 1000, self.as_millis() % 1000);
        if thousandths == 0 {
            return seconds.to_string();
        }
        format!("{seconds}.{thousandths:03}").trim_end_matches('0').to_owned()
    }
}

impl From<Ttl> for Duration {
    fn from(ttl: Ttl) -> Self {
        ttl.duration()
    }
}

impl TryFrom<Duration> for Ttl {
    type Error = TtlError;

    fn try_from(ttl: Duration) -> Result<Self, TtlError> {
        Self::new(ttl)
    }
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.duration(), f)
    }
}

/// A duration that no record can carry as its ttl.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[error("a ttl of {0:?} cannot stand in a lease record; use whole milliseconds from 1 ms to 24 h")]
pub struct TtlError(Duration);

/// 128 random bits that make "my own write" a fact: two clones of one instance can otherwise write
/// equal bytes (protocol, section 3). Every write carries fresh ones.
///
/// ```
/// use lease_core::record::Nonce;
///
/// let nonce = Nonce::from_bytes([0xab; 16]);
/// assert_eq!(nonce.to_string(), "ab".repeat(16));
/// assert_ne!(Nonce::random()?, Nonce::random()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce([u8; 16]);

impl Nonce {
    /// 128 fresh random bits.
    ///
    /// # Errors
    ///
    /// If the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// A nonce of these bytes, for tests and simulators that draw their own.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The same fresh bits behind the tag of a tenure: what its renewals and its release are known by.
    #[must_use]
    pub fn in_tenure(self, tag: TenureTag) -> Self {
        let Self([_, _, _, _, _, _, _, _, fresh @ ..]) = self;
        let mut bytes = [0; 16];
        let (front, back) = bytes.split_at_mut(8);
        front.copy_from_slice(&tag.0);
        back.copy_from_slice(&fresh);
        Self(bytes)
    }

    /// The tag of the tenure that wrote it.
    #[must_use]
    pub const fn tenure(&self) -> TenureTag {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        TenureTag([a, b, c, d, e, f, g, h])
    }

    /// From exactly 32 lowercase hexadecimal digits.
    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        crate::hex::decode(digits).map(Self)
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(crate::hex::encode_into(&self.0, &mut [0; 32]))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// 64 random bits that all nonces of one tenure begin with: the first of the write that acquired it.
///
/// An instance that was restarted knows by it that a record is of the tenure that its history shows.
/// The epoch alone does not tell: a clone of its directory can hold the same one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenureTag([u8; 8]);

impl TenureTag {
    /// A tag of these bytes, for tests.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// From exactly 16 lowercase hexadecimal digits.
    pub(crate) fn from_hex(digits: &str) -> Option<Self> {
        crate::hex::decode(digits).map(Self)
    }
}

impl fmt::Display for TenureTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::encode(&self.0))
    }
}

impl fmt::Debug for TenureTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Which tenure: what tells it from any other, also from one of the same epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TenureMark {
    /// Its epoch.
    pub epoch: Epoch,
    /// What all its nonces begin with.
    pub tag: TenureTag,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_28_odd_ttls_are_refused_never_rounded() {
        for (text, millis) in [
            ("30", 30_000),
            ("0.05", 50),
            ("1.5", 1_500),
            ("1.500", 1_500),
            ("0.001", 1),
            ("86400", 86_400_000),
        ] {
            assert_eq!(Ttl::from_json(text).unwrap().as_millis(), millis, "{text}");
        }
        let odd = [
            "0",
            "0.0",
            "0.000",
            "-1",
            "-0",
            "1e3",
            "1E0",
            "1.2345",
            "1.",
            ".5",
            "",
            "\"30\"",
            "true",
            "null",
            "86400.001",
            "86401",
            "18446744073709551615",
            "18446744073709551616",
            "99999999999999999999999",
            "18446744073709552",
            "4294967.297",
            "+1",
            "1 ",
            "1.0e1",
            "[30]",
        ];
        for text in odd {
            assert_eq!(Ttl::from_json(text), None, "{text}");
        }
        for bad in
            [Duration::ZERO, Duration::MAX, Duration::from_nanos(1), Duration::from_secs(86_401)]
        {
            assert!(Ttl::new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(Ttl::new(Duration::from_secs(86_400)), Ok(Ttl::MAX));
    }

    #[test]
    fn every_ttl_is_written_as_it_is_read() {
        for millis in (1..=3_000).chain([29_999, 30_000, 100_010, 86_399_999, 86_400_000]) {
            let ttl = Ttl::from_millis(millis).unwrap();
            assert_eq!(Ttl::from_json(&ttl.to_json()), Some(ttl), "{millis}");
        }
        assert_eq!(Ttl::from_millis(30_000).unwrap().to_json(), "30");
        assert_eq!(Ttl::from_millis(50).unwrap().to_json(), "0.05");
    }

    #[test]
    fn every_wall_time_has_a_text() {
        assert_eq!(&*rfc3339(WallTime::default()), "1970-01-01T00:00:00.000Z");
        assert_eq!(&*rfc3339(WallTime::MAX), "2554-07-21T23:34:33.709Z");
    }

    #[test]
    fn labels_have_no_control_characters() {
        for bad in ["\0", "a\nb", "\u{1b}[2J", "\u{7f}", "\u{85}"] {
            assert_eq!(Label::new(bad), Err(LabelError::ControlCharacter));
        }
        assert_eq!(Label::new(&"é".repeat(65)), Err(LabelError::TooLong));
        assert!(Label::new(&"é".repeat(64)).is_ok());
    }
}
