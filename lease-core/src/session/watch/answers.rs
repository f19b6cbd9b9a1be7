//! What an answer about a session that is watched means.

use super::{News, Object, Pause, Seen, Watch};
use crate::{
    auth::Verdict,
    key::InstanceId,
    machine::Facts,
    session::{
        config::Config,
        core::{Core, Flight},
        ended::Ended,
        event::{Attempted, Event},
        facts::{Life, SessionFacts, SessionState},
        io::{Reply, Sighting},
        rules::SessionRules,
    },
    store::{StoreErrorKind, Version},
};
use fencing::MonotonicTime;
use std::{sync::Arc, time::Duration};

impl Watch {
    /// The answer to a read, a tombstone or a kill.
    pub(in crate::session) fn answered<R: SessionRules>(
        &mut self,
        instance: &InstanceId,
        core: &mut Core<R>,
        flight: &Flight,
        reply: Reply,
        now: MonotonicTime,
    ) -> News {
        self.flight = None;
        let ending = self.ending.take();
        let error = match (reply, flight.attempted, ending) {
            (Reply::Session(sighting), Attempted::Read, _) => {
                match self.read(core, sighting, flight.sent.monotonic, now) {
                    Some(news) => return news,
                    None => StoreErrorKind::InDoubt,
                }
            }
            (Reply::Written(version), Attempted::Kill | Attempted::Tombstone, Some(life)) => {
                return self.wrote(instance, core, flight.attempted, life, version, now);
            }
            (Reply::Failed(error), ..) => error,
            _ => StoreErrorKind::InDoubt,
        };
        self.failed(core, flight, error, now)
    }

    fn failed<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        flight: &Flight,
        error: StoreErrorKind,
        now: MonotonicTime,
    ) -> News {
        let soon = now + core.retry();
        let is_late = flight.until <= now;
        let is_refused = error == StoreErrorKind::Precondition;
        if !is_refused {
            core.failed(flight.slot.object(), flight.attempted, error);
        }
        match (flight.attempted, error) {
            (Attempted::Read, _) => self.read_at = soon,
            (_, StoreErrorKind::Unavailable) => self.pause = Pause::Until(soon),
            _ => {
                // Something else may stand there, or one's own: a read tells.
                self.pause = Pause::Read { restarts: is_refused };
                self.read_at = if is_refused || is_late { now } else { soon };
            }
        }
        News::Failed(error)
    }

    fn read<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        sighting: Sighting<SessionFacts>,
        sent: MonotonicTime,
        now: MonotonicTime,
    ) -> Option<News> {
        let (version, verdict, facts) = match sighting {
            Sighting::Missing => (None, Verdict::Unreadable, None),
            Sighting::Found { version, verdict, facts, .. } => (Some(version), verdict, facts),
            Sighting::NotModified => {
                let seen = self.seen.as_ref().filter(|seen| seen.version.is_some())?;
                (seen.version.clone(), seen.verdict, seen.facts.clone())
            }
        };
        let restarts = self.pause == Pause::Read { restarts: true };
        self.pause = Pause::No;
        self.read_at = sent + core.renew();
        let since = if R::SEEN_FROM_THE_ANSWER { now } else { sent };
        Some(self.see(core, (version, verdict, facts), restarts, since, now))
    }

    fn see<R: SessionRules>(
        &mut self,
        core: &mut Core<R>,
        (version, verdict, facts): Object,
        restarts: bool,
        since: MonotonicTime,
        now: MonotonicTime,
    ) -> News {
        let before = self.seen.take();
        let gap = core.renew() * 2;
        let same = before.as_ref().filter(|before| {
            before.version == version
                && !restarts
                && (now - before.shown <= gap || !R::BLIND_GAP_RESTARTS)
        });
        let (since, jitter) = match same {
            Some(before) => (before.since, before.jitter),
            None => {
                let lag = before.as_ref().map_or(Duration::ZERO, |before| now - before.shown);
                (since, core.draw_jitter(lag))
            }
        };
        let ttl = facts.as_ref().map(|facts| facts.lease.ttl);
        let is_believed = version.is_some() && core.own.machine.learn_beside(verdict, ttl, now);
        let shown =
            facts.as_ref().filter(|_| is_believed || !R::UNACCEPTABLE_SESSION_FREES_NOTHING);
        let mut ended = shown.and_then(|facts| Ended::shown_by::<R>(facts));
        if version.is_none() && !R::MISSING_SESSION_GETS_A_TOMBSTONE {
            ended = self.lives().max_by_key(|life| life.epoch).map(Ended::with);
        }
        self.seen = Some(Seen { version, verdict, facts, since, shown: now, jitter });
        match ended {
            Some(ended) if self.learn_ended::<R>(ended) => News::Freed,
            _ => News::None,
        }
    }

    /// True if it is news.
    pub(super) fn learn_ended<R: SessionRules>(&mut self, ended: Ended) -> bool {
        let merged = Ended::merge(self.ended, ended);
        let is_news = self.ended.replace(merged) != Some(merged);
        if is_news {
            self.unfreed = self.lives().filter(|life| !merged.covers::<R>(*life)).count();
        }
        is_news
    }

    /// A kill or a tombstone of one's own is in the store. Its version was not read, but is known.
    fn wrote<R: SessionRules>(
        &mut self,
        instance: &InstanceId,
        core: &mut Core<R>,
        attempted: Attempted,
        life: Life,
        version: Version,
        now: MonotonicTime,
    ) -> News {
        core.own.machine.learn_authenticated();
        let state = match attempted {
            Attempted::Tombstone => SessionState::Tombstone,
            _ => SessionState::Killed,
        };
        let verdict = own_verdict(&core.config);
        let ttl = core.config.timing.ttl();
        let lease = Facts::new(None, life.epoch, 1, None, ttl);
        let facts = Arc::new(SessionFacts { lease, life: life.nonce, state });
        self.pause = Pause::No;
        self.read_at = now + core.renew();
        let news = self.see(core, (Some(version), verdict, Some(facts)), true, now, now);
        if state == SessionState::Tombstone {
            return news;
        }
        core.events.push_back(Event::Killed { instance: instance.clone(), life });
        News::Ended
    }
}

/// What one's own records read as.
fn own_verdict(config: &Config) -> Verdict {
    if config.has_secret { Verdict::Authentic } else { Verdict::Unsigned }
}
