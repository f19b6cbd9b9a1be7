//! What happens, as lines for people.

use fencing::{Clock as _, MonotonicTime, SystemClock};
use std::fmt::Display;

#[derive(Clone, Debug)]
pub(crate) struct Told {
    begun: MonotonicTime,
}

impl Told {
    pub(crate) fn new() -> Self {
        Self { begun: SystemClock::new().monotonic() }
    }

    pub(crate) fn by(&self, who: &str, what: impl Display) {
        let since = SystemClock::new().monotonic() - self.begun;
        println!("{:7.3} s  {who:<9} {what}", since.as_secs_f64());
    }
}
