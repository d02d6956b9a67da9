//! The chart of a figure, as wide as a column: axes, lines, markers, legend.

use super::axis::Axis;
use super::drawing::{Anchor, Colour, Drawing, Item, LineStyle, clip_text, width, wrap_text};
use super::series::{Line, Plot};

/// The width of a column of two, points.
const WIDTH: f64 = 252.0;
const PLOT_HEIGHT: f64 = 176.0;
const LETTERS: f64 = 8.0;
/// From one line of text to the next.
const LINE: f64 = LETTERS + 3.0;
const EDGE: f64 = 2.0;
/// From the left end of a line's sign in the legend to its text.
const SIGN: f64 = 24.0;
const INK: Colour = "#16191d";
const FAINT: Colour = "#50575f";
pub(super) const BAND: Colour = "#eceff2";
const GRID: Colour = "#e2e6ea";
/// Colours that people with any colour vision can distinguish, the same as on the page.
pub(super) const COLOURS: [Colour; 8] =
    ["#0064a8", "#b84a00", "#00704f", "#a0366f", "#5b4bb7", "#7a5900", "#33373d", "#00757f"];
const DASHES: [&[f32]; 4] = [&[], &[5.0, 2.0], &[1.5, 2.0], &[6.0, 2.0, 1.5, 2.0]];
pub(super) const LIMIT_DASH: &[f32] = &[2.0, 2.5];

pub(super) fn draw(plot: &Plot) -> Drawing {
    // A line above the plot says which direction is better.
    let top = 8.0 + LINE;
    let bottom = PLOT_HEIGHT + LINE - 30.0;
    let y = Axis::round(figures(plot), bottom, top, 5);
    let widest = y.ticks.iter().map(|(_, label)| width(label, LETTERS)).fold(0.0, f64::max);
    let y_title = lines_of(&plot.y_title, bottom - top);
    let left = 9.0 + LINE * y_title.len() as f64 + widest;
    let right = WIDTH - 8.0;
    let x = x_axis(plot, left + 8.0, right - 8.0);
    let mut items = frame(plot, &x, &y, [left, right, top, bottom]);
    for (number, line) in y_title.iter().enumerate() {
        let place = (9.0 + LINE * number as f64, (top + bottom) / 2.0);
        items.push(text(place, Anchor::Middle, true, INK, line));
    }
    let lines = plot.lines.len() as f64;
    for (number, line) in plot.lines.iter().enumerate() {
        // Keeps the intervals of several lines apart.
        let aside = (number as f64 - (lines - 1.0) / 2.0) * (2.4f64).min(9.0 / lines);
        items.extend(marks(line, number, |level| x.ticks[level].0 + aside, &y));
    }
    items.extend(direction(plot.higher_is_better, right));
    let legend = legend(plot, left);
    items.extend(legend.items);
    Drawing { title: plot.title.clone(), width: WIDTH, height: legend.y, items }
}

/// A title in lines of its axis' length: the unit has a separate line if the whole title is too long for one.
fn lines_of(title: &str, room: f64) -> Vec<String> {
    match title.rsplit_once(", ") {
        Some((name, unit)) if width(title, LETTERS) > room => {
            let mut lines = wrap_text(&format!("{name},"), LETTERS, room);
            lines.extend(wrap_text(unit, LETTERS, room));
            lines
        }
        _ => wrap_text(title, LETTERS, room),
    }
}

fn direction(higher_is_better: bool, right: f64) -> Vec<Item> {
    let (tip, base, words) =
        if higher_is_better { (3.0, 10.0, "higher is better") } else { (10.0, 3.0, "lower is better") };
    let head = if higher_is_better { tip + 2.5 } else { tip - 2.5 };
    let x = right - 3.0;
    let arrow = vec![vec![(x, base), (x, tip)], vec![(x - 2.0, head), (x, tip), (x + 2.0, head)]];
    let arrow = Item::lines(arrow, FAINT, 0.8, &[]);
    vec![arrow, text((x - 5.0, 9.5), Anchor::End, false, FAINT, words)]
}

fn text((x, y): (f64, f64), anchor: Anchor, turned: bool, colour: Colour, text: &str) -> Item {
    Item::Text { x, y, size: LETTERS, anchor, turned, colour, text: text.to_owned() }
}

fn figures(plot: &Plot) -> impl Iterator<Item = f64> {
    let points = plot.lines.iter().flat_map(|line| &line.points);
    let of = points.flat_map(|point| {
        let ends = point.interval.map(|(low, high)| [low, high]);
        ends.into_iter().flatten().chain([point.figure]).chain(point.limit)
    });
    of.chain(plot.level_line).chain(plot.margin.into_iter().flatten())
}

struct XAxis {
    ticks: Vec<(f64, String)>,
    log: bool,
}

fn x_axis(plot: &Plot, from: f64, to: f64) -> XAxis {
    if let Some(numbers) = &plot.numbers {
        let axis = Axis::with_tick_at_each(numbers, from, to);
        let ticks = axis.ticks.iter().map(|(figure, label)| (axis.at(*figure), label.clone()));
        return XAxis { ticks: ticks.collect(), log: axis.log };
    }
    let width = (to - from) / plot.names.len().max(1) as f64;
    let mut ticks = Vec::new();
    for (place, name) in plot.names.iter().enumerate() {
        ticks.push((from + (place as f64 + 0.5) * width, name.clone()));
    }
    XAxis { ticks, log: false }
}

fn frame(plot: &Plot, x: &XAxis, y: &Axis, [left, right, top, bottom]: [f64; 4]) -> Vec<Item> {
    let across = |figure: f64| vec![(left, y.at(figure)), (right, y.at(figure))];
    let mut items: Vec<Item> = Vec::new();
    if let Some(ends) = plot.margin {
        let [low, high] = ends.map(|end| y.at(end));
        let corners = vec![(left, low), (right, low), (right, high), (left, high)];
        items.push(Item::form(corners, None, BAND));
    }
    let grid = y.ticks.iter().map(|(figure, _)| across(*figure));
    items.push(Item::lines(grid.collect(), GRID, 0.5, &[]));
    items.extend(plot.level_line.map(|figure| Item::lines(vec![across(figure)], FAINT, 0.8, &[])));
    let edges = vec![(left, top), (left, bottom), (right, bottom)];
    items.push(Item::lines(vec![edges], FAINT, 0.6, &[]));
    for (figure, label) in &y.ticks {
        items.push(text((left - 4.0, y.at(*figure) + 2.8), Anchor::End, false, FAINT, label));
    }
    let ticks = x.ticks.iter().map(|(place, _)| vec![(*place, bottom), (*place, bottom + 2.5)]);
    items.push(Item::lines(ticks.collect(), FAINT, 0.6, &[]));
    items.extend(labels(x, right - left, bottom + 11.0));
    let title = if x.log { format!("{} (log scale)", plot.x_title) } else { plot.x_title.clone() };
    let title = clip_text(&title, LETTERS, right - left);
    items.push(text(((left + right) / 2.0, bottom + 24.0), Anchor::Middle, false, INK, &title));
    items
}

/// The labels of the horizontal axis. A label that would overlap another is left out, except the first and the last;
/// its tick stays.
fn labels(x: &XAxis, room: f64, y: f64) -> Vec<Item> {
    let room = room / x.ticks.len().clamp(1, 2) as f64 - 2.0 * EDGE;
    let mut placed: Vec<(f64, f64, String)> = Vec::new();
    for (place, label) in &x.ticks {
        let label = clip_text(label, LETTERS, room);
        let half = width(&label, LETTERS) / 2.0;
        placed.push((place.clamp(EDGE + half, WIDTH - EDGE - half), half + 1.5, label));
    }
    let end = placed.last().map_or(f64::INFINITY, |(place, half, _)| place - half);
    let mut last = f64::NEG_INFINITY;
    let mut items = Vec::new();
    for (number, (place, half, label)) in placed.iter().enumerate() {
        let is_end = number + 1 == placed.len();
        if is_end || (place - half > last && (place + half < end || number == 0)) {
            items.push(text((*place, y), Anchor::Middle, false, FAINT, label));
            last = place + half;
        }
    }
    items
}

fn look(number: usize) -> (Colour, &'static [f32]) {
    (COLOURS[number % COLOURS.len()], DASHES[number / COLOURS.len() % DASHES.len()])
}

fn marks(line: &Line, number: usize, x: impl Fn(usize) -> f64, y: &Axis) -> Vec<Item> {
    let (colour, dash) = look(number);
    let limits: Vec<(f64, f64)> =
        line.points.iter().filter_map(|point| Some((x(point.level), y.at(point.limit?)))).collect();
    let bars = line.points.iter().filter_map(|point| Some((x(point.level), point.interval?)));
    let bars = bars.flat_map(|(x, (low, high))| {
        let low = y.at(low);
        let high = y.at(high);
        [
            vec![(x, low), (x, high)],
            vec![(x - 2.0, low), (x + 2.0, low)],
            vec![(x - 2.0, high), (x + 2.0, high)],
        ]
    });
    let means: Vec<(f64, f64)> =
        line.points.iter().map(|point| (x(point.level), y.at(point.figure))).collect();
    let mut items = Vec::new();
    match limits[..] {
        [] => {}
        // With a single size, it has no length.
        [(x, y)] => {
            items.push(Item::lines(vec![vec![(x - 7.0, y), (x + 7.0, y)]], colour, 0.8, LIMIT_DASH));
        }
        _ => items.push(Item::lines(vec![limits], colour, 0.8, LIMIT_DASH)),
    }
    items.push(Item::lines(bars.collect(), colour, 0.7, &[]));
    items.push(Item::lines(vec![means.clone()], colour, 1.0, dash));
    items.extend(means.into_iter().map(|(x, y)| marker(number, x, y)));
    items
}

/// The radius of a marker, points.
const RADIUS: f64 = 2.2;
/// The sides of a marker that looks round.
const SIDES: usize = 20;

fn marker(number: usize, x: f64, y: f64) -> Item {
    let (colour, _) = look(number);
    let form = number % COLOURS.len();
    // In radii, from the middle.
    let mut pieces = match form {
        1 => vec![vec![(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]],
        2 => vec![vec![(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)]],
        3 => vec![vec![(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]],
        4 => vec![vec![(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)]],
        5 => vec![vec![(-1.2, 0.0), (1.2, 0.0)], vec![(0.0, -1.2), (0.0, 1.2)]],
        6 => vec![vec![(-1.0, -1.0), (1.0, 1.0)], vec![(-1.0, 1.0), (1.0, -1.0)]],
        _ => vec![draw_circle()],
    };
    for (across, down) in pieces.iter_mut().flatten() {
        *across = x + RADIUS * *across;
        *down = y + RADIUS * *down;
    }
    let fill = match form {
        5 | 6 => None,
        7 => Some("#ffffff"),
        _ => Some(colour),
    };
    let stroke = Some(LineStyle { colour, width: 0.9, dash: &[] });
    Item::Path { pieces, closed: fill.is_some(), stroke, fill }
}

fn draw_circle() -> Vec<(f64, f64)> {
    let turns = (0..SIDES).map(|side| std::f64::consts::TAU * side as f64 / SIDES as f64);
    turns.map(|turn| (turn.cos(), turn.sin())).collect()
}

/// The rows of a legend, and where the next one begins.
struct Legend {
    left: f64,
    y: f64,
    items: Vec<Item>,
}

impl Legend {
    /// A piece of a line as it is in the plot.
    fn draw_sample(&self, colour: Colour, dash: &'static [f32]) -> Item {
        Item::lines(vec![vec![(self.left, self.y), (self.left + 18.0, self.y)]], colour, 1.0, dash)
    }

    fn add(&mut self, sign: Vec<Item>, label: &str) {
        self.items.extend(sign);
        for line in wrap_text(label, LETTERS, WIDTH - EDGE - self.left - SIGN) {
            let place = (self.left + SIGN, self.y + 2.8);
            self.items.push(text(place, Anchor::Start, false, INK, &line));
            self.y += LINE;
        }
    }
}

/// The legend below the plot. Everything is as high as it reaches.
fn legend(plot: &Plot, left: f64) -> Legend {
    let mut legend = Legend { left, y: PLOT_HEIGHT + LINE + 4.0, items: Vec::new() };
    for (number, line) in plot.lines.iter().enumerate().filter(|(_, line)| !line.label.is_empty()) {
        let (colour, dash) = look(number);
        let sign = vec![legend.draw_sample(colour, dash), marker(number, left + 9.0, legend.y)];
        legend.add(sign, &line.label);
    }
    if plot.lines.iter().flat_map(|line| &line.points).any(|point| point.limit.is_some()) {
        let sign = vec![legend.draw_sample(FAINT, LIMIT_DASH)];
        legend.add(sign, &format!("limit by {}", plot.limited_by));
    }
    if let Some([low, high]) = plot.margin {
        let right = left + 18.0;
        let [above, below] = [legend.y - 3.5, legend.y + 3.5];
        let corners = vec![(left, above), (right, above), (right, below), (left, below)];
        let sign = vec![Item::form(corners, None, BAND)];
        legend.add(sign, &format!("margin, {low} to +{high}: equivalent"));
    }
    legend
}
