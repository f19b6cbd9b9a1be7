//! The races of the probe: exactly one of the writers wins, whatever the losers are told.

use super::{Probe, ProbeError, ProbeKey, ProbeStep, failed, inconclusive, refused};
use crate::{
    key::ObjectKey,
    race::{RACERS, Race, race_creates, race_replaces},
    store::{Cause, Read, StoreError, Version},
};
use bytes::Bytes;

/// Fewer racers than this with a certain answer are no race: most of them may never have arrived.
/// Not more, since there are servers that answer 500 to losers (Ceph 16 does, to nearly all).
const FEWEST_CERTAIN: usize = RACERS / 4;

/// How often a race is run that is none, before the probe says that it cannot tell.
const RACES: usize = 12;

/// Where a race left its object.
struct Raced {
    /// The version that it has now; `None` if it is still missing.
    version: Option<Version>,
    /// Why the race says nothing, if it does not.
    doubt: Option<StoreError>,
}

/// What was written in the races of one step, and what was there before.
struct Entries {
    of_this_race: Vec<Bytes>,
    /// Those of earlier races on the same object: one that was left in doubt may land late.
    earlier: Vec<Bytes>,
    before: Option<Version>,
}

impl Probe<'_> {
    /// Replaces the current version of the object by all racers at once, until that was a race.
    pub(super) async fn race_replaces(
        &mut self,
        key: &ProbeKey,
        version: Version,
    ) -> Result<Version, ProbeError> {
        let (step, key) = (ProbeStep::RaceReplaces, key.as_object_key());
        let (mut current, mut earlier, mut doubt) = (version, Vec::new(), None);
        for number in 1..=RACES {
            let of_this_race = self.entries("replacing", number);
            let race = race_replaces(self.store, key, &current, &of_this_race).await;
            let entries = Entries { of_this_race, earlier, before: Some(current.clone()) };
            let raced = self.settle(step, key, &entries, race).await?;
            current = raced.version.unwrap_or(current);
            doubt = raced.doubt;
            if doubt.is_none() {
                return Ok(current);
            }
            earlier = [entries.earlier, entries.of_this_race].concat();
        }
        Err(inconclusive(step, doubt.unwrap_or_else(|| nobody_won(key))))
    }

    /// Creates an object by all racers at once, until that was a race. Which object, and its version.
    pub(super) async fn race_creates(&mut self) -> Result<(ProbeKey, Version), ProbeError> {
        let (step, mut doubt) = (ProbeStep::RaceCreates, None);
        for number in 1..=RACES {
            let key = self.keys.race()?;
            let of_this_race = self.entries("creating", number);
            let race = race_creates(self.store, key.as_object_key(), &of_this_race).await;
            let entries = Entries { of_this_race, earlier: Vec::new(), before: None };
            match self.settle(step, key.as_object_key(), &entries, race).await? {
                Raced { version: Some(version), doubt: None } => return Ok((key, version)),
                Raced { doubt: why, .. } => doubt = why,
            }
        }
        Err(inconclusive(step, doubt.unwrap_or_else(|| nobody_won(&self.object()))))
    }

    /// Exactly one of the racers won, and a read shows that it did. What became of those that were left
    /// in doubt is told by that read as well, as the holder of a lease would be told; how many must
    /// not be in doubt does not change by it.
    async fn settle(
        &mut self,
        step: ProbeStep,
        key: &ObjectKey,
        entries: &Entries,
        race: Race,
    ) -> Result<Raced, ProbeError> {
        self.report.races += 1;
        self.report.requests += entries.of_this_race.len();
        self.report.contended += race.contended;
        self.report.in_doubt += race.in_doubt.len();
        let (won, certain) = (race.won.len(), race.certain());
        if won > 1 {
            let found = format!("{won} of {RACERS} writers won, expected exactly one");
            return Err(refused(step, found));
        }
        if let Some(stray) = race.stray {
            return Err(failed(step, stray));
        }
        let is_open =
            !race.in_doubt.is_empty() || race.contended > 0 || !entries.earlier.is_empty();
        let (doubtful, mut doubts): (Vec<usize>, Vec<_>) = race.in_doubt.into_iter().unzip();
        if let Some((winner, version)) = race.won.into_iter().next() {
            self.shows(step, key, &entries.of_this_race[winner], &version).await?;
            let doubt = doubts.pop().filter(|_| certain < FEWEST_CERTAIN);
            return Ok(Raced { version: Some(version), doubt });
        }
        if !is_open {
            return Err(refused(step, format!("none of {RACERS} writers won, but all lost")));
        }
        let (winner, version) = self.look(step, key, entries).await?;
        if winner.is_some_and(|winner| !doubtful.contains(&winner)) {
            return Err(refused(step, "a writer that was told that it had lost had won"));
        }
        // Several may have been written and left in doubt: nobody was told that it won.
        Ok(Raced { version, doubt: doubts.pop().or_else(|| Some(nobody_won(key))) })
    }

    /// Which of the racers the object shows, if any, and its version.
    async fn look(
        &mut self,
        step: ProbeStep,
        key: &ObjectKey,
        entries: &Entries,
    ) -> Result<(Option<usize>, Option<Version>), ProbeError> {
        self.report.requests += 1;
        let read = self.store.read_versioned(key, None).await;
        match read.map_err(|error| failed(step, error))? {
            Read::Missing if entries.before.is_none() => Ok((None, None)),
            Read::Missing => Err(refused(step, "the object is then missing")),
            Read::NotModified => {
                Err(refused(step, "a read without a condition found it unchanged"))
            }
            Read::Found { content, version, .. } => {
                let winner = entries.of_this_race.iter().position(|entry| *entry == content);
                let is_known = winner.is_some()
                    || entries.before.as_ref() == Some(&version)
                    || entries.earlier.contains(&content);
                if !is_known {
                    return Err(refused(step, "the object then has what no writer wrote"));
                }
                Ok((winner, Some(version)))
            }
        }
    }

    fn entries(&self, what: &str, race: usize) -> Vec<Bytes> {
        (1..=RACERS).map(|racer| self.content(&format!("{what} {race}.{racer}"))).collect()
    }
}

fn nobody_won(key: &ObjectKey) -> StoreError {
    let found = format!("creating or replacing {key}: nobody won, each met another");
    StoreError::Contended(Cause::new(found))
}
