//! What must hold in every state, and what must happen in some.

use super::Failover;
use stateright::{Model, Property};

/// Something that did not hold in the step that led to a state. Nothing follows from such a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Broken {
    /// A deadline beyond what a write of one's own that landed proves, or moved once it had passed.
    Deadline,
    /// A second end of one tenure, or a tenure without one.
    End,
    /// A fence opened whose epoch is not above that of every fence before.
    Epoch,
    /// A fence opened whose epoch is not in the history.
    History,
    /// A machine that always wants to be called again.
    Rest,
    /// A write under an epoch that was lost or given up.
    Write,
}

/// Something that happened in the step that led to a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reached {
    /// A fence opened although the lease was deleted from under an earlier one.
    Deletion,
    /// A read told that somebody else wrote: the tenure ended.
    Lost,
    /// A read told that a write in doubt had landed: it was adopted.
    Own,
    /// A lease that was given back was taken, with nothing to wait for.
    Release,
    /// A lease was taken since its holder did not renew it.
    Takeover,
}

impl Reached {
    pub(crate) const ALL: [Self; 5] =
        [Self::Takeover, Self::Own, Self::Lost, Self::Deletion, Self::Release];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Deletion => "deletion survived",
            Self::Lost => "doubt resolved as lost",
            Self::Own => "doubt resolved as own",
            Self::Release => "release taken at once",
            Self::Takeover => "takeover",
        }
    }
}

/// The `Reached` of one step.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Marks(u8);

impl Marks {
    pub(crate) fn set(&mut self, reached: Reached) {
        self.0 |= 1 << reached as u8;
    }

    const fn has(self, reached: Reached) -> bool {
        self.0 & 1 << reached as u8 != 0
    }
}

/// Every property: first what must hold always, then what must happen sometimes.
pub(crate) fn properties() -> Vec<Property<Failover>> {
    type Is = fn(&Failover, &<Failover as Model>::State) -> bool;
    let always: [(_, Is); 7] = [
        ("one open fence at any true instant", |model, world| model.open_fences(world) <= 1),
        ("epochs of opened tenures grow", |_, world| world.broken != Some(Broken::Epoch)),
        ("no write under a lost epoch", |_, world| world.broken != Some(Broken::Write)),
        ("one end per tenure", |_, world| world.broken != Some(Broken::End)),
        ("no deadline beyond S + T - M", |_, world| world.broken != Some(Broken::Deadline)),
        ("recorded before opening", |_, world| world.broken != Some(Broken::History)),
        ("every machine comes to rest", |_, world| world.broken != Some(Broken::Rest)),
    ];
    let sometimes = Reached::ALL.map(|reached| {
        let is: Is = match reached {
            Reached::Deletion => |_, world| world.marks.has(Reached::Deletion),
            Reached::Lost => |_, world| world.marks.has(Reached::Lost),
            Reached::Own => |_, world| world.marks.has(Reached::Own),
            Reached::Release => |_, world| world.marks.has(Reached::Release),
            Reached::Takeover => |_, world| world.marks.has(Reached::Takeover),
        };
        Property::sometimes(reached.name(), is)
    });
    always.map(|(name, is)| Property::always(name, is)).into_iter().chain(sometimes).collect()
}
