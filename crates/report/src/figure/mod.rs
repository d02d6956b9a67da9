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
use stacklab_model::UnknownName;
use std::str::FromStr;

/// The format of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureFormat {
    /// Vector graphics with text, scalable by any program.
    Svg,
    /// For LaTeX.
    Pdf,
}

impl FigureFormat {
    const NAMES: &'static [&'static str] = &["svg", "pdf"];
}

impl FromStr for FigureFormat {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        Ok(match text {
            "svg" => FigureFormat::Svg,
            "pdf" => FigureFormat::Pdf,
            _ => {
                let (found, valid) = (text.to_owned(), FigureFormat::NAMES);
                return Err(UnknownName { found, set: "format of figures", valid });
            }
        })
    }
}

/// The figures of a campaign: names and contents.
pub fn figures(page: &Page) -> Vec<(String, String)> {
    series::all(page).into_iter().map(|plot| (plot.name, plot.title)).collect()
}

/// A figure by its name, as the bytes of a file; `None` if no figure has that name.
pub fn figure(page: &Page, name: &str, format: FigureFormat) -> Option<Vec<u8>> {
    let plot = series::all(page).into_iter().find(|plot| plot.name == name)?;
    let drawing = chart::draw(&plot);
    Some(match format {
        FigureFormat::Svg => svg::render(&drawing).into_bytes(),
        FigureFormat::Pdf => pdf::render(&drawing),
    })
}
