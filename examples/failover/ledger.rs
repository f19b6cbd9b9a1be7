//! What is known of one round: who held the lease when, and what the resource admitted.
//!
//! An interval in which a fence was open is never taken to be shorter than it was: it begins where
//! the fence can have opened at the earliest, and ends where it was certainly shut.

use crate::wire::{Moment, Say, Tell};
use fencing::{Epoch, FencingGate};

/// Which of the two processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    A,
    B,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::A, Self::B];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::A => "a",
            Self::B => "b",
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// One period of holding, as its process told it.
#[derive(Clone, Debug)]
pub(crate) struct Tenure {
    pub(crate) side: Side,
    pub(crate) epoch: Epoch,
    pub(crate) taking_over_at: Moment,
    pub(crate) opened: Option<Opened>,
    /// When the last renewal that is known to have succeeded was sent.
    pub(crate) renewed: Option<Moment>,
    /// When each renewal was sent that is known to have succeeded.
    pub(crate) renewals: Vec<Moment>,
    pub(crate) ended: Option<Ended>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// The fence was not open before.
    pub(crate) not_before: Moment,
    /// The application knew that it was open.
    pub(crate) at: Moment,
    /// The fence shuts by itself then.
    pub(crate) deadline: Moment,
    /// It was shut by then, whatever the deadline says.
    pub(crate) shut_by: Option<Moment>,
}

impl Opened {
    /// When it was certainly shut.
    pub(crate) fn end(&self) -> Moment {
        self.shut_by.map_or(self.deadline, |shut| shut.min(self.deadline))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) at: Moment,
    pub(crate) reason: String,
    pub(crate) released: bool,
}

/// A write that reached the resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) at: Moment,
    pub(crate) side: Side,
    pub(crate) epoch: Epoch,
    pub(crate) admitted: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// The protected resource: a gate is all that it needs.
    gate: FencingGate,
    pub(crate) tenures: Vec<Tenure>,
    pub(crate) writes: Vec<Write>,
}

impl Ledger {
    /// Takes in what a process said; what it has to be told in return.
    pub(crate) fn hear(&mut self, side: Side, say: &Say) -> Option<Tell> {
        match *say {
            Say::TakingOver { at, epoch, .. } => {
                self.tenures.push(Tenure {
                    side,
                    epoch,
                    taking_over_at: at,
                    opened: None,
                    renewed: None,
                    renewals: Vec::new(),
                    ended: None,
                });
            }
            Say::Opened { at, epoch, not_before, deadline } => {
                if let Some(tenure) = self.tenure(side, epoch) {
                    tenure.opened = Some(Opened { not_before, at, deadline, shut_by: None });
                }
            }
            Say::Renewed { epoch, sent, deadline, .. } => {
                if let Some(tenure) = self.tenure(side, epoch) {
                    tenure.renewed = tenure.renewed.max(Some(sent));
                    tenure.renewals.push(sent);
                    if let Some(opened) = &mut tenure.opened {
                        opened.deadline = opened.deadline.max(deadline);
                    }
                }
            }
            Say::Shut { at, epoch } => self.shut(side, Some(epoch), at),
            Say::Ended { at, epoch, ref reason, released } => {
                self.shut(side, Some(epoch), at);
                if let Some(tenure) = self.tenure(side, epoch) {
                    tenure.ended = Some(Ended { at, reason: reason.clone(), released });
                }
            }
            Say::Write { at, epoch } => return Some(self.write(side, epoch, at)),
            Say::Started { .. }
            | Say::Seen { .. }
            | Say::Read { .. }
            | Say::Phase { .. }
            | Say::AboutToWrite { .. }
            | Say::Failed { .. } => {}
        }
        None
    }

    /// The process is dead, and was so at the latest `by`. If it was `running` until then it may have
    /// renewed without telling.
    pub(crate) fn killed(&mut self, side: Side, by: Moment, running: bool) {
        let unended = |it: &&mut Tenure| running && it.side == side && it.ended.is_none();
        for tenure in self.tenures.iter_mut().filter(unended) {
            if let Some(opened) = &mut tenure.opened {
                opened.deadline = opened.deadline.max(by);
            }
        }
        self.shut(side, None, by);
    }

    fn shut(&mut self, side: Side, epoch: Option<Epoch>, by: Moment) {
        let concerned = |it: &&mut Tenure| it.side == side && epoch.is_none_or(|e| e == it.epoch);
        for tenure in self.tenures.iter_mut().filter(concerned) {
            if let Some(opened) = &mut tenure.opened {
                opened.shut_by = Some(opened.shut_by.map_or(by, |before| before.min(by)));
            }
        }
    }

    fn tenure(&mut self, side: Side, epoch: Epoch) -> Option<&mut Tenure> {
        self.tenures.iter_mut().rev().find(|it| it.side == side && it.epoch == epoch)
    }

    fn write(&mut self, side: Side, epoch: Epoch, at: Moment) -> Tell {
        let admitted = self.gate.admit(epoch).is_ok();
        self.writes.push(Write { at, side, epoch, admitted });
        if admitted { Tell::Admitted } else { Tell::Refused }
    }

    /// The tenure that is open last, if any was.
    pub(crate) fn latest(&self) -> Option<(&Tenure, Opened)> {
        self.tenures
            .iter()
            .filter_map(|tenure| tenure.opened.map(|opened| (tenure, opened)))
            .max_by_key(|(_, opened)| opened.at)
    }

    /// Writes of `epoch` by `side` that were admitted, or refused.
    pub(crate) fn count(&self, side: Side, epoch: Epoch, admitted: bool) -> usize {
        let concerned =
            |it: &&Write| it.side == side && it.epoch == epoch && it.admitted == admitted;
        self.writes.iter().filter(concerned).count()
    }

    pub(crate) fn refused(&self) -> usize {
        self.writes.iter().filter(|write| !write.admitted).count()
    }

    /// Everything that must never happen, in words.
    pub(crate) fn violations(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, one) in self.tenures.iter().enumerate() {
            for other in &self.tenures[index + 1..] {
                if one.epoch == other.epoch {
                    found.push(format!(
                        "{} and {} both began a tenure of epoch {}",
                        one.side.name(),
                        other.side.name(),
                        one.epoch
                    ));
                }
                found.extend(overlap(one, other));
            }
        }
        let mut highest: Option<Epoch> = None;
        for write in self.writes.iter().filter(|write| write.admitted) {
            if highest > Some(write.epoch) {
                found.push(format!(
                    "the resource admitted a write of {} under epoch {} after a larger one",
                    write.side.name(),
                    write.epoch
                ));
            }
            highest = highest.max(Some(write.epoch));
        }
        found
    }
}

fn overlap(one: &Tenure, other: &Tenure) -> Option<String> {
    let (first, second) = (one.opened?, other.opened?);
    let from = first.not_before.max(second.not_before);
    let to = first.end().min(second.end());
    (one.side != other.side && from < to).then(|| {
        format!(
            "the fences of {} and {} were open together for {:?}",
            one.side.name(),
            other.side.name(),
            to.since(from)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(millis: u64) -> Moment {
        Moment::from(fencing::MonotonicTime::default()).plus(Duration::from_millis(millis))
    }

    fn opened(ledger: &mut Ledger, side: Side, epoch: u64, from: u64, deadline: u64) {
        let (epoch, at, deadline) = (Epoch::new(epoch).unwrap(), at(from), at(deadline));
        let taking =
            Say::TakingOver { at, epoch, predecessor: String::new(), held_back_until: None };
        ledger.hear(side, &taking);
        ledger.hear(side, &Say::Opened { at, epoch, not_before: at, deadline });
    }

    #[test]
    fn fences_that_were_open_together_are_found() {
        let mut ledger = Ledger::default();
        opened(&mut ledger, Side::A, 1, 0, 100);
        opened(&mut ledger, Side::B, 2, 100, 200);
        assert_eq!(ledger.violations(), Vec::<String>::new());
        opened(&mut ledger, Side::A, 3, 199, 300);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn a_fence_counts_as_open_until_its_deadline_or_its_last_words() {
        let mut ledger = Ledger::default();
        opened(&mut ledger, Side::A, 1, 0, 100);
        ledger.hear(Side::A, &Say::Shut { at: at(50), epoch: Epoch::MIN });
        opened(&mut ledger, Side::B, 2, 50, 200);
        assert_eq!(ledger.violations(), Vec::<String>::new());

        let mut ledger = Ledger::default();
        opened(&mut ledger, Side::A, 1, 0, 100);
        // It may have renewed after it spoke last.
        ledger.killed(Side::A, at(150), true);
        opened(&mut ledger, Side::B, 2, 149, 200);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn a_shared_epoch_is_found_although_nothing_overlaps() {
        let mut ledger = Ledger::default();
        opened(&mut ledger, Side::A, 1, 0, 100);
        opened(&mut ledger, Side::B, 1, 300, 400);
        assert_eq!(ledger.violations().len(), 1);
    }

    #[test]
    fn a_stale_write_is_refused_and_one_that_was_admitted_is_found() {
        let mut ledger = Ledger::default();
        let write = |number| Say::Write { at: at(0), epoch: Epoch::new(number).unwrap() };
        assert!(matches!(ledger.hear(Side::A, &write(1)), Some(Tell::Admitted)));
        assert!(matches!(ledger.hear(Side::B, &write(2)), Some(Tell::Admitted)));
        assert!(matches!(ledger.hear(Side::A, &write(1)), Some(Tell::Refused)));
        assert_eq!((ledger.refused(), ledger.violations().len()), (1, 0));
        ledger.writes[2].admitted = true;
        assert_eq!(ledger.violations().len(), 1);
    }
}
