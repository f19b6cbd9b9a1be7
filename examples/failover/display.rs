//! What is seen while the rounds are played: on a terminal a line for each of them that moves, and
//! else one line for everything that happens.

use crate::{
    ledger::{Ledger, Side, Write},
    member::Member,
    round::RoundId,
    wire::{Moment, Say},
};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lease_core::Timing;
use std::{
    io::{IsTerminal as _, Write as _},
    time::Duration,
};

/// How many characters one process's bar has.
const CELLS: u32 = 22;

const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RED: &str = "\x1b[31m";
const BLUE: &str = "\x1b[34m";
const PLAIN: &str = "\x1b[0m";

pub(crate) struct Display {
    live: Option<MultiProgress>,
    paint: bool,
}

impl Display {
    pub(crate) fn new() -> Self {
        let live = std::io::stdout()
            .is_terminal()
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stdout_with_hz(10)));
        let paint = live.is_some() && std::env::var_os("NO_COLOR").is_none();
        Self { live, paint }
    }

    pub(crate) const fn paint(&self) -> Paint {
        Paint(self.paint)
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
            // The last line that was said has no end yet.
            drop(live.clear());
            print("");
        }
        print("");
    }

    pub(crate) fn fault(&self, id: RoundId, fault: &str) {
        self.say(&self.paint().colour(RED, &format!("{id}  FAILED: {fault}")));
    }

    pub(crate) fn legend(&self) -> String {
        let paint = self.paint();
        let parts = [
            paint.colour(GREEN, "━ active"),
            paint.colour(YELLOW, "╍ taking over"),
            "· standby".to_owned(),
            paint.colour(BLUE, "▒ frozen"),
            paint.colour(RED, "✗ killed"),
            paint.colour(RED, "! write refused"),
        ];
        parts.join("  ")
    }

    pub(crate) fn round(&self, id: RoundId) -> View {
        let bar = self.live.as_ref().map(|live| {
            let bar = live.add(ProgressBar::no_length());
            // The template is a constant; without it the bar shows the same in another form.
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            (live.clone(), bar)
        });
        View { id, bar, begun_at: Moment::now() }
    }
}

/// What is seen of one round.
pub(crate) struct View {
    id: RoundId,
    bar: Option<(MultiProgress, ProgressBar)>,
    begun_at: Moment,
}

impl View {
    pub(crate) const fn is_live(&self) -> bool {
        self.bar.is_some()
    }

    pub(crate) fn refresh(&self, line: &str) {
        if let Some((_, bar)) = &self.bar {
            bar.set_message(line.to_owned());
        }
    }

    /// Something was done. Shown where no line moves.
    pub(crate) fn note(&self, text: &str) {
        if self.bar.is_none() {
            let since = Moment::now().since(self.begun_at).as_secs_f64();
            print(&format!("{} {since:>7.3} s  {text}", self.id));
        }
    }

    /// A process said something.
    pub(crate) fn said(&self, side: Side, say: &Say) {
        let name = side.name();
        match say {
            Say::TakingOver { predecessor, held_back_until: Some(_), .. } => {
                self.note(&format!("{name} took the lease (before: {predecessor}), held back"));
            }
            Say::TakingOver { predecessor, .. } => {
                self.note(&format!("{name} took the lease (before: {predecessor})"));
            }
            Say::Opened { epoch, .. } => self.note(&format!("{name} is active, epoch {epoch}")),
            Say::Ended { epoch, reason, .. } => {
                self.note(&format!("{name}'s tenure of epoch {epoch} ended: {reason}"));
            }
            _ => {}
        }
    }

    pub(crate) fn finish(&self, line: &str) {
        match &self.bar {
            Some((live, bar)) => {
                bar.finish_and_clear();
                live.remove(bar);
                drop(live.println(line));
            }
            None => print(line),
        }
    }
}

/// A line, once nothing moves any more.
pub(crate) fn print(line: &str) {
    // A reader that has gone is no reason to stop; the exit status says it all.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Whether there are colours.
#[derive(Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    fn colour(self, colour: &str, text: &str) -> String {
        if self.0 { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }
}

/// What part of time a bar shows.
pub(crate) struct Window {
    from: Moment,
    cell: Duration,
    now: Moment,
}

impl Window {
    /// From a little before what was done, or else up to now.
    pub(crate) fn of(timing: Timing, done_at: Option<Moment>, now: Moment) -> Self {
        let span = timing.ttl() + timing.renew() * 4;
        let before = timing.renew().mul_f64(1.5);
        Self { from: done_at.unwrap_or(now).minus(before), cell: span / CELLS, now }
    }

    /// The bar of one process.
    pub(crate) fn bar(
        &self,
        side: Side,
        member: Option<&Member>,
        ledger: &Ledger,
        paint: Paint,
    ) -> String {
        let mut bar = String::new();
        for cell in 0..CELLS {
            let from = self.from.plus(self.cell * cell);
            let (middle, to) = (from.plus(self.cell / 2), from.plus(self.cell));
            bar += &match member.filter(|_| middle < self.now) {
                Some(member) => {
                    let dead_at = member.dead_at.filter(|dead| *dead < self.now.min(to));
                    look(side, member, dead_at, ledger, (from, middle, to), paint)
                }
                None => " ".to_owned(),
            };
        }
        bar
    }
}

fn look(
    side: Side,
    member: &Member,
    dead_at: Option<Moment>,
    ledger: &Ledger,
    (from, at, to): (Moment, Moment, Moment),
    paint: Paint,
) -> String {
    if let Some(dead) = dead_at {
        let is_here = member.was_killed && dead >= from;
        return if is_here { paint.colour(RED, "✗") } else { " ".to_owned() };
    }
    if member.started_at.is_none_or(|started| at < started) {
        return " ".to_owned();
    }
    let is_refused =
        |write: &Write| write.side == side && !write.admitted && from <= write.at && write.at < to;
    if ledger.writes.iter().any(is_refused) {
        return paint.colour(RED, "!");
    }
    let is_frozen = |(from, until): &(Moment, Option<Moment>)| {
        *from <= at && until.is_none_or(|until| at < until)
    };
    if member.frozen.iter().any(is_frozen) {
        return paint.colour(BLUE, "▒");
    }
    let mut own = ledger.tenures.iter().filter(|tenure| tenure.side == side);
    let is_open =
        own.clone().filter_map(|it| it.opened).any(|it| it.not_before <= at && at < it.end());
    if is_open {
        return paint.colour(GREEN, "━");
    }
    let is_taking_over = own.any(|tenure| {
        let opened = tenure.opened.map(|it| it.not_before);
        let until = opened.or(tenure.ended.as_ref().map(|it| it.at));
        tenure.taking_over_at <= at && until.is_none_or(|until| at < until)
    });
    if is_taking_over { paint.colour(YELLOW, "╍") } else { "·".to_owned() }
}
