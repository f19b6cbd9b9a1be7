//! What stands in the store of a session and of a named lease: text, MAC, verdicts, bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may, as tests do")]

mod given;
mod mac;
mod text;
mod vectors;
