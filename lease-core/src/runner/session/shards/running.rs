//! Carries out what a policy decides.

use super::{HeldShard, ShardSet, ShardStatus};
use crate::{
    key::{InstanceId, LeaseName},
    runner::session::{NameWatch, NamedAcquireError, NamedTenure, SessionManager},
    session::{
        DenyReason, NamedSeen,
        shards::{Plan, Roster, Shard, SlotSeen, View},
    },
};
use futures_util::{StreamExt as _, stream};
use std::{collections::BTreeMap, future::Future, time::Duration};
use tokio::{
    task::JoinSet,
    time::{Instant, MissedTickBehavior},
};
use tokio_util::sync::CancellationToken;

/// How many shards are tried at a time. The session bounds its requests as well.
const TRIED_AT_ONCE: usize = 16;

pub(super) struct Running<'s, F> {
    set: ShardSet,
    session: &'s SessionManager,
    work: F,
    pace: Duration,
    roster: Roster,
    watches: Vec<NameWatch>,
    /// The slots that this process holds, by their numbers.
    slots: BTreeMap<usize, NamedTenure>,
    /// When it took the last of them.
    moved: Option<Instant>,
    /// The shards that this process holds: what tells the work to end.
    held: BTreeMap<LeaseName, CancellationToken>,
    tried: BTreeMap<LeaseName, Tried>,
    /// The work on each shard, until its lease was given back or lost.
    works: JoinSet<LeaseName>,
}

/// A shard that was tried in vain, or given back.
struct Tried {
    at: Instant,
    holder: Option<InstanceId>,
}

/// The session has ended for good.
struct Stopped;

impl<'s, F, Fut> Running<'s, F>
where
    F: Fn(HeldShard) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    pub(super) fn new(set: ShardSet, session: &'s SessionManager, work: F) -> Self {
        let pace = set.pace.unwrap_or(session.timing().renew() / 4);
        Self {
            roster: Roster::new(session.instance().clone(), set.max_members),
            set,
            session,
            work,
            pace,
            watches: Vec::new(),
            slots: BTreeMap::new(),
            moved: None,
            held: BTreeMap::new(),
            tried: BTreeMap::new(),
            works: JoinSet::new(),
        }
    }

    pub(super) async fn run(mut self) {
        let mut tick = tokio::time::interval(self.pace);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.session.stopping().cancelled() => break,
                () = self.session.gone().cancelled() => break,
                _ = tick.tick() => {}
                () = first_look(&mut self.watches) => {}
                Some(ended) = self.works.join_next() => self.ended(ended.ok()),
            }
            if self.step().await.is_err() {
                break;
            }
        }
        self.leave().await;
    }

    /// The work has been told to end by the session. The slots are kept until it has: nobody is to
    /// count on shards that are not free yet.
    async fn leave(mut self) {
        while self.works.join_next().await.is_some() {}
        for (_, slot) in std::mem::take(&mut self.slots) {
            slot.release().await;
        }
        self.set.status.send_replace(ShardStatus::default());
    }

    fn ended(&mut self, shard: Option<LeaseName>) {
        // A task that did not say which it was has panicked outside of the work, which cannot be.
        let Some(shard) = shard else { return };
        self.held.remove(&shard);
        self.tried.insert(shard, Tried { at: now(), holder: None });
    }

    /// Decides and acts until there is nothing to try. What is tried rests for a while, but a try may
    /// take longer than that: so it looks again each time.
    async fn step(&mut self) -> Result<(), Stopped> {
        loop {
            self.look().await?;
            self.take_slot().await?;
            while let Some(ended) = self.works.try_join_next() {
                self.ended(ended.ok());
            }
            let view = self.view();
            let plan = self.set.policy.decide(&view);
            self.tell(&view, &plan);
            for shard in &plan.release {
                if let Some(stop) = self.held.get(shard) {
                    stop.cancel();
                }
            }
            if plan.acquire.is_empty() {
                return Ok(());
            }
            self.acquire(plan.acquire, &view.members).await?;
        }
    }

    /// Takes in what the session has seen of the slots.
    async fn look(&mut self) -> Result<(), Stopped> {
        self.slots.retain(|_, tenure| tenure.end_reason().is_none());
        loop {
            for number in 0..self.watches.len() {
                let seen = self.seen(number);
                self.roster.see(number, seen);
            }
            let watched = self.roster.watched();
            self.watches.truncate(watched);
            if self.watches.len() == watched {
                return Ok(());
            }
            while self.watches.len() < watched {
                let name = self.slot(self.watches.len());
                match self.session.watch(&name).await {
                    Ok(watch) => self.watches.push(watch),
                    Err(NamedAcquireError::Stopped) => return Err(Stopped),
                    // As many leases as it may have: what is not seen costs balance alone.
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    fn seen(&self, number: usize) -> SlotSeen {
        if self.slots.contains_key(&number) {
            return SlotSeen::Mine;
        }
        match self.watches.get(number).and_then(NameWatch::seen) {
            // Of an earlier life, or on its way back.
            Some(NamedSeen::Held { holder, .. }) if holder == *self.session.instance() => {
                SlotSeen::Free
            }
            Some(NamedSeen::Held { holder, .. }) => SlotSeen::Held(holder),
            Some(NamedSeen::Orphaned { .. }) => SlotSeen::Orphaned,
            Some(seen) if seen.is_free() => SlotSeen::Free,
            Some(_) | None => SlotSeen::Unknown,
        }
    }

    fn slot(&self, number: usize) -> String {
        format!("{}/members/{number}", self.set.name)
    }

    async fn take_slot(&mut self) -> Result<(), Stopped> {
        if let Some(number) = self.roster.wanted() {
            let name = self.slot(number);
            match self.attempt(&name, &self.roster.members()).await? {
                Attempt::Acquired(tenure) => {
                    self.slots.insert(number, tenure);
                    self.moved = Some(now());
                    self.roster.see(number, SlotSeen::Mine);
                }
                Attempt::Denied(Some(holder)) => self.roster.see(number, SlotSeen::Held(holder)),
                Attempt::Denied(None) => {}
            }
        }
        self.bury().await?;
        // Others must see where it has moved before they see that it has left.
        if self.moved.is_some_and(|moved| now() - moved < self.session.timing().renew() * 2) {
            return Ok(());
        }
        let surplus: Vec<_> = self.roster.surplus().collect();
        for number in surplus {
            if let Some(slot) = self.slots.remove(&number) {
                self.roster.see(number, SlotSeen::Free);
                slot.release().await;
            }
        }
        Ok(())
    }

    /// Gives back the slot of a dead member above all others, so that nobody has to watch it.
    async fn bury(&mut self) -> Result<(), Stopped> {
        let Some(number) = self.roster.orphan() else { return Ok(()) };
        let attempt = self.attempt(&self.slot(number), &self.roster.members()).await?;
        if let Attempt::Acquired(slot) = attempt {
            self.roster.see(number, SlotSeen::Free);
            slot.release().await;
        }
        Ok(())
    }

    fn view(&self) -> View {
        let shards = self.set.shards.keys().map(|shard| (shard.clone(), self.shard(shard)));
        View {
            me: self.session.instance().clone(),
            members: self.roster.members(),
            shards: shards.collect(),
        }
    }

    fn shard(&self, shard: &LeaseName) -> Shard {
        match (self.held.get(shard), self.tried.get(shard)) {
            (Some(stop), _) if stop.is_cancelled() => Shard::Resting,
            (Some(_), _) => Shard::Mine,
            (None, Some(tried)) => {
                let age = now() - tried.at;
                match &tried.holder {
                    _ if age < self.pace => Shard::Resting,
                    Some(holder) if age < self.session.timing().renew() * 2 => {
                        Shard::Held(holder.clone())
                    }
                    _ => Shard::Unknown,
                }
            }
            (None, None) => Shard::Unknown,
        }
    }

    fn tell(&self, view: &View, plan: &Plan) {
        let is_resting = self.held.values().any(CancellationToken::is_cancelled);
        let status = ShardStatus {
            members: view.members.clone(),
            held: self.held.keys().cloned().collect(),
            is_settled: plan.is_empty() && !is_resting && view.members.contains(&view.me),
        };
        self.set.status.send_if_modified(|before| {
            let is_new = *before != status;
            *before = status;
            is_new
        });
    }

    async fn acquire(
        &mut self,
        shards: Vec<LeaseName>,
        members: &[InstanceId],
    ) -> Result<(), Stopped> {
        let this = &*self;
        let tries = stream::iter(shards)
            .map(|shard| async move {
                let attempt = match this.set.shards.get(&shard) {
                    Some(lease) => this.attempt(lease.as_str(), members).await,
                    // A policy's own invention.
                    None => Ok(Attempt::Denied(None)),
                };
                (shard, attempt)
            })
            .buffer_unordered(TRIED_AT_ONCE)
            .collect::<Vec<_>>()
            .await;
        for (shard, attempt) in tries {
            match attempt? {
                Attempt::Acquired(tenure) => self.hold(shard, tenure),
                Attempt::Denied(holder) => {
                    self.tried.insert(shard, Tried { at: now(), holder });
                }
            }
        }
        Ok(())
    }

    fn hold(&mut self, name: LeaseName, tenure: NamedTenure) {
        let stop = tenure.lost().child_token();
        let held = HeldShard { name: name.clone(), fence: tenure.fence(), stop: stop.clone() };
        let work = (self.work)(held);
        self.tried.remove(&name);
        self.held.insert(name.clone(), stop);
        self.works.spawn(async move {
            let ran = tenure
                .run(|_| async move {
                    work.await;
                    Ok::<_, std::convert::Infallible>(())
                })
                .await;
            if let Err(error) = ran {
                tracing::warn!(shard = %name, %error, "a shard was not held to the end of the work on it");
            }
            name
        });
    }

    async fn attempt(&self, name: &str, members: &[InstanceId]) -> Result<Attempt, Stopped> {
        let mut acquired = self.session.try_acquire(name).await;
        if let Err(NamedAcquireError::Denied { reason: DenyReason::Held { holder }, .. }) =
            &acquired
            && !members.contains(holder)
        {
            // Nobody waits for what a live holder has, but a dead one's session is ended only by
            // somebody who does.
            let waited = self.session.acquire(name);
            if let Ok(waited) = tokio::time::timeout(self.pace * 2, waited).await {
                acquired = waited;
            }
        }
        match acquired {
            Ok(tenure) => Ok(Attempt::Acquired(tenure)),
            Err(NamedAcquireError::Stopped) => Err(Stopped),
            Err(NamedAcquireError::Denied { reason: DenyReason::Held { holder }, .. }) => {
                Ok(Attempt::Denied(Some(holder)))
            }
            Err(_) => Ok(Attempt::Denied(None)),
        }
    }
}

/// Waits until a slot that was not looked at yet has been.
async fn first_look(watches: &mut [NameWatch]) {
    let unseen = watches.iter_mut().find(|watch| watch.seen().is_none());
    let is_seen = match unseen {
        Some(watch) => watch.next().await.is_some(),
        None => false,
    };
    if !is_seen {
        std::future::pending::<()>().await;
    }
}

enum Attempt {
    Acquired(NamedTenure),
    Denied(Option<InstanceId>),
}

#[expect(clippy::disallowed_methods, reason = "how long ago it tried decides about tries alone")]
fn now() -> Instant {
    Instant::now()
}
