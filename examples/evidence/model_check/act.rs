//! What can happen next.

use super::{
    Failover,
    setting::{Fault, Setting},
    world::{Sent, Stands, World, holds},
};
use lease_core::machine::{Request, Role};

/// One step. Numbers are those of hosts or of requests, as the world has them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// A request arrives and is carried out, and so is its answer if it is on no other way.
    Arrive(usize),
    /// A disk takes a note.
    Disk(usize),
    /// Something goes wrong, with a host or a request or with the object.
    Go(Fault, usize),
    /// An answer that was on its way is heard.
    Hear(usize),
    /// A host reaches the store again.
    Mend(usize),
    /// A process goes on.
    Resume(usize),
    /// A process is started again.
    Start(usize),
    /// Time goes on.
    Tick,
    /// A timer of a machine is due.
    Wake(usize),
}

impl Failover {
    /// Everything that can happen, in an order that depends on nothing else. What goes wrong comes
    /// last, and time right before it.
    pub(crate) fn acts(&self, world: &World, acts: &mut Vec<Act>) {
        if world.broken.is_some() {
            return;
        }
        let mut is_idle = true;
        for (number, host) in world.hosts.iter().enumerate() {
            if world.is_due(&self.setting, number) {
                acts.push(Act::Wake(number));
                is_idle = false;
            }
            if host.is_running() && !host.notes.is_empty() {
                acts.push(Act::Disk(number));
                is_idle = false;
            }
        }
        for (at, sent) in world.requests.iter().enumerate() {
            let host = &world.hosts[sent.host];
            let is_held_up = sent.is_held_up || host.is_cut;
            let act = match sent.answer {
                None => Act::Arrive(at),
                Some(_) if host.is_running() => Act::Hear(at),
                Some(_) => continue,
            };
            if !is_held_up {
                acts.push(act);
                is_idle &= !sent.is_quick;
            }
        }
        for (number, host) in world.hosts.iter().enumerate() {
            if host.machine.is_none() {
                acts.push(Act::Start(number));
            } else if host.stands != Stands::Not {
                acts.push(Act::Resume(number));
            }
            if host.is_cut {
                acts.push(Act::Mend(number));
            }
        }
        if is_idle && world.now < self.setting.ticks {
            acts.push(Act::Tick);
        }
        if world.faults > 0 {
            let faults = self.setting.kinds.iter();
            acts.extend(faults.flat_map(|fault| wrong(&self.setting, world, *fault)));
        }
    }
}

/// Every way in which this can go wrong now.
fn wrong(setting: &Setting, world: &World, fault: Fault) -> Vec<Act> {
    let hosts = |fits: fn(&super::world::Host) -> bool| -> Vec<usize> {
        let hosts = world.hosts.iter().enumerate();
        hosts.filter(|(_, host)| fits(host)).map(|(number, _)| number).collect()
    };
    let requests = |fits: fn(&Sent) -> bool| -> Vec<usize> {
        let sent = world.requests.iter().enumerate();
        let quick = sent.filter(|(_, sent)| sent.is_quick && sent.answer.is_none());
        quick.filter(|(_, sent)| fits(sent)).map(|(at, _)| at).collect()
    };
    let numbers = match fault {
        Fault::Delay | Fault::DelayAnswer => requests(|sent| sent.id.is_some()),
        Fault::Doubt | Fault::Conflict => {
            requests(|sent| sent.id.is_some() && !matches!(sent.request, Request::Read { .. }))
        }
        Fault::Crash | Fault::Lose => hosts(|host| host.machine.is_some()),
        Fault::Cut => hosts(|host| host.machine.is_some() && !host.is_cut),
        Fault::Pause | Fault::Suspend => hosts(|host| host.is_running()),
        Fault::Release => hosts(|host| {
            host.is_running() && host.machine.as_ref().is_some_and(|it| holds(it.role()))
        }),
        Fault::Abandon => hosts(|host| {
            let role = host.machine.as_ref().map(|machine| machine.role());
            host.is_running() && role == Some(Role::TakingOver)
        }),
        Fault::Delete | Fault::Garbage => (0..usize::from(world.object.is_some())).collect(),
        Fault::PutBack => world.harmful(setting).collect(),
    };
    numbers.into_iter().map(|number| Act::Go(fault, number)).collect()
}
