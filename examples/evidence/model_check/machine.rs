//! The production machine with any rules, as one type: what is searched is compiled once then, not
//! once for each mutant.

use lease_core::{
    fencing::{Epoch, MonotonicTime, Reading},
    machine::{
        AbandonReason, Action, Config, Entropy, Event, Machine, Past, Reply, RequestId, Role, Rules,
    },
};
use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
};

/// Which rules are kept: by the machine that it makes, and by those who carry out what it wants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    make: fn(Config, Past, Reading) -> Driven,
    pub(crate) takeover_is_conditional: bool,
    pub(crate) release_keeps_the_object: bool,
    pub(crate) fence_never_opens_again: bool,
    pub(crate) wall_clock_is_looked_at: bool,
}

impl Kept {
    pub(crate) fn by<R: Rules>() -> Self {
        Self {
            make: |config, past, now| Driven(Box::new(Machine::<R>::new(config, past, now))),
            takeover_is_conditional: R::TAKEOVER_IS_CONDITIONAL,
            release_keeps_the_object: R::RELEASE_KEEPS_THE_OBJECT,
            fence_never_opens_again: R::FENCE_NEVER_OPENS_AGAIN,
            wall_clock_is_looked_at: R::WALL_CLOCK_IS_LOOKED_AT,
        }
    }

    pub(crate) fn machine(&self, config: Config, past: Past, now: Reading) -> Driven {
        (self.make)(config, past, now)
    }
}

/// A `Machine`, whatever rules it keeps.
pub(crate) struct Driven(Box<dyn AnyMachine>);

trait AnyMachine: fmt::Debug + Send + Sync {
    fn abandon(&mut self, reason: AbandonReason, now: Reading);
    fn as_any(&self) -> &dyn Any;
    fn boxed(&self) -> Box<dyn AnyMachine>;
    fn confirm(&mut self, now: Reading);
    fn deadline(&self) -> Option<MonotonicTime>;
    fn handle_fence_shut(&mut self, epoch: Epoch, now: Reading);
    fn handle_persisted(&mut self, id: RequestId, ok: bool, now: Reading);
    fn handle_reply(&mut self, id: RequestId, reply: Reply, now: Reading);
    fn handle_timeout(&mut self, now: Reading);
    fn hashed(&self, hasher: &mut dyn Hasher);
    fn is_same(&self, other: &dyn AnyMachine) -> bool;
    fn poll_action(&mut self, now: Reading, entropy: &mut dyn Entropy) -> Option<Action>;
    fn poll_event(&mut self) -> Option<Event>;
    fn poll_timeout(&self, now: Reading) -> Option<MonotonicTime>;
    fn release(&mut self, now: Reading);
    fn role(&self) -> Role;
    fn want(&mut self, wanted: bool, now: Reading);
}

/// Each method is the machine's own of that name.
macro_rules! the_machines_own {
    ($(fn $name:ident(&self $(, $argument:ident: $kind:ty)*) $(-> $out:ty)?;)+
     $(mut fn $name_mut:ident(&mut self $(, $argument_mut:ident: $kind_mut:ty)*) $(-> $out_mut:ty)?;)+) => {
        impl<R: Rules> AnyMachine for Machine<R> {
            $(fn $name(&self $(, $argument: $kind)*) $(-> $out)? {
                Machine::$name(self $(, $argument)*)
            })+
            $(fn $name_mut(&mut self $(, $argument_mut: $kind_mut)*) $(-> $out_mut)? {
                Machine::$name_mut(self $(, $argument_mut)*)
            })+

            fn as_any(&self) -> &dyn Any {
                self
            }

            fn boxed(&self) -> Box<dyn AnyMachine> {
                Box::new(self.clone())
            }

            fn hashed(&self, mut hasher: &mut dyn Hasher) {
                self.hash(&mut hasher);
            }

            fn is_same(&self, other: &dyn AnyMachine) -> bool {
                other.as_any().downcast_ref() == Some(self)
            }
        }

        impl Driven {
            $(pub(crate) fn $name(&self $(, $argument: $kind)*) $(-> $out)? {
                self.0.$name($($argument),*)
            })+
            $(pub(crate) fn $name_mut(&mut self $(, $argument_mut: $kind_mut)*) $(-> $out_mut)? {
                self.0.$name_mut($($argument_mut),*)
            })+
        }
    };
}

the_machines_own! {
    fn deadline(&self) -> Option<MonotonicTime>;
    fn poll_timeout(&self, now: Reading) -> Option<MonotonicTime>;
    fn role(&self) -> Role;
    mut fn abandon(&mut self, reason: AbandonReason, now: Reading);
    mut fn confirm(&mut self, now: Reading);
    mut fn handle_fence_shut(&mut self, epoch: Epoch, now: Reading);
    mut fn handle_persisted(&mut self, id: RequestId, ok: bool, now: Reading);
    mut fn handle_reply(&mut self, id: RequestId, reply: Reply, now: Reading);
    mut fn handle_timeout(&mut self, now: Reading);
    mut fn poll_action(&mut self, now: Reading, entropy: &mut dyn Entropy) -> Option<Action>;
    mut fn poll_event(&mut self) -> Option<Event>;
    mut fn release(&mut self, now: Reading);
    mut fn want(&mut self, wanted: bool, now: Reading);
}

impl Clone for Driven {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for Driven {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(other.0.as_ref())
    }
}

impl Eq for Driven {}

impl Hash for Driven {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hashed(hasher);
    }
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
