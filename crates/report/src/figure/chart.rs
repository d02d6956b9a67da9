//! The chart of a figure, as wide as a column: axes, lines, markers, legend.

use super::axis::Axis;
use super::drawing::{Anchor, Colour, Drawing, Item, LineStyle, clipped, width, wrapped};
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
    let (legend, height) = legend(plot, left);
    items.extend(legend);
    Drawing { title: plot.title.clone(), width: WIDTH, height, items }
}

/// A title in lines of its axis' length: the unit has a separate line if the whole title is too long for one.
fn lines_of(title: &str, room: f64) -> Vec<String> {
    match title.rsplit_once(", ") {
        Some((name, unit)) if width(title, LETTERS) > room => {
            let mut lines = wrapped(&format!("{name},"), LETTERS, room);
            lines.extend(wrapped(unit, LETTERS, room));
            lines
        }
        _ => wrapped(title, LETTERS, room),
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
        let axis = Axis::labelled(numbers, from, to);
        let ticks = axis.ticks.iter().map(|(figure, label)| (axis.at(*figure), label.clone()));
        return XAxis { ticks: ticks.collect(), log: axis.log };
    }
    let width = (to - from) / plot.names.len().max(1) as f64;
    let place = |(place, name): (usize, &String)| (from + (place as f64 + 0.5) * width, name.clone());
    XAxis { ticks: plot.names.iter().enumerate().map(place).collect(), log: false }
}

fn frame(plot: &Plot, x: &XAxis, y: &Axis, [left, right, top, bottom]: [f64; 4]) -> Vec<Item> {
    let line = |pieces, colour, width| Item::lines(pieces, colour, width, &[]);
    let across = |figure: f64| vec![(left, y.at(figure)), (right, y.at(figure))];
    let band = |ends: [f64; 2]| {
        let [low, high] = ends.map(|end| y.at(end));
        Item::form(vec![(left, low), (right, low), (right, high), (left, high)], None, BAND)
    };
    let mut items: Vec<Item> = plot.margin.map(band).into_iter().collect();
    items.push(line(y.ticks.iter().map(|(figure, _)| across(*figure)).collect(), GRID, 0.5));
    items.extend(plot.level_line.map(|figure| line(vec![across(figure)], FAINT, 0.8)));
    items.push(line(vec![vec![(left, top), (left, bottom), (right, bottom)]], FAINT, 0.6));
    for (figure, label) in &y.ticks {
        items.push(text((left - 4.0, y.at(*figure) + 2.8), Anchor::End, false, FAINT, label));
    }
    let ticks = x.ticks.iter().map(|(place, _)| vec![(*place, bottom), (*place, bottom + 2.5)]);
    items.push(line(ticks.collect(), FAINT, 0.6));
    items.extend(labels(x, right - left, bottom + 11.0));
    let title = if x.log { format!("{} (log scale)", plot.x_title) } else { plot.x_title.clone() };
    let title = clipped(&title, LETTERS, right - left);
    items.push(text(((left + right) / 2.0, bottom + 24.0), Anchor::Middle, false, INK, &title));
    items
}

/// The labels of the horizontal axis. A label that would overlap another is left out, except the first and the last;
/// its tick stays.
fn labels(x: &XAxis, room: f64, y: f64) -> Vec<Item> {
    let room = room / x.ticks.len().clamp(1, 2) as f64 - 2.0 * EDGE;
    let placed = |(place, label): &(f64, String)| {
        let label = clipped(label, LETTERS, room);
        let half = width(&label, LETTERS) / 2.0;
        (place.clamp(EDGE + half, WIDTH - EDGE - half), half + 1.5, label)
    };
    let placed: Vec<(f64, f64, String)> = x.ticks.iter().map(placed).collect();
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
    let path = |pieces, width, dash| Item::lines(pieces, colour, width, dash);
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
        [(x, y)] => items.push(path(vec![vec![(x - 7.0, y), (x + 7.0, y)]], 0.8, LIMIT_DASH)),
        _ => items.push(path(vec![limits], 0.8, LIMIT_DASH)),
    }
    items.push(path(bars.collect(), 0.7, &[]));
    items.push(path(vec![means.clone()], 1.0, dash));
    items.extend(means.into_iter().map(|(x, y)| marker(number, x, y)));
    items
}

fn marker(number: usize, x: f64, y: f64) -> Item {
    let (colour, _) = look(number);
    let r = 2.2;
    let at =
        |points: &[(f64, f64)]| points.iter().map(|(dx, dy)| (x + r * dx, y + r * dy)).collect::<Vec<_>>();
    let round = |sides: usize| {
        let turn = |side: usize| std::f64::consts::TAU * side as f64 / sides as f64;
        at(&(0..sides).map(|side| (turn(side).cos(), turn(side).sin())).collect::<Vec<_>>())
    };
    let stroke = Some(LineStyle { colour, width: 0.9, dash: &[] });
    let full = |points| Item::form(points, stroke, colour);
    let open = |pieces| Item::lines(pieces, colour, 0.9, &[]);
    match number % COLOURS.len() {
        0 => full(round(20)),
        1 => full(at(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)])),
        2 => full(at(&[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)])),
        3 => full(at(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)])),
        4 => full(at(&[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)])),
        5 => open(vec![at(&[(-1.2, 0.0), (1.2, 0.0)]), at(&[(0.0, -1.2), (0.0, 1.2)])]),
        6 => open(vec![at(&[(-1.0, -1.0), (1.0, 1.0)]), at(&[(-1.0, 1.0), (1.0, -1.0)])]),
        _ => Item::form(round(20), stroke, "#ffffff"),
    }
}

/// The legend below the plot, and how high everything is with it.
fn legend(plot: &Plot, left: f64) -> (Vec<Item>, f64) {
    let mut items = Vec::new();
    let mut y = PLOT_HEIGHT + LINE + 4.0;
    let mut row = |sign: Vec<Item>, label: &str, y: &mut f64| {
        items.extend(sign);
        for line in wrapped(label, LETTERS, WIDTH - EDGE - left - SIGN) {
            items.push(text((left + SIGN, *y + 2.8), Anchor::Start, false, INK, &line));
            *y += LINE;
        }
    };
    let sample = |colour, dash, y| Item::lines(vec![vec![(left, y), (left + 18.0, y)]], colour, 1.0, dash);
    for (number, line) in plot.lines.iter().enumerate().filter(|(_, line)| !line.label.is_empty()) {
        let (colour, dash) = look(number);
        row(vec![sample(colour, dash, y), marker(number, left + 9.0, y)], &line.label, &mut y);
    }
    if plot.lines.iter().flat_map(|line| &line.points).any(|point| point.limit.is_some()) {
        row(vec![sample(FAINT, LIMIT_DASH, y)], &format!("limit by {}", plot.limited_by), &mut y);
    }
    if let Some([low, high]) = plot.margin {
        let sign = vec![(left, y - 3.5), (left + 18.0, y - 3.5), (left + 18.0, y + 3.5), (left, y + 3.5)];
        row(vec![Item::form(sign, None, BAND)], &format!("margin, {low} to +{high}: equivalent"), &mut y);
    }
    (items, y)
}
