//! What is seen: on a terminal a picture that moves, and else a line for each change.

use crate::{ledger::Ledger, member::MemberId};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};

/// The colours of processes, by turns.
const COLOURS: [&str; 6] = ["\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[35m", "\x1b[36m", "\x1b[31m"];
const PLAIN: &str = "\x1b[0m";

pub(crate) struct Display {
    live: Option<(MultiProgress, ProgressBar)>,
    paint: bool,
}

impl Display {
    pub(crate) fn new() -> Self {
        let live = std::io::stdout().is_terminal().then(|| {
            let live = MultiProgress::with_draw_target(ProgressDrawTarget::stdout_with_hz(10));
            let bar = live.add(ProgressBar::no_length());
            // The template is a constant; without it the bar shows the same in another form.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            (live, bar)
        });
        let paint = live.is_some() && std::env::var_os("NO_COLOR").is_none();
        Self { live, paint }
    }

    /// A line of its own.
    pub(crate) fn say(&self, line: &str) {
        match &self.live {
            // A terminal that is gone is no reason to stop; the exit status says it all.
            Some((live, _)) => drop(live.println(line)),
            None => print(line),
        }
    }

    /// What moves, where something does.
    pub(crate) fn refresh(&self, picture: impl FnOnce() -> String) {
        if let Some((_, bar)) = &self.live {
            bar.set_message(picture());
        }
    }

    /// Nothing moves any more.
    pub(crate) fn close(&self) {
        if let Some((live, _)) = &self.live {
            drop(live.clear());
        }
    }

    /// Each shard as the letter of who holds it.
    pub(crate) fn map(&self, ledger: &Ledger, shards: u16) -> String {
        let cell = |shard| match ledger.holder(shard) {
            None => "·".to_owned(),
            Some(member) => self.letter(member),
        };
        (0..shards).map(cell).collect()
    }

    fn letter(&self, member: MemberId) -> String {
        let letter = member.letter();
        let colour = COLOURS.into_iter().cycle().nth(member.0 as usize % COLOURS.len());
        match colour.filter(|_| self.paint) {
            Some(colour) => format!("{colour}{letter}{PLAIN}"),
            None => letter.to_string(),
        }
    }

    /// Each process, and how many it holds.
    pub(crate) fn shares(ledger: &Ledger, members: impl Iterator<Item = MemberId>) -> String {
        let shares: Vec<_> =
            members.map(|member| format!("{member} {}", ledger.held(member))).collect();
        shares.join("  ")
    }
}

pub(crate) fn print(line: &str) {
    // Somebody who does not read on is no reason to stop; the exit status says it all.
    let _ = writeln!(std::io::stdout(), "{line}");
}
