//! What is done to a cluster, round by round.

use crate::{
    cluster::{Active, Cluster, ClusterError},
    faults::{Fault, Stopped, Whose},
    processes::moment::Moment,
    proxy::Network,
    wire::Tell,
};
use fencing::Epoch;
use std::time::Duration;

/// How often a process is tried to be stopped where it holds no lock.
const TRIES: u32 = 200;

impl Cluster<'_> {
    /// Round by round, until the time is over.
    pub(crate) async fn soak(&mut self, until: Moment) -> Result<(), ClusterError> {
        self.start().await?;
        while Moment::now() < until {
            let setup = self.setup;
            let may_be = (setup.means, &*setup.only);
            let fault = Fault::draw(&mut self.rng, &setup.timing, may_be);
            self.round(fault).await?;
        }
        Ok(())
    }

    async fn round(&mut self, fault: Fault) -> Result<(), ClusterError> {
        let renewals = if fault == Fault::Kill { self.setup.renewals } else { 1 };
        self.settled(renewals).await?;
        let lag = self.part_of(self.setup.timing.renew());
        self.run_for(lag).await?;
        // It may have lost the lease meanwhile.
        let active = self.settled(renewals).await?;
        let member = self.members[active.member].name().to_owned();
        self.setup.remark(&self.name, &member, &fault.to_string());
        let came_out = match fault {
            Fault::Kill => self.kill(active).await?,
            Fault::Freeze { span, at } => self.freeze(active, fault, (span, at)).await?,
            Fault::Stop => self.stop(active).await?,
            Fault::Jump { whose, offset } => self.jump(active, (whose, offset)).await?,
            Fault::Cut { how, span } => self.cut(active, fault, (how, span)).await?,
        };
        if let Some(came_out) = came_out {
            self.setup.tally.borrow_mut().count(fault.kind());
            self.note(format!("{member} {fault}: {came_out}"));
        }
        Ok(())
    }

    async fn kill(&mut self, active: Active) -> Result<Option<String>, ClusterError> {
        let killed = self.members[active.member].kill().await;
        killed.map_err(ClusterError::io("killing the active process"))?;
        let at = Moment::now();
        self.active = None;
        // Sometimes before the takeover, sometimes after.
        let pause = self.part_of(self.setup.timing.ttl() * 2);
        self.restarts.push((at.plus(pause), active.member));
        let took = self.take_over("kill", at, active.epoch).await?;
        Ok(Some(format!("taken over after {took:.3?}, {} renewals before", active.renewals)))
    }

    async fn freeze(
        &mut self,
        active: Active,
        fault: Fault,
        (span, at): (Duration, Stopped),
    ) -> Result<Option<String>, ClusterError> {
        if at == Stopped::BetweenCheckAndWrite {
            self.about_to_write = None;
            self.members[active.member].tell(Tell::Pause);
            let stands = self.until("a process to stand between check and write", |it| {
                let is_lost = it.ended >= Some(active.epoch);
                (it.about_to_write == Some(active.epoch) || is_lost).then_some(!is_lost)
            });
            if !stands.await? {
                self.members[active.member].tell(Tell::Go);
                return Ok(None);
            }
        }
        let stopped = self.stop_without_locks(active.member).await?;
        // It goes on when it is woken. Until then this waits in the pipe.
        self.members[active.member].tell(Tell::Go);
        let Some(from) = stopped else { return Ok(None) };
        let is_for_good = fault.is_for_good(&self.setup.timing);
        let took = match is_for_good {
            true => Some(self.take_over("freeze", from, active.epoch).await?),
            false => None,
        };
        let left = from.plus(span).since(Moment::now());
        self.run_for(left).await?;
        self.members[active.member].thaw().map_err(ClusterError::io("waking a process"))?;
        let Some(took) = took else { return Ok(Some("woken".to_owned())) };
        self.until("the woken process to end its tenure", |it| {
            (it.ended >= Some(active.epoch)).then_some(())
        })
        .await?;
        Ok(Some(format!("taken over after {took:.3?}")))
    }

    /// SIGSTOP, at a moment at which the process keeps nobody else out.
    async fn stop_without_locks(&mut self, member: usize) -> Result<Option<Moment>, ClusterError> {
        for _ in 0..TRIES {
            self.members[member].freeze().map_err(ClusterError::io("stopping a process"))?;
            let at = Moment::now();
            let locks = self.locks();
            if !self.members[member].holds(&locks) {
                return Ok(Some(at));
            }
            self.members[member].thaw().map_err(ClusterError::io("waking a process"))?;
            self.setup.tally.borrow_mut().undone += 1;
            self.run_for(Duration::from_millis(5)).await?;
        }
        Ok(None)
    }

    async fn stop(&mut self, active: Active) -> Result<Option<String>, ClusterError> {
        self.may_end.insert(active.member);
        let at = Moment::now();
        let told = self.members[active.member].terminate();
        told.map_err(ClusterError::io("stopping the active process"))?;
        let member = active.member;
        let ended = self.until("the stopped process to end", |it| {
            (!it.members[member].is_running()).then_some(())
        });
        ended.await?;
        self.active = self.active.filter(|now| now.epoch > active.epoch);
        self.start_member(member)?;
        let acted_at = self.taken_over(active.epoch).await?;
        Ok(Some(format!("taken over after {:.3?}", acted_at.since(at))))
    }

    async fn jump(
        &mut self,
        active: Active,
        (whose, offset): (Whose, i64),
    ) -> Result<Option<String>, ClusterError> {
        let count = self.members.len();
        let index = match whose {
            Whose::Active => active.member,
            Whose::Standby => (active.member + 1 + self.rng.usize(..count - 1)) % count,
        };
        let Some(wall) = &mut self.members[index].wall else { return Ok(None) };
        let by = offset - wall.offset;
        if by == 0 {
            return Ok(None);
        }
        self.jumped = None;
        wall.set(offset).map_err(ClusterError::io("setting a clock"))?;
        let seen = self.until("a process to see its clock jump", |it| {
            it.jumped.is_some_and(|(who, _)| who == index).then_some(())
        });
        seen.await?;
        let window = self.setup.timing.window();
        let is_past = u64::try_from(by).is_ok_and(|by| Duration::from_secs(by) >= window);
        if whose == Whose::Active && !is_past {
            self.renewed_since(active.epoch).await?;
        }
        if whose == Whose::Standby || !is_past {
            return Ok(Some(format!("{by:+} s, nothing has to happen")));
        }
        self.taken_over(active.epoch).await?;
        Ok(Some(format!("{by:+} s, the fence shut, and somebody is active again")))
    }

    /// A renewal of the tenure was sent from now on, or it is over.
    ///
    /// A fence measures a wall clock from the renewal that it lives by: one that is set back, and
    /// forward again before the next, is where it was, and nothing has to happen.
    async fn renewed_since(&mut self, epoch: Epoch) -> Result<(), ClusterError> {
        if let Some(active) = self.of(epoch) {
            active.renewals = 0;
        }
        // The first may have been under way already.
        self.until("renewals by a clock that was set", |it| {
            it.of(epoch).is_none_or(|active| active.renewals >= 2).then_some(())
        })
        .await
    }

    async fn cut(
        &mut self,
        active: Active,
        fault: Fault,
        (how, span): (Network, Duration),
    ) -> Result<Option<String>, ClusterError> {
        let set = |it: &Self, network| {
            if let Some(proxy) = &it.members[active.member].proxy {
                proxy.set(network);
            }
        };
        let at = Moment::now();
        set(self, how);
        let took = match fault.is_for_good(&self.setup.timing) {
            true => self.take_over("cut", at, active.epoch).await.map(Some),
            false => Ok(None),
        };
        let left = at.plus(span).since(Moment::now());
        let ran = self.run_for(left).await;
        set(self, Network::Up);
        ran?;
        Ok(Some(match took? {
            Some(took) => format!("taken over after {took:.3?}"),
            None => "up again".to_owned(),
        }))
    }
}
