//! Connecting to a store: object lock, the probe in both dialects, and fresh connections at the end.

use crate::{
    client::{Builder, Client},
    error::{OpenError, UrlError},
    object_lock::{self, Locked},
    options::{ObjectLock, S3Options},
    provider::Provider,
    store::{Opened, S3Store},
    tag::Dialect,
    wire::Connector,
};
use lease_core::{
    ObjectKey, StoreError, StoreErrorKind,
    fencing::{Clock as _, SystemClock},
    probe::{ProbeError, ProbeStep, probe_and_clean},
};

/// How often a store is probed whose answers left the verdict open, though the probe itself runs a race
/// again that said nothing. What bounds the time that this takes is the limit of connecting.
const PROBE_TRIES: u32 = 5;

impl S3Options {
    pub(crate) async fn connect_without_limit(self) -> Result<S3Store, OpenError> {
        self.refuse_object_lock().await?;
        let quoted = match self.probed(Dialect::Quoted).await {
            Err(OpenError::Refused { place, refusal })
                if refusal.step == ProbeStep::ReplaceCurrent
                    && self.place.provider == Provider::S3 =>
            {
                OpenError::Refused { place, refusal }
            }
            result => return result,
        };
        match self.probed(Dialect::Bare).await {
            // No better without quotes: the usual dialect's refusal is the one that helps.
            Err(OpenError::Refused { refusal, .. })
                if refusal.step == ProbeStep::ReplaceCurrent =>
            {
                Err(quoted)
            }
            result => result,
        }
    }

    async fn refuse_object_lock(&self) -> Result<(), OpenError> {
        let (Builder::S3(builder), false) =
            (&self.recipe.builder, self.object_lock == ObjectLock::Allow)
        else {
            return Ok(());
        };
        let attempted = format!("asking {} for object lock", self.place);
        let connector = self.recipe.connector();
        match object_lock::ask(builder, &connector, &attempted).await {
            Ok(Locked::No) => Ok(()),
            Ok(Locked::Yes) => Err(OpenError::ObjectLock { place: self.place.to_string() }),
            Ok(Locked::CannotTell) if self.object_lock == ObjectLock::AllowUnknown => {
                tracing::warn!(store = %self.place, "it cannot be told whether it has object lock");
                Ok(())
            }
            Ok(Locked::CannotTell) => {
                Err(OpenError::ObjectLockUnknown { place: self.place.to_string() })
            }
            Err(source) => Err(self.unavailable(&connector, "looking for object lock", source)),
        }
    }

    async fn probed(&self, dialect: Dialect) -> Result<S3Store, OpenError> {
        let store = self.clone().store(dialect)?;
        let clock = SystemClock::new();
        let began = clock.monotonic();
        let lease = ObjectKey::new("lease.json").map_err(|_| OpenError::Url(UrlError::Prefix))?;
        let mut tries = 1;
        let verdict = loop {
            match probe_and_clean(&store, &lease).await {
                // As after a race whose losers were answered 500. It says nothing of the store.
                Err(ProbeError::Inconclusive { step, source })
                    if tries < PROBE_TRIES && is_doubt(&source) =>
                {
                    tracing::info!(store = %self.place, %step, %source, "probing it again");
                    tries += 1;
                }
                verdict => break verdict,
            }
        };
        let report = match verdict {
            Ok(report) => report,
            Err(ProbeError::Refused(refusal)) => {
                return Err(OpenError::Refused { place: self.place.to_string(), refusal });
            }
            Err(other) => {
                return Err(self.unavailable(store.connector(), "probing it", other.into()));
            }
        };
        let took = began.until(clock.monotonic());
        // All that the probe read was written since it began. If it was told to be older, what says
        // `Date` and what says `Last-Modified` are not one clock.
        let tells_age = store.oldest_seen() <= took.as_secs() + 1;
        if !tells_age {
            tracing::warn!(
                store = %self.place,
                "the ages that it tells cannot be right (a proxy with a clock of its own?) and are \
                 not used"
            );
        }
        let opened = Opened { dialect, probe: Some(report), tells_age };
        let client = Client::new(self.recipe.clone()).map_err(|_| UrlError::Settings)?;
        tracing::info!(store = %self.place, ?dialect, ?took, "the store passed its probe");
        Ok(S3Store::new(client, self.place.clone(), opened))
    }

    pub(crate) fn store(self, dialect: Dialect) -> Result<S3Store, OpenError> {
        let client = Client::new(self.recipe).map_err(|_| UrlError::Settings)?;
        let opened = Opened { dialect, probe: None, tells_age: true };
        Ok(S3Store::new(client, self.place, opened))
    }

    fn unavailable(
        &self,
        connector: &Connector,
        what: &'static str,
        source: StoreError,
    ) -> OpenError {
        let place = self.place.to_string();
        match connector.unaccepted() {
            Some(found) => OpenError::Certificate { place, found: found.to_string() },
            None => OpenError::Unavailable { place, what, source },
        }
    }
}

fn is_doubt(error: &StoreError) -> bool {
    matches!(error.kind(), StoreErrorKind::InDoubt | StoreErrorKind::Contended)
}
