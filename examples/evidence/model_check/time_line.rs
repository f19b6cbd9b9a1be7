//! A counterexample for people: the steps that led to it, as a time line.

use super::{Failover, act::Act, step::Stage, world::World};
use lease_core::{
    fencing::Epoch,
    testing::sim::{self, Record, Step},
};
use std::{collections::BTreeMap, time::Duration};

/// Writes down what happens, in the words of the simulator.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    records: Vec<Record>,
    tenures: u32,
    last: BTreeMap<usize, sim::Tenure>,
}

impl Recorder {
    pub(crate) fn note(&mut self, at: Duration, step: impl FnOnce(&mut Self) -> Option<Step>) {
        if let Some(step) = step(self) {
            self.records.push(Record { at, step });
        }
    }

    pub(crate) fn begin(&mut self, host: usize, epoch: Epoch) -> sim::Tenure {
        self.tenures += 1;
        let tenure = sim::Tenure { number: self.tenures, host, epoch };
        self.last.insert(host, tenure);
        tenure
    }

    pub(crate) fn tenure(&self, host: usize) -> Option<sim::Tenure> {
        self.last.get(&host).copied()
    }
}

impl Failover {
    /// Takes these steps from the beginning and tells them.
    pub(crate) fn time_line(&self, acts: &[Act]) -> String {
        let mut recorder = Recorder::default();
        let mut world = self.beginning(Some(&mut recorder));
        for act in acts {
            self.take(&mut world, *act, Some(&mut recorder));
        }
        sim::time_line(&recorder.records)
    }

    pub(crate) fn take(&self, world: &mut World, act: Act, log: Option<&mut Recorder>) {
        Stage { setting: &self.setting, world, log, heard_a_read: None }.act(act);
    }

    /// The first state: every process was just started; or the first instance is active and the
    /// others have seen it, reached by the steps that come first.
    pub(crate) fn beginning(&self, mut log: Option<&mut Recorder>) -> World {
        let mut world = World::new(&self.setting);
        let mut acts = Vec::new();
        loop {
            if !self.setting.starts_held {
                break;
            }
            acts.clear();
            self.acts(&world, &mut acts);
            match acts.first() {
                Some(act @ (Act::Wake(_) | Act::Disk(_) | Act::Arrive(_) | Act::Hear(_))) => {
                    self.take(&mut world, *act, log.as_deref_mut());
                }
                _ => break,
            }
        }
        world
    }
}
