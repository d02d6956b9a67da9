//! A timeline as SVG: lanes below each other on one time axis. Colours are classes, which `timeline.css` defines for
//! light and dark pages.

use crate::page::lanes::{Bar, Lane, LaneSubject, Mark, Shape};
use crate::page::scale::Scale;
use stacklab_model::Family;
use stacklab_report::escape_markup;
use std::fmt::Write;

const WIDTH: f64 = 960.0;
/// The plot's sides, px: labels are on its left.
pub(super) const LEFT: f64 = 200.0;
pub(super) const RIGHT: f64 = 944.0;
/// The height of a lane, and in it: the line of its text, the middle of its bar.
const LANE: f64 = 36.0;
const TEXT: f64 = 13.0;
const MIDDLE: f64 = 24.0;
/// Half the height of a bar and of a mark.
const HALF_BAR: f64 = 5.0;
const HALF_MARK: f64 = 8.0;
/// Room above the lanes, in which shortened waits have their lengths.
const TOP: f64 = 18.0;
const AXIS: f64 = 40.0;
/// The width of a letter, which need not be exact: texts that may be too long are moved to the left.
const LETTER: f64 = 6.6;
/// The least width of a bar: an answer that comes at once is seen, too.
const MIN_BAR: f64 = 2.0;

/// Draws a run with this title, which readers of the page's text get.
pub(super) fn draw_timeline(title: &str, lanes: &[Lane], scale: &Scale) -> String {
    let bottom = TOP + LANE * lanes.len() as f64;
    let height = bottom + AXIS;
    let title = escape_markup(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"timeline\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n\
         <title>{title}</title>\n<rect class=\"ground\" width=\"{WIDTH}\" height=\"{height}\"/>\n"
    );
    draw_cuts(&mut svg, scale, bottom);
    draw_axis(&mut svg, scale, bottom);
    draw_guide(&mut svg, lanes, scale, bottom);
    for (place, lane) in lanes.iter().enumerate() {
        draw_lane(&mut svg, lane, scale, TOP + LANE * place as f64);
    }
    svg + "</svg>\n"
}

fn draw_cuts(svg: &mut String, scale: &Scale, bottom: f64) {
    for cut in scale.list_cuts() {
        let width = cut.right - cut.left;
        let middle = cut.left + width / 2.0;
        let height = bottom - TOP;
        let seconds = cut.length_ms / 1e3;
        draw(
            svg,
            format_args!(
                "<rect class=\"cut\" x=\"{:.1}\" y=\"{TOP}\" width=\"{width:.1}\" height=\"{height}\"/>\n\
                 <text class=\"quiet middle\" x=\"{middle:.1}\" y=\"{TEXT}\">{seconds:.1} s</text>",
                cut.left
            ),
        );
    }
}

fn draw_axis(svg: &mut String, scale: &Scale, bottom: f64) {
    draw(svg, format_args!("<path class=\"axis\" d=\"M{LEFT} {bottom}H{RIGHT}\"/>"));
    let labels = bottom + 16.0;
    for tick in scale.list_ticks() {
        draw(svg, format_args!("<path class=\"grid\" d=\"M{:.1} {TOP}V{:.1}\"/>", tick.at, bottom + 4.0));
        draw(
            svg,
            format_args!(
                "<text class=\"quiet middle\" x=\"{:.1}\" y=\"{labels}\">{:.0}</text>",
                tick.at, tick.ms
            ),
        );
    }
    let below = bottom + 32.0;
    draw(
        svg,
        format_args!("<text class=\"quiet end\" x=\"{RIGHT}\" y=\"{below}\">ms after the first query</text>"),
    );
}

/// A line through all lanes where the first byte is.
fn draw_guide(svg: &mut String, lanes: &[Lane], scale: &Scale, bottom: f64) {
    for mark in lanes.iter().flat_map(|lane| &lane.marks).filter(|mark| mark.shape == Shape::FirstByte) {
        draw(
            svg,
            format_args!("<path class=\"guide\" d=\"M{:.1} {TOP}V{bottom}\"/>", scale.place(mark.at_ms)),
        );
    }
}

fn draw_lane(svg: &mut String, lane: &Lane, scale: &Scale, top: f64) {
    let class = choose_class(lane.subject);
    let middle = top + MIDDLE;
    draw(svg, format_args!("<g class=\"{class}\">"));
    let label = escape_markup(&lane.label);
    draw(
        svg,
        format_args!("<text class=\"label end\" x=\"{}\" y=\"{}\">{label}</text>", LEFT - 12.0, middle + 4.0),
    );
    for bar in &lane.bars {
        draw_bar(svg, bar, scale, middle);
    }
    for mark in &lane.marks {
        draw_mark(svg, mark, scale, middle);
    }
    if let Some(first) = lane.marks.first() {
        draw_text(svg, &lane.text, scale.place(first.at_ms), top + TEXT);
    }
    draw(svg, format_args!("</g>"));
}

fn draw_bar(svg: &mut String, bar: &Bar, scale: &Scale, middle: f64) {
    let left = scale.place(bar.from_ms);
    let width = (scale.place(bar.to_ms) - left).max(MIN_BAR);
    let class = if bar.is_answered { "bar" } else { "bar open" };
    draw(
        svg,
        format_args!(
            "<rect class=\"{class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\"/>",
            middle - HALF_BAR,
            2.0 * HALF_BAR
        ),
    );
}

fn draw_mark(svg: &mut String, mark: &Mark, scale: &Scale, middle: f64) {
    let x = scale.place(mark.at_ms);
    let left = x - HALF_MARK * 0.75;
    let right = x + HALF_MARK * 0.75;
    let top = middle - HALF_MARK;
    let bottom = middle + HALF_MARK;
    match mark.shape {
        Shape::Sent => draw(svg, format_args!("<path class=\"sent\" d=\"M{x:.1} {top}V{bottom}\"/>")),
        Shape::Refused => draw(
            svg,
            format_args!(
                "<path class=\"refused\" d=\"M{left:.1} {top}L{right:.1} {bottom}M{left:.1} {bottom}L{right:.1} {top}\"/>"
            ),
        ),
        Shape::FirstByte => draw(
            svg,
            format_args!(
                "<path class=\"data\" d=\"M{x:.1} {top}L{right:.1} {middle}L{x:.1} {bottom}L{left:.1} {middle}z\"/>"
            ),
        ),
        Shape::End => draw(
            svg,
            format_args!("<path class=\"data\" d=\"M{left:.1} {top}H{right:.1}V{bottom}H{left:.1}z\"/>"),
        ),
    }
}

/// A text that begins here, or ends at the plot's right side if it would be too long.
fn draw_text(svg: &mut String, text: &str, x: f64, y: f64) {
    let width = text.chars().count() as f64 * LETTER;
    let text = escape_markup(text);
    match x + width > RIGHT {
        true => draw(svg, format_args!("<text class=\"times end\" x=\"{RIGHT}\" y=\"{y}\">{text}</text>")),
        false => draw(svg, format_args!("<text class=\"times\" x=\"{x:.1}\" y=\"{y}\">{text}</text>")),
    }
}

pub(super) fn choose_class(subject: LaneSubject) -> &'static str {
    match subject {
        LaneSubject::Family(Family::Ipv4) => "ipv4",
        LaneSubject::Family(Family::Ipv6) => "ipv6",
        LaneSubject::Neutral => "neutral",
    }
}

fn draw(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("a String takes what is written");
}
