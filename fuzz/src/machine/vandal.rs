//! Others who write: whoever deletes the object, or puts something in its place without asking.

use super::{
    messages::Content,
    schedule::What,
    store::{Object, Place, version},
    world::World,
};
use fencing::Epoch;
use lease_core::{
    auth::Verdict,
    key::InstanceId,
    machine::{Entropy as _, Facts, Reply, Request, Sighting},
};
use std::{sync::Arc, time::Duration};

impl World {
    pub(super) fn vandal(&mut self, what: What, how: u8) {
        if !self.setup.has_vandal {
            return;
        }
        self.salt += 1;
        let salt = self.salt;
        let current = self.store.current().map(|place| self.store.object(place).clone());
        let time = self.time;
        match what {
            What::Delete => self.store.delete(),
            What::Garbage => {
                let object = Object { verdict: Verdict::Unreadable, facts: None, salt };
                self.store.write(object, time);
            }
            What::Forge => {
                let Some(facts) = current.and_then(|it| it.facts) else { return };
                let mut facts = Facts::clone(&facts);
                if how & 1 == 0 {
                    facts.epoch = Epoch::MAX;
                }
                if how & 2 == 0 {
                    facts.holder = None;
                }
                facts.ttl = Duration::from_millis(u64::from(how) + 1);
                let facts = Some(Arc::new(facts));
                self.store.write(Object { verdict: Verdict::Forged, facts, salt }, time);
            }
            What::WriteByHand => {
                let facts = self.by_hand(current.and_then(|it| it.facts), how);
                if self.may_put(&facts, None) {
                    let facts = Some(Arc::new(facts));
                    self.store.write(Object { verdict: Verdict::Unsigned, facts, salt }, time);
                }
            }
            _ => {
                let contents = self.store.contents();
                if contents == 0 {
                    return;
                }
                let place = contents - 1 - usize::from(how) % contents;
                let facts = self.store.object(place).facts.clone();
                if facts.is_some_and(|facts| self.may_put(&facts, Some(place))) {
                    self.store.put(place, time);
                }
            }
        }
        self.tell(|| format!("now {:?}", self.store.version()));
    }

    fn by_hand(&mut self, current: Option<Arc<Facts>>, how: u8) -> Facts {
        let number = usize::from(how >> 3 & 3) % self.nodes.len();
        let holder = match how & 3 {
            0 => Some(self.nodes[number].config.instance.clone()),
            1 => Some(InstanceId::new("else").expect("an id")),
            _ => None,
        };
        // Not near what a forger wrote: everybody believes a hand.
        let current = current.filter(|facts| facts.epoch < Epoch::MAX);
        let near = current.map_or(5, |facts| facts.epoch.as_u64());
        let number = near.saturating_add(u64::from(how >> 5)).saturating_sub(3);
        let epoch = Epoch::new(number).unwrap_or(Epoch::MIN);
        let nonce = (how & 4 == 0).then(|| self.entropy.nonce());
        Facts::new(holder, epoch, u64::from(how), nonce, self.setup.largest_ttl())
    }

    /// Whether an old record, or one written by hand, may be put where the lease is without leaving
    /// what the protocol covers. Beyond it, the token alone protects:
    ///
    /// - a version that somebody watches, or has a write under way against, comes back (section 7);
    /// - a *release* of the very epoch that a standby has just seen held, which nobody can tell from
    ///   the holder's own word;
    /// - the last release that an instance wrote, shown to that instance, which takes it for the
    ///   latest word (section 4: "this instance's history says that it wrote this very release");
    /// - the last epoch that an instance opened, shown to that instance while it may reclaim;
    /// - a *held* record with a ttl below that of the real holder, which the record's reader may never
    ///   have seen: it waits for the ttl that is said (section 2).
    fn may_put(&self, facts: &Facts, place: Option<Place>) -> bool {
        let same_epoch = |other: Place| {
            let other = self.store.object(other).facts.as_ref();
            other.is_some_and(|other| other.epoch == facts.epoch)
        };
        let is_watched = |shown: Place| Some(shown) == place || same_epoch(shown);
        let against = |request: &Request| match request {
            Request::Create(_) => false,
            Request::Read { unless } => unless.is_some() && *unless == place.map(version),
            Request::Replace(_, condition) => Some(condition.clone()) == place.map(version),
            _ => true,
        };
        let under_way = self.messages.iter().any(|(_, message)| match &message.content {
            Content::Request { request, .. } => against(request),
            Content::Reply(Reply::Read(Sighting::Missing), _) => false,
            Content::Reply(_, Some((Some(shown), _))) => is_watched(*shown),
            Content::Reply(Reply::Written(written), _) => {
                Some(written.clone()) == place.map(version)
            }
            _ => false,
        });
        let is_own = self.nodes.iter().any(|node| {
            let process = node.process.as_ref();
            let released =
                [node.disk.past.last_release, process.and_then(|process| process.last_release)];
            let is_own_release = facts.nonce.is_some() && released.contains(&facts.nonce);
            let opened = node.disk.opened.map(|tenure| tenure.epoch);
            let is_reclaimable = node.reclaims && opened == Some(facts.epoch);
            let shown = process.and_then(|process| process.shown);
            is_own_release || is_reclaimable || shown.is_some_and(is_watched)
        });
        let says_too_little = facts.holder.is_some() && facts.ttl < self.setup.largest_ttl();
        !under_way && !is_own && !says_too_little
    }
}
