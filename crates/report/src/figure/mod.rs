//! Figures as papers print them: a metric against size, a line with intervals for each arm, and how far arms are apart.

mod axis;
mod chart;
mod drawing;
mod series;
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
        OutputFormat::Pdf => drawing::pdf(&drawing),
        _ => drawing::svg(&drawing).into_bytes(),
    })
}
