//! Many named leases at the cost of one (protocol, section 9).
//!
//! A process renews one object, its *session*; each *named lease* under it is written only when it
//! changes hands, and is good for as long as the session is.

mod facts;

pub use facts::{Life, NamedDraft, NamedFacts, SessionDraft, SessionFacts, SessionState};
