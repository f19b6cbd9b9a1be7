//! What is seen meanwhile: on a terminal a line for each cluster that moves, else plain lines.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};

pub(crate) struct Display {
    live: Option<MultiProgress>,
}

impl Display {
    pub(crate) fn new() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        let target = || MultiProgress::with_draw_target(ProgressDrawTarget::stdout_with_hz(5));
        Self { live: is_terminal.then(target) }
    }

    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        let bar = self.live.as_ref()?.add(ProgressBar::no_length());
        // The template is a constant; without it the bar shows the same in another form.
        if let Ok(style) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(style);
        }
        Some(bar)
    }

    /// A line of its own.
    pub(crate) fn say(&self, line: &str) {
        match &self.live {
            // A terminal that is gone is no reason to stop; the exit status says it all.
            Some(live) => drop(live.println(line)),
            None => print(line),
        }
    }

    /// Nothing moves any more.
    pub(crate) fn close(&self) {
        if let Some(live) = &self.live {
            drop(live.clear());
        }
        print("");
    }
}

pub(crate) fn print(text: &str) {
    // As above.
    drop(writeln!(std::io::stdout(), "{text}"));
}
