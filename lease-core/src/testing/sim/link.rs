//! What becomes of a request between a host and the store.

use super::dice::Dice;
use crate::store::StoreErrorKind;
use std::time::Duration;

/// How the requests of one host fare for a while.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The most that one way takes.
    latency: Duration,
    /// How often, in a thousand, something else happens than an answer.
    trouble: u64,
    /// The most that a late write takes.
    late: Duration,
    /// Nothing arrives, nothing is answered.
    is_cut: bool,
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passage {
    pub(super) out: Duration,
    pub(super) back: Duration,
    pub(super) fate: Fate,
    /// It arrives once more, so much later.
    pub(super) again: Option<Duration>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Answered,
    /// It is carried out, and the sender is told that it is in doubt.
    Doubtful,
    /// It never arrives, and nothing is answered.
    Lost,
    /// It is carried out, and nothing is answered.
    Mute,
    /// It never arrives; the sender is told this.
    Told(StoreErrorKind),
    /// The sender is told at once that it is in doubt, and it arrives much later.
    ToldThenLate(Duration),
}

/// What follows from sending one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// The sender is told this, so much later, whatever the store does.
    pub(super) told: Option<(Duration, StoreErrorKind)>,
    /// It arrives so much later; once more, perhaps.
    pub(super) arrivals: [Option<(Duration, Passage)>; 2],
}

impl Passage {
    pub(super) fn course(self, is_read: bool) -> Course {
        let Self { out, back, fate, again } = self;
        let mute = Self { fate: Fate::Mute, ..self };
        let (told, arrivals) = match fate {
            Fate::Lost => (None, [None, None]),
            Fate::Told(error) => (Some((out + back, error)), [None, None]),
            Fate::ToldThenLate(later) => {
                let late = Some((out + back + later, mute)).filter(|_| !is_read);
                (Some((out + back, StoreErrorKind::InDoubt)), [late, None])
            }
            Fate::Answered | Fate::Doubtful | Fate::Mute => {
                (None, [Some((out, self)), again.map(|again| (out + again, mute))])
            }
        };
        Course { told, arrivals }
    }

    /// What its sender is told, if anything, when the store has carried it out with this result.
    pub(super) fn answer<T>(self, reply: T, in_doubt: T) -> Option<T> {
        match self.fate {
            Fate::Answered => Some(reply),
            Fate::Doubtful => Some(in_doubt),
            Fate::Lost | Fate::Mute | Fate::Told(_) | Fate::ToldThenLate(_) => None,
        }
    }
}

impl Link {
    /// Everything arrives soon.
    pub(super) const fn calm(latency: Duration) -> Self {
        Self { latency, trouble: 0, late: Duration::ZERO, is_cut: false }
    }

    pub(super) const fn cut() -> Self {
        Self { is_cut: true, ..Self::calm(Duration::ZERO) }
    }

    /// Every third to tenth request meets trouble.
    pub(super) fn troubled(latency: Duration, dice: &mut Dice) -> Self {
        Self { trouble: *dice.pick(&[100, 300, 600]).unwrap_or(&300), ..Self::calm(latency) }
    }

    /// The same with writes that land up to `late` after they were sent.
    pub(super) const fn with_late(self, late: Duration) -> Self {
        Self { late, ..self }
    }

    pub(super) fn passage(&self, dice: &mut Dice) -> Passage {
        let (out, back) = (dice.of_any_size(self.latency), dice.of_any_size(self.latency));
        let mut passage = Passage { out, back, fate: Fate::Answered, again: None };
        if self.is_cut {
            passage.fate = Fate::Lost;
        } else if dice.chance(self.trouble) {
            passage.fate = match dice.below(8) {
                0 => Fate::Lost,
                1 => Fate::Mute,
                2 | 3 => Fate::Doubtful,
                4 => Fate::Told(StoreErrorKind::InDoubt),
                5 => Fate::Told(StoreErrorKind::Contended),
                6 => Fate::Told(StoreErrorKind::Unavailable),
                _ => {
                    passage.again = Some(dice.of_any_size(self.latency + self.late));
                    Fate::Answered
                }
            };
        } else if self.late > Duration::ZERO && dice.one_in(6) {
            passage.fate = Fate::ToldThenLate(dice.of_any_size(self.late));
        }
        passage
    }
}
