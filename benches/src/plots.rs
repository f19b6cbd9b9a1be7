//! The plots of `docs/performance.md`, as SVG.

use crate::{
    performance::Plot,
    takeover::{Kills, simulated},
};
use lease_core::{
    Timing,
    cost::{Fleet, Prices},
};
use plotters::prelude::*;
use std::{error::Error, ops::Range};

const SIZE: (u32, u32) = (820, 460);
const FONT: &str = "sans-serif";
/// So many points are enough for a line that is drawn on as many pixels.
const POINTS: usize = 400;

/// S3 Standard in us-east-1, in dollars. Only the proportions show in the plot.
pub const S3_PRICES: Prices = Prices { per_million_writes: 5.0, per_million_reads: 0.4 };

/// One line of a plot.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// Its points, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Red, green and blue.
    pub colour: (u8, u8, u8),
    /// Of real processes; simulated ones are drawn thinner.
    pub is_real: bool,
}

/// Colours that people who see fewer of them tell apart too.
pub const COLOURS: [(u8, u8, u8); 6] =
    [(0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (86, 180, 233), (230, 159, 0)];

/// Takeovers as the share of kills that are over after so long, in R after T.
#[must_use]
pub fn distribution(name: &str, kills: &Kills, colour: usize, is_real: bool) -> Line {
    let timing = simulated::timing();
    let (ttl, renew) = (timing.ttl().as_secs_f64(), timing.renew().as_secs_f64());
    let count = kills.count();
    let step = count.div_ceil(POINTS).max(1);
    let at = |index: usize| {
        let took = kills.took_nanos[index] as f64 / 1e9;
        ((took - ttl) / renew, 100.0 * (index + 1) as f64 / count as f64)
    };
    let mut points: Vec<_> = (0..count).step_by(step).map(at).collect();
    points.extend(count.checked_sub(1).map(at));
    let [p50, p99] = [500, 990].map(|it| kills.at(it).as_secs_f64());
    let name = format!("{name}: {count} kills, p50 {p50:.2} s, p99 {p99:.2} s");
    Line { name, points, colour: COLOURS[colour % COLOURS.len()], is_real }
}

/// The distributions of takeovers.
///
/// # Errors
///
/// If a plot cannot be drawn.
pub fn takeovers(lines: &[Line]) -> Result<Plot, Box<dyn Error>> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let last = lines.iter().filter_map(|line| line.points.last()).map(|(x, _)| *x);
        let right = last.fold(1.05, f64::max);
        let mut chart =
            frame(&root, "How soon the other takes over after a kill (T = 3 s, R = 1 s)")
                .build_cartesian_2d(-0.05..right, 0.0..100.0)?;
        chart
            .configure_mesh()
            .x_desc("after the last renewal was sent: T + this many R")
            .y_desc("kills after which it has taken over, %")
            .x_label_formatter(&|x| format!("{x:.1}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for line in lines {
            draw(&mut chart, line)?;
        }
        legend(&mut chart, SeriesLabelPosition::LowerRight)?;
        root.present()?;
    }
    let shows = "The share of kills after which the standby has taken over, against the time after \
                 the last renewal, with phase lock and without";
    Ok(Plot { file: "takeover.svg", shows, svg })
}

/// What requests cost against the number of leases, independent and under sessions.
///
/// # Errors
///
/// If a plot cannot be drawn.
pub fn costs() -> Result<Plot, Box<dyn Error>> {
    let fleet =
        |leases| Fleet { leases, holders: 1, standbys: 1, timing: Timing::default(), audit: None };
    let audited =
        |leases| Fleet { audit: Some(std::time::Duration::from_secs(600)), ..fleet(leases) };
    let leases = || (0..=50).map(|step| 10_f64.powf(f64::from(step) / 10.0).round());
    let line = |name: &str, colour, cost: &dyn Fn(u64) -> f64| Line {
        name: name.to_owned(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 1 to 100 000"
        )]
        points: leases().map(|leases| (leases, cost(leases as u64))).collect(),
        colour,
        is_real: true,
    };
    let lines = [
        line("each lease for itself", COLOURS[1], &|it| {
            fleet(it).independent().per_month(S3_PRICES)
        }),
        line("under sessions, each audited every 10 min", COLOURS[2], &|it| {
            audited(it).under_sessions().per_month(S3_PRICES)
        }),
        line("under sessions", COLOURS[0], &|it| fleet(it).under_sessions().per_month(S3_PRICES)),
    ];
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let x: Range<f64> = 1.0..100_000.0;
        let mut chart =
            frame(&root, "Requests to a bucket: one holder, one standby, T = 30 s, R = 10 s")
                .build_cartesian_2d(x.log_scale(), (1.0..1_000_000.0).log_scale())?;
        chart
            .configure_mesh()
            .x_desc("leases")
            .y_desc("$ per month")
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .label_style((FONT, 14))
            .axis_desc_style((FONT, 15))
            .light_line_style(TRANSPARENT)
            .draw()?;
        for line in &lines {
            draw(&mut chart, line)?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)?;
        root.present()?;
    }
    let shows = "Dollars per month for requests against the number of leases: independent leases grow \
                 with it, leases under sessions do not";
    Ok(Plot { file: "cost.svg", shows, svg })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn frame<'a, 'b>(root: &'a Area<'b>, title: &str) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut builder = ChartBuilder::on(root);
    builder
        .caption(title, (FONT, 19))
        .margin(14)
        .margin_right(36)
        .x_label_area_size(48)
        .y_label_area_size(76);
    builder
}

fn draw<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'_>, Cartesian2d<X, Y>>,
    line: &Line,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let (red, green, blue) = line.colour;
    let style = RGBColor(red, green, blue).stroke_width(if line.is_real { 3 } else { 2 });
    chart
        .draw_series(LineSeries::new(line.points.iter().copied(), style))
        .map_err(|error| error.to_string())?
        .label(line.name.clone())
        .legend(move |(x, y)| PathElement::new([(x, y), (x + 22, y)], style));
    Ok(())
}

fn legend<'a, 'b, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'b>, Cartesian2d<X, Y>>,
    position: SeriesLabelPosition,
) -> Result<(), Box<dyn Error>>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
    'b: 'a,
{
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font((FONT, 14))
        .margin(12)
        .draw()
        .map_err(|error| error.to_string())?;
    Ok(())
}
