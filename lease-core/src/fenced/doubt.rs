use super::{
    FencedError, FencedObject, Stamp,
    object::{Found, Written},
    seal::DOUBTS_MAX,
};
use crate::{key::ObjectKey, record::Nonce, store::Version};

/// A write of which it is not known whether it landed, or will.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Doubt {
    pub(super) key: ObjectKey,
    /// What the write would make of the object.
    pub(super) stamp: Stamp,
    pub(super) nonce: Nonce,
    /// What it replaces; `None` if it creates the object.
    pub(super) replaces: Option<Version>,
}

impl Doubt {
    /// The object.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Which write of the object it is, if it lands.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }
}

/// What became of a write in doubt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Resolution {
    /// It landed, and is what the object shows.
    Landed,
    /// It did not land and never will: another write took its place.
    NotWritten,
    /// It never will be the newest: the object went on. Whether it was for a moment is not known.
    Superseded,
    /// It has not landed, and still may.
    Undecided,
}

impl FencedObject {
    /// Looks what became of a write in doubt: one read, and nothing is written.
    ///
    /// ```
    /// use lease_core::{ObjectKey, StoreErrorKind, fenced::{FencedObject, Resolution}, fencing::Epoch};
    /// use lease_core::testing::{Fault, FaultStore, MemoryStore, Op};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let store = FaultStore::new(MemoryStore::new());
    /// store.faults().next(Op::Create, Fault::ApplyThenFail(StoreErrorKind::InDoubt));
    /// let object = FencedObject::new(store, ObjectKey::new("orders/balance")?);
    /// let error = object.put(Epoch::MIN, "100").await.unwrap_err();     // the reply was lost
    /// let doubt = error.doubt().expect("it is in doubt");
    /// assert_eq!(object.resolve(doubt).await?, Resolution::Landed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`FencedError`] if the object cannot be read: nothing is known then.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn resolve(&self, doubt: &Doubt) -> Result<Resolution, FencedError> {
        Ok(decide(doubt, &self.look().await?))
    }

    /// The same until it is certain: a write that still may land is shut out by another in its place,
    /// of the same content and epoch as the object has then.
    ///
    /// Never [`Resolution::Undecided`].
    ///
    /// # Errors
    ///
    /// [`FencedError`] if it cannot be made certain now, [`FencedError::Stale`] if the object has a
    /// larger epoch by hand. Settling the same doubt again is fine.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn settle(&self, doubt: &Doubt) -> Result<Resolution, FencedError> {
        let mut doubts = 0;
        for _ in 0..Self::ATTEMPTS {
            let found = self.look().await?;
            match decide(doubt, &found) {
                Resolution::Undecided => {}
                decided => return Ok(decided),
            }
            let content = found.content();
            match self.write_on(&found.base(), doubt.stamp.epoch, content).await {
                // It stands where the other one wanted to.
                Ok(Written::Yes(_)) => return Ok(Resolution::NotWritten),
                Ok(Written::Lost) => {}
                Err(error @ FencedError::InDoubt { .. }) => {
                    doubts += 1;
                    if doubts == DOUBTS_MAX {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.contended())
    }
}

fn decide(doubt: &Doubt, found: &Found) -> Resolution {
    let Some((envelope, version)) = &found.0 else {
        // Gone: by hand, if the write was to replace something.
        return if doubt.replaces.is_none() {
            Resolution::Undecided
        } else {
            Resolution::Superseded
        };
    };
    if envelope.nonce == doubt.nonce {
        Resolution::Landed
    } else if doubt.replaces.as_ref() == Some(version) {
        Resolution::Undecided
    } else if envelope.stamp.counter == doubt.stamp.counter {
        // Each write counts one more than what it replaces, so only one of each number ever landed.
        Resolution::NotWritten
    } else {
        Resolution::Superseded
    }
}
