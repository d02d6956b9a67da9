//! Figures as papers print them: a metric against size, a line with intervals for each arm, and how far arms are apart.
//!
//! * `series`: the plots of a campaign and their data
//! * `axis`: ticks, and places on an axis
//! * `letters`: the font, how wide texts are in it, and where they break
//! * `chart`: lines, letters and marks of a figure, in points (1/72 inch), the width of a column
//! * `svg`, `pdf`: the same drawing in each format

mod axis;
mod chart;
mod drawing;
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

/// A figure by its name, as the bytes of an SVG or PDF file; `None` if no figure has that name.
pub fn figure(page: &Page, name: &str, format: OutputFormat) -> Option<Vec<u8>> {
    let plot = series::all(page).into_iter().find(|plot| plot.name == name)?;
    let drawing = chart::draw(&plot);
    Some(match format {
        OutputFormat::Svg => svg::render(&drawing).into_bytes(),
        OutputFormat::Pdf => pdf::render(&drawing),
        _ => format.unsupported(),
    })
}
