//! What the fence is made of: the standard library's atomics, or those of `loom`, under which its
//! tests go through every order in which they can be seen.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
