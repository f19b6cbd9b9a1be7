//! Strict reading of one JSON object: what the record, the history and the header of a snapshot share.
//!
//! `serde_json` alone takes an array for a struct and lets duplicate unknown keys pass. Two readers
//! that resolve a duplicate differently would see two different records under one MAC, so here every
//! duplicate is refused, at any depth and however it is spelled.

use fencing::Epoch;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{error::Category, value::RawValue};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

/// How deep arrays and objects may be nested inside a field: far more than any version writes, far
/// less than what a stack holds.
pub const MAX_DEPTH: usize = 32;

/// Why content is not what it must be: a lease record, or an instance's history. Nothing of the
/// content is repeated: it may be anything.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// A key stands twice in one object, in whatever spelling, known or not.
    #[error("unreadable: a key stands twice in one object")]
    DuplicateKey,
    /// A field is not what it must be.
    #[error("unreadable: `{field}` is not {expected}")]
    Field {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A field that is always there is missing.
    #[error("unreadable: there is no `{field}`")]
    Missing {
        /// Its name.
        field: &'static str,
    },
    /// It is JSON, but not an object.
    #[error("unreadable: it is no JSON object")]
    NotAnObject,
    /// It is not UTF-8.
    #[error("unreadable: it is not UTF-8")]
    NotUtf8,
    /// It is not JSON, or something follows the object.
    #[error("unreadable: it is not one JSON object, see line {line}, column {column}")]
    Syntax {
        /// Where reading stopped, from 1.
        line: usize,
        /// Where in that line, in bytes.
        column: usize,
    },
    /// Arrays and objects are nested too deep in a field.
    #[error("unreadable: it is nested more than 32 levels deep")]
    TooDeep,
    /// It is larger than anything that is read here.
    #[error("unreadable: it is larger than {bytes_max} bytes")]
    TooLarge {
        /// The most that is read.
        bytes_max: usize,
    },
}

/// The fields of one object, each still as the text that it is written as.
///
/// ```
/// use lease_core::json::{self, Object, Unreadable};
///
/// let mut fields = Object::from_bytes(br#"{"epoch":7,"later":[1]}"#, 64)?;
/// assert_eq!(fields.needed("epoch", "an epoch", json::epoch)?.as_u64(), 7);
/// assert_eq!(fields.rest().count(), 1);
/// assert_eq!(Object::parse(r#"{"a":1,"\u0061":1}"#).unwrap_err(), Unreadable::DuplicateKey);
/// # Ok::<(), Unreadable>(())
/// ```
#[derive(Debug)]
pub struct Object<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Object<'a> {
    /// The fields of the one object that `content` is, of which there may be `bytes_max` bytes.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is larger, not UTF-8, or as for [`parse`](Self::parse).
    pub fn from_bytes(content: &'a [u8], bytes_max: usize) -> Result<Self, Unreadable> {
        if content.len() > bytes_max {
            return Err(Unreadable::TooLarge { bytes_max });
        }
        Self::parse(std::str::from_utf8(content).map_err(|_| Unreadable::NotUtf8)?)
    }

    /// The fields of the one object that `text` is, all of it well-formed to the last byte.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is anything else, has a key twice at any depth, or is nested too deep.
    pub fn parse(text: &'a str) -> Result<Self, Unreadable> {
        skim(text)?;
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.deserialize_map(Pairs).map(Self).map_err(|error| fault(&error))
    }

    /// Takes a field out and reads it; `None` if it is absent.
    ///
    /// `null` is not absence: it is a value of the wrong type.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Field`] if `read` does not take the value for what is `expected`.
    pub fn optional<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<Option<T>, Unreadable> {
        self.0
            .remove(field)
            .map(|value| read(value).ok_or(Unreadable::Field { field, expected }))
            .transpose()
    }

    /// The same for a field that is always there.
    ///
    /// # Errors
    ///
    /// [`Unreadable::Missing`] if it is not there, and as for [`optional`](Self::optional).
    pub fn needed<T>(
        &mut self,
        field: &'static str,
        expected: &'static str,
        read: impl FnOnce(&'a RawValue) -> Option<T>,
    ) -> Result<T, Unreadable> {
        self.optional(field, expected, read)?.ok_or(Unreadable::Missing { field })
    }

    /// The object that a field holds; `None` if it is absent.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if the field is there and holds anything else.
    pub fn object(&mut self, field: &'static str) -> Result<Option<Self>, Unreadable> {
        let parse = |value: &'a RawValue| match Self::parse(value.get()) {
            Err(Unreadable::NotAnObject) => Err(Unreadable::Field { field, expected: "an object" }),
            parsed => parsed,
        };
        self.0.remove(field).map(parse).transpose()
    }

    /// The fields that nobody took, in the order of their names.
    pub fn rest(self) -> impl Iterator<Item = (String, &'a RawValue)> {
        self.0.into_iter()
    }
}

/// Writes one object, its fields in the order they are given.
///
/// ```
/// use lease_core::json::Writer;
///
/// let mut out = Writer::default();
/// out.text("cluster", "orders");
/// out.raw("epoch", 7);
/// assert_eq!(out.finish(), r#"{"cluster":"orders","epoch":7}"#);
/// ```
#[derive(Debug)]
pub struct Writer(String);

/// More than a record usually has.
const USUAL_BYTES: usize = 640;

impl Default for Writer {
    fn default() -> Self {
        Self(String::with_capacity(USUAL_BYTES))
    }
}

impl Writer {
    /// A field that is a string.
    pub fn text(&mut self, name: &str, value: &str) {
        self.name(name).quoted(value);
    }

    /// A field whose value is JSON already.
    pub fn raw(&mut self, name: &str, value: impl fmt::Display) {
        self.name(name).value(value);
    }

    fn name(&mut self, name: &str) -> &mut Self {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.quoted(name);
        self.0.push(':');
        self
    }

    /// A name that needs no escapes, which is not looked for. Its value follows.
    pub(crate) fn field(&mut self, name: &'static str) -> &mut Self {
        debug_assert!(!needs_escapes(name));
        self.0.push_str(if self.0.is_empty() { "{\"" } else { ",\"" });
        self.0.push_str(name);
        self.0.push_str("\":");
        self
    }

    pub(crate) fn quoted(&mut self, text: &str) {
        if needs_escapes(text) {
            // `Value` escapes as JSON asks, and writing to a string cannot fail.
            let _ = write!(self.0, "{}", serde_json::Value::from(text));
        } else {
            self.0.push('"');
            self.0.push_str(text);
            self.0.push('"');
        }
    }

    pub(crate) fn value(&mut self, value: impl fmt::Display) {
        let _ = write!(self.0, "{value}");
    }

    /// The object as one line.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('{');
        }
        self.0.push('}');
        self.0
    }
}

/// To the end, and not to the first: without a branch many bytes are looked at in one step.
fn needs_escapes(text: &str) -> bool {
    let is_special = |byte: u8| (byte < b' ') | (byte == b'"') | (byte == b'\\');
    text.bytes().fold(false, |any, byte| any | is_special(byte))
}

/// An integer from 0 to 2^64 − 1, written as digits only.
#[must_use]
pub fn integer(value: &RawValue) -> Option<u64> {
    // Digits alone: no sign, no fraction, no exponent. JSON itself forbids leading zeros.
    let digits = value.get();
    if digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

/// An integer from 1 to 2^64 − 1.
#[must_use]
pub fn epoch(value: &RawValue) -> Option<Epoch> {
    integer(value).and_then(Epoch::new)
}

/// `true` or `false`.
#[must_use]
pub fn boolean(value: &RawValue) -> Option<bool> {
    value.get().parse().ok()
}

/// A string, its escapes resolved.
#[must_use]
pub fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

fn fault(error: &serde_json::Error) -> Unreadable {
    match error.classify() {
        Category::Data => Unreadable::NotAnObject,
        Category::Syntax | Category::Eof | Category::Io => {
            Unreadable::Syntax { line: error.line(), column: error.column() }
        }
    }
}

/// Refuses what `serde_json` lets pass in a value that nobody asks for: broken escapes, duplicate
/// keys, nesting without bound. And, as it does, whatever is not JSON or follows it.
fn skim(text: &str) -> Result<(), Unreadable> {
    let mut found = None;
    let mut reader = serde_json::Deserializer::from_str(text);
    let skimmed = Skim { depth: 0, found: &mut found }.deserialize(&mut reader);
    match skimmed.and_then(|()| reader.end()) {
        Ok(()) => Ok(()),
        Err(error) => Err(found.unwrap_or_else(|| fault(&error))),
    }
}

struct Pairs;

impl<'de> Visitor<'de> for Pairs {
    type Value = BTreeMap<String, &'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("one JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = BTreeMap::new();
        while let Some((name, value)) = map.next_entry()? {
            if pairs.insert(name, value).is_some() {
                return Err(A::Error::custom("a duplicate key"));
            }
        }
        Ok(pairs)
    }
}

struct Skim<'f> {
    depth: usize,
    found: &'f mut Option<Unreadable>,
}

impl Skim<'_> {
    fn deeper<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth == MAX_DEPTH {
            *self.found = Some(Unreadable::TooDeep);
            return Err(E::custom("nested too deep"));
        }
        self.depth += 1;
        Ok(())
    }

    fn inner(&mut self) -> Skim<'_> {
        Skim { depth: self.depth, found: self.found }
    }
}

impl<'de> DeserializeSeed<'de> for Skim<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Skim<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        self.deeper()?;
        while seq.next_element_seed(self.inner())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        self.deeper()?;
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if !seen.insert(name) {
                *self.found = Some(Unreadable::DuplicateKey);
                return Err(A::Error::custom("a duplicate key"));
            }
            map.next_value_seed(self.inner())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Unreadable {
        Object::parse(text).map(drop).unwrap_err()
    }

    #[test]
    fn duplicates_are_refused_at_any_depth_and_in_any_spelling() {
        for text in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"\u0061":1}"#,
            r#"{"x":{"a":1,"a":2}}"#,
            r#"{"x":[[{"a":1,"b":2,"\u0061":1}]]}"#,
        ] {
            assert_eq!(refused(text), Unreadable::DuplicateKey, "{text}");
        }
        assert!(Object::parse(r#"{"a":{"a":[{"a":1},{"a":1}]}}"#).is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
        // One level is the object itself.
        assert!(Object::parse(&nested(MAX_DEPTH - 1)).is_ok());
        assert_eq!(refused(&nested(MAX_DEPTH)), Unreadable::TooDeep);
        assert_eq!(refused(&nested(10_000)), Unreadable::TooDeep);
        assert_eq!(refused(&"[".repeat(10_000)), Unreadable::TooDeep);
        assert_eq!(refused(&"{\"a\":".repeat(10_000)), Unreadable::TooDeep);
    }

    #[test]
    fn only_one_object_and_nothing_after_it() {
        for text in ["null", "[]", "1", "\"x\"", "true"] {
            assert_eq!(refused(text), Unreadable::NotAnObject, "{text}");
        }
        for text in
            ["", " ", "{", "{}x", "{} {}", "{}\0", "\u{feff}{}", r#"{"a":01}"#, r#"{"a":"\ud800"}"#]
        {
            assert!(
                matches!(refused(text), Unreadable::Syntax { .. }),
                "{text:?}: {:?}",
                refused(text)
            );
        }
        assert!(Object::parse(" {\n} ").is_ok());
    }

    #[test]
    fn integers_are_digits_only() {
        let read = |text: &str| {
            let object = format!("{{\"n\":{text}}}");
            Object::parse(&object)
                .ok()
                .and_then(|mut fields| integer(fields.0.remove("n").unwrap()))
        };
        assert_eq!(read("0"), Some(0));
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        for text in
            ["18446744073709551616", "7.0", "1e3", "-1", "-0", "\"7\"", "true", "null", "07", "+7"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
