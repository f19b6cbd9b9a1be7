//! Who is there, as slots show it.

use crate::key::InstanceId;

/// What one instance sees of the slots of a set, by their numbers.
///
/// ```
/// use lease_core::{key::InstanceId, session::shards::{Roster, SlotSeen}};
///
/// let (a, b) = (InstanceId::new("a")?, InstanceId::new("b")?);
/// let mut roster = Roster::new(b.clone(), 64);
/// assert_eq!(roster.watched(), 1);                    // nobody is known yet
/// roster.see(0, SlotSeen::Held(a.clone()));
/// roster.see(1, SlotSeen::Free);
/// assert_eq!(roster.wanted(), Some(1));
/// roster.see(1, SlotSeen::Mine);
/// assert_eq!((roster.wanted(), roster.watched()), (None, 3));
/// assert_eq!(roster.members(), [a, b]);
/// # Ok::<(), lease_core::key::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Roster {
    me: InstanceId,
    max: usize,
    slots: Vec<SlotSeen>,
}

/// What stands in a slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum SlotSeen {
    /// Nobody holds it.
    Free,
    /// Another instance holds it, and its session is not known to have ended.
    Held(InstanceId),
    /// This instance holds it.
    Mine,
    /// Its holder's session has ended, or has been silent for W.
    Orphaned,
    /// It was not looked at yet, or what is there cannot be believed.
    Unknown,
}

impl Roster {
    /// Nobody is known yet; there are slots for `max` members, at least 1.
    #[must_use]
    pub fn new(me: InstanceId, max: usize) -> Self {
        Self { me, max: max.max(1), slots: Vec::new() }
    }

    /// Takes in what stands in a slot. One beyond the last is ignored.
    pub fn see(&mut self, slot: usize, seen: SlotSeen) {
        if slot >= self.max {
            return;
        }
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, SlotSeen::Unknown);
        }
        if let Some(known) = self.slots.get_mut(slot) {
            *known = seen;
        }
    }

    /// How many slots are to be watched, from the first: all up to one above the highest that is held,
    /// since whoever joins takes the lowest that is free. One that is orphaned counts as held: by it the
    /// session of the dead is known, under which its shards are.
    #[must_use]
    pub fn watched(&self) -> usize {
        let held = self.highest().map_or(0, |highest| highest + 1);
        (held + 1).min(self.max)
    }

    /// The slot that this instance is to take now. If it has none: the lowest that is free, once all
    /// below have been looked at. If it has one: the next below, if that is free.
    ///
    /// So gaps close from below, in the order of the members: whoever looks up from the first slot
    /// finds all of them, and no rank changes but for the one who came or went.
    #[must_use]
    pub fn wanted(&self) -> Option<usize> {
        let wanted = match self.slots.iter().position(|slot| *slot == SlotSeen::Mine) {
            Some(own) => own.checked_sub(1)?,
            None => self.slots.iter().position(|slot| !matches!(slot, SlotSeen::Held(_)))?,
        };
        let is_free = matches!(self.slots.get(wanted)?, SlotSeen::Free | SlotSeen::Orphaned);
        is_free.then_some(wanted)
    }

    /// An orphaned slot that nobody will move to, above all that are held: the first member takes it and
    /// gives it back, so that it need not be watched any more.
    #[must_use]
    pub fn orphan(&self) -> Option<usize> {
        let highest = self.highest()?;
        let is_first = self.members().first() == Some(&self.me);
        let is_orphan = self.slots.get(highest) == Some(&SlotSeen::Orphaned);
        (is_first && is_orphan).then_some(highest)
    }

    fn highest(&self) -> Option<usize> {
        let is_held = |slot: &SlotSeen| !matches!(slot, SlotSeen::Free | SlotSeen::Unknown);
        self.slots.iter().rposition(is_held)
    }

    /// The slots that this instance holds and is to give back: all but its lowest.
    pub fn surplus(&self) -> impl Iterator<Item = usize> {
        let mine = self.slots.iter().enumerate().filter(|(_, slot)| **slot == SlotSeen::Mine);
        mine.map(|(number, _)| number).skip(1)
    }

    /// Who is there, by rising slot, each once.
    #[must_use]
    pub fn members(&self) -> Vec<InstanceId> {
        let mut members = Vec::new();
        for slot in &self.slots {
            let member = match slot {
                SlotSeen::Held(other) => other,
                SlotSeen::Mine => &self.me,
                SlotSeen::Free | SlotSeen::Orphaned | SlotSeen::Unknown => continue,
            };
            if !members.contains(member) {
                members.push(member.clone());
            }
        }
        members
    }
}
