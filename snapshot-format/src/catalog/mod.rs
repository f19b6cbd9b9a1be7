//! Which snapshots there are, and what each is worth.

mod verdict;

pub use verdict::{ListedSnapshot, Refusal, Uncheckable, Verdict};
