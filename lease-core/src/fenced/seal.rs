use super::{
    Current, FencedError, FencedObject,
    envelope::{Envelope, NoEnvelope},
    object::{Base, Found, Written},
};
use bytes::Bytes;
use fencing::Epoch;

/// How many writes in doubt one call follows up before it says so.
pub(super) const DOUBTS_MAX: u32 = 3;

/// What is made of an object that was not written by a fenced object.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Adopted,
    Refused,
}

/// What a seal goes on from.
struct Before {
    base: Base,
    content: Option<Bytes>,
    found: Option<Current>,
}

impl From<Found> for Before {
    fn from(found: Found) -> Self {
        Self { base: found.base(), content: found.content(), found: found.current() }
    }
}

impl FencedObject {
    /// Shuts out every smaller token, also writes that are on their way, and returns what the object
    /// then is: the last word of the holders before.
    ///
    /// To be called at a takeover, for each object that the old holder could write, before the new one
    /// goes on from any of them. It writes the same content again, as a new version under `token`. A
    /// missing object becomes a tombstone. One that shows this very token is sealed already.
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`] if a larger token was seen: this holder is not the newest. With
    /// everything else **it is not sealed**, or not known to be: do not go on. Where
    /// [`is_passing`](FencedError::is_passing) says so, sealing may be repeated, as often as one wants.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the seal in doubt; seal again.
    pub async fn seal(&self, token: Epoch) -> Result<Current, FencedError> {
        self.fix(token, Foreign::Refused).await
    }

    /// The same for an object that may not have been written by a fenced object: its bytes become the
    /// content.
    ///
    /// For objects from before they were fenced. Nobody may write them otherwise any more.
    ///
    /// # Errors
    ///
    /// As [`seal`](Self::seal). An object that begins as a fenced one and is damaged is not adopted.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves it in doubt; adopt again.
    pub async fn adopt(&self, token: Epoch) -> Result<Current, FencedError> {
        self.fix(token, Foreign::Adopted).await
    }

    /// [`seal`](Self::seal) for as long as it takes: what can pass by itself is tried again after
    /// `pause`.
    ///
    /// Ends without a seal only where it never will be one. To bound it by the tenure, drop it when
    /// that is lost:
    ///
    /// ```
    /// use lease_core::{Tenure, fenced::{Current, FencedError, FencedObject}};
    /// use std::time::Duration;
    ///
    /// async fn begin(object: &FencedObject, tenure: &Tenure) -> Result<Option<Current>, FencedError> {
    ///     tokio::select! {
    ///         sealed = object.seal_until_certain(tenure.epoch(), Duration::from_secs(1)) => sealed.map(Some),
    ///         _ = tenure.ended() => Ok(None),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`FencedError::Stale`], and what does not pass by itself. It is not sealed then.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the seal in doubt; seal again.
    #[cfg(feature = "runner")]
    pub async fn seal_until_certain(
        &self,
        token: Epoch,
        pause: std::time::Duration,
    ) -> Result<Current, FencedError> {
        loop {
            match self.seal(token).await {
                Err(error) if error.is_passing() => {
                    tracing::warn!(key = %self.key(), epoch = %token, %error, "not sealed yet");
                    tokio::time::sleep(pause).await;
                }
                sealed_or_never => return sealed_or_never,
            }
        }
    }

    async fn fix(&self, token: Epoch, foreign: Foreign) -> Result<Current, FencedError> {
        self.admit(token, None)?;
        let (mut doubt, mut doubts) = (None, 0);
        for _ in 0..Self::ATTEMPTS {
            let before = match self.before(foreign).await {
                Ok(before) => before,
                // What is in doubt stays so while it cannot be looked at.
                Err(error) if error.is_passing() => return Err(doubt.unwrap_or(error)),
                Err(error) => return Err(error),
            };
            let Before { base, content, found } = before;
            self.admit(token, base.epoch())?;
            // A smaller token's write is made on a version that shows a smaller token: no such version
            // is the newest any more, and none ever will be again. Whose write shows it does not matter.
            if let Some(current) = found.filter(|found| found.stamp.epoch == token) {
                return Ok(self.sealed(current));
            }
            match self.write_on(&base, token, content.clone()).await {
                Ok(Written::Yes(stamp)) => return Ok(self.sealed(Current { content, stamp })),
                Ok(Written::Lost) => {}
                Err(error @ FencedError::InDoubt { .. }) => {
                    doubts += 1;
                    if doubts == DOUBTS_MAX {
                        return Err(error);
                    }
                    doubt = Some(error);
                }
                Err(error) if error.is_passing() => return Err(doubt.unwrap_or(error)),
                Err(error) => return Err(error),
            }
        }
        Err(doubt.unwrap_or_else(|| self.contended()))
    }

    async fn before(&self, foreign: Foreign) -> Result<Before, FencedError> {
        if foreign == Foreign::Refused {
            return self.look().await.map(Before::from);
        }
        let Some((bytes, version)) = self.look_raw().await? else {
            return Ok(Found(None).into());
        };
        match Envelope::decode(&bytes) {
            Ok(envelope) => Ok(self.seen(envelope, version).into()),
            Err(NoEnvelope::Foreign) => {
                Ok(Before { base: Base::foreign(version), content: Some(bytes), found: None })
            }
            Err(NoEnvelope::Damaged(flaw)) => {
                Err(FencedError::Damaged { key: self.key().clone(), flaw })
            }
        }
    }

    fn sealed(&self, current: Current) -> Current {
        let Current { stamp, .. } = &current;
        tracing::info!(key = %self.key(), epoch = %stamp.epoch, counter = stamp.counter, "sealed");
        current
    }
}
