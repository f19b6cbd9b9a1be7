//! Any resource with a gate, held against the naive idea of one.
//!
//! Every gate of the workspace passes this, and one of your own should: implement [`Resource`] for
//! what it protects, make [`Step`]s of random numbers, and [`compare`].
//!
//! ```
//! use fencing::{Epoch, FencingGate, Stale, testing::gates::{Resource, Step, Trouble, compare}};
//!
//! #[derive(Default)]
//! struct Cell { gate: FencingGate, value: Option<u64> }
//!
//! impl Resource for Cell {
//!     fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble> {
//!         let admitted = self.gate.admit(token);
//!         if admitted.is_ok() { self.value = Some(value); }
//!         Ok(admitted)
//!     }
//!     fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble> {
//!         Ok(self.gate.raise(token))
//!     }
//!     fn highest(&mut self) -> Result<Option<Epoch>, Trouble> { Ok(self.gate.highest()) }
//!     fn value(&mut self) -> Result<Option<u64>, Trouble> { Ok(self.value) }
//! }
//!
//! let steps: Vec<Step> = (0..200).map(|n: u8| Step::from((n, n.wrapping_mul(37)))).collect();
//! compare(&steps, &mut Cell::default()).unwrap();
//! ```

use crate::{gate::Stale, token::Epoch};

/// What went wrong beside a refusal.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// A resource that one number is written to, through its gate.
pub trait Resource {
    /// Writes `value` under `token`, or is refused.
    ///
    /// # Errors
    ///
    /// What went wrong, if it was neither admitted nor refused.
    fn write(&mut self, token: Epoch, value: u64) -> Result<Result<(), Stale>, Trouble>;

    /// Shuts smaller tokens out without a write, or is refused.
    ///
    /// # Errors
    ///
    /// What went wrong, if it was neither done nor refused.
    fn raise(&mut self, token: Epoch) -> Result<Result<(), Stale>, Trouble>;

    /// The highest token that the gate has seen.
    ///
    /// # Errors
    ///
    /// What went wrong.
    fn highest(&mut self) -> Result<Option<Epoch>, Trouble>;

    /// What was written last.
    ///
    /// # Errors
    ///
    /// What went wrong.
    fn value(&mut self) -> Result<Option<u64>, Trouble>;

    /// As if the process had been killed here and started again. A gate that does not outlive its
    /// process does nothing.
    ///
    /// # Errors
    ///
    /// What went wrong.
    fn reopen(&mut self) -> Result<(), Trouble> {
        Ok(())
    }
}

/// What is done to a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Step {
    /// [`Resource::reopen`].
    Reopen,
    /// [`Resource::raise`].
    Raise(Epoch),
    /// [`Resource::write`], of a number of its own.
    Write(Epoch),
}

/// Any two bytes are a step: of few tokens, so that they meet, some of them above 2^53.
impl From<(u8, u8)> for Step {
    fn from((kind, token): (u8, u8)) -> Self {
        let base = match token >> 6 {
            0 | 1 => 1,
            2 => 1 << 53,
            _ => u64::MAX - 16,
        };
        let token = Epoch::new(base + u64::from(token & 15)).unwrap_or(Epoch::MIN);
        match kind % 8 {
            0 => Self::Reopen,
            1 | 2 => Self::Raise(token),
            _ => Self::Write(token),
        }
    }
}

/// The naive idea: everything that was ever let in, compared with one by one.
#[derive(Debug, Default)]
struct Model {
    let_in: Vec<Epoch>,
    value: Option<u64>,
}

impl Model {
    fn highest(&self) -> Option<Epoch> {
        self.let_in.iter().copied().max()
    }

    fn pass(&mut self, presented: Epoch) -> Result<(), Stale> {
        for &highest in &self.let_in {
            if highest > presented {
                let highest = self.highest().unwrap_or(highest);
                return Err(Stale { presented, highest });
            }
        }
        self.let_in.push(presented);
        Ok(())
    }
}

/// Does the steps to the resource and to the model, and compares what they say and what they then
/// hold, after each.
///
/// # Errors
///
/// The first difference, or what went wrong, with the step that it came at.
pub fn compare(steps: &[Step], resource: &mut dyn Resource) -> Result<(), String> {
    let mut model = Model::default();
    for (index, step) in steps.iter().enumerate() {
        one_step(index, *step, &mut model, resource)
            .map_err(|why| format!("step {index}, {step:?}: {why}"))?;
    }
    Ok(())
}

fn one_step(
    index: usize,
    step: Step,
    model: &mut Model,
    resource: &mut dyn Resource,
) -> Result<(), Trouble> {
    match step {
        Step::Reopen => resource.reopen()?,
        Step::Raise(token) => same("the answer", resource.raise(token)?, model.pass(token))?,
        Step::Write(token) => {
            let value = index as u64;
            let expected = model.pass(token);
            if expected.is_ok() {
                model.value = Some(value);
            }
            same("the answer", resource.write(token, value)?, expected)?;
        }
    }
    same("the mark", resource.highest()?, model.highest())?;
    same("what is stored", resource.value()?, model.value)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Trouble> {
    if found == expected {
        return Ok(());
    }
    Err(format!("{what} is {found:?}, and must be {expected:?}").into())
}
