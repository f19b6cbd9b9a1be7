//! What processes say to each other: one JSON object a line.

use serde::{Serialize, de::DeserializeOwned};

/// One line, with its end.
pub(crate) fn encode(message: &impl Serialize) -> String {
    // Plain enums of numbers and strings: there is nothing in them that JSON cannot say.
    serde_json::to_string(message).map(|line| line + "\n").unwrap_or_default()
}

/// `None`: not a line of this protocol.
pub(crate) fn decode<T: DeserializeOwned>(line: &str) -> Option<T> {
    serde_json::from_str(line).ok()
}
