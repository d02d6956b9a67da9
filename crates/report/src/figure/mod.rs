//! Figures as papers print them: a metric against size, a line with intervals for each arm, and how far arms are apart.
//!
//! * `series`: the plots of a campaign and their data
//! * `axis`: ticks, and places on an axis
//! * `letters`: the font, how wide texts are in it, and where they break
//! * `chart`: lines, letters and marks of a figure, in points (1/72 inch), the width of a column
//! * `svg`, `pdf`: the same drawing in each format
//!
//! A drawing has paths and texts, in points from the upper left corner.

mod axis;
mod chart;
mod letters;
mod pdf;
mod series;
mod svg;
#[cfg(test)]
mod tests;

use crate::page::Page;
use crate::rendering::format::OutputFormat;

/// The figures of a campaign: names and contents.
pub fn figures(page: &Page) -> Vec<(String, String)> {
    series::all(page).into_iter().map(|plot| (plot.name, plot.title)).collect()
}

/// A figure by its name, as the bytes of a file in SVG or PDF; `None` if no figure has that name.
pub fn figure(page: &Page, name: &str, format: OutputFormat) -> Option<Vec<u8>> {
    let plot = series::all(page).into_iter().find(|plot| plot.name == name)?;
    let drawing = chart::draw(&plot);
    Some(match format {
        OutputFormat::Pdf => pdf::render(&drawing),
        _ => svg::render(&drawing).into_bytes(),
    })
}

type Colour = [u8; 3];

#[derive(Debug, Clone, PartialEq)]
struct Drawing {
    title: String,
    width: f64,
    height: f64,
    items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
enum Item {
    /// Connected points, one list for each piece.
    Path {
        pieces: Vec<Vec<(f64, f64)>>,
        closed: bool,
        stroke: Option<LineStyle>,
        fill: Option<Colour>,
    },
    Text {
        x: f64,
        y: f64,
        size: f64,
        anchor: Anchor,
        turned: bool,
        colour: Colour,
        text: String,
    },
}

impl Item {
    fn lines(pieces: Vec<Vec<(f64, f64)>>, colour: Colour, width: f64, dash: &'static [f32]) -> Self {
        Item::Path { pieces, closed: false, stroke: Some(LineStyle { colour, width, dash }), fill: None }
    }

    fn form(corners: Vec<(f64, f64)>, stroke: Option<LineStyle>, fill: Colour) -> Self {
        Item::Path { pieces: vec![corners], closed: true, stroke, fill: Some(fill) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct LineStyle {
    colour: Colour,
    width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    dash: &'static [f32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}
