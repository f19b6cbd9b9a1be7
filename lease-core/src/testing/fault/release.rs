//! What a test holds back, and lets go when it is ready.

use super::log::Effect;
use crate::testing::watched::Watched;
use futures_util::future::BoxFuture;
use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Holds operations back until the test [releases](Self::release) them. Clones are one hold.
///
/// ```
/// use lease_core::{LeaseStore, ObjectKey, Read};
/// use lease_core::testing::{Fault, FaultStore, Hold, MemoryStore, Op};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, hold) = (FaultStore::new(MemoryStore::new()), Hold::new());
/// store.faults().next(Op::Read, Fault::Hold(hold.clone()));
/// let slow = store.clone();
/// let read = tokio::spawn(async move { slow.read_versioned(&ObjectKey::new("a").unwrap(), None).await });
/// store.faults().wait_for_calls(1).await;
/// assert!(!read.is_finished());                   // it is on its way for as long as the test wants
/// hold.release();
/// assert_eq!(read.await??, Read::Missing);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Hold {
    released: Arc<Watched<bool>>,
}

impl Hold {
    /// A hold that nothing passes yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets everything pass, from now on.
    pub fn release(&self) {
        self.released.change(|released| *released = true);
    }

    pub(super) async fn released(&self) {
        self.released.until(|released| *released).await;
    }
}

/// Writes that are on their way until the test [lands](Self::land) them, after their caller was
/// told that they are in doubt, or was told nothing. Clones share the writes.
#[derive(Clone, Default)]
pub struct Late {
    writes: Arc<Mutex<Vec<BoxFuture<'static, Effect>>>>,
}

impl Late {
    /// Nothing is on its way yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets every write that is on its way arrive at the store now, in the order in which they were
    /// sent, and returns what the store did with each: applied it, or refused it because the object
    /// had changed meanwhile.
    ///
    /// # Cancel safety
    ///
    /// Writes that have not arrived when the future is dropped never will.
    pub async fn land(&self) -> Vec<Effect> {
        let writes =
            std::mem::take(&mut *self.writes.lock().unwrap_or_else(PoisonError::into_inner));
        let mut effects = Vec::with_capacity(writes.len());
        for write in writes {
            effects.push(write.await);
        }
        effects
    }

    /// How many writes are on their way.
    #[must_use]
    pub fn on_their_way(&self) -> usize {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn push(&self, write: BoxFuture<'static, Effect>) {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner).push(write);
    }
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Late").field("on_their_way", &self.on_their_way()).finish()
    }
}
