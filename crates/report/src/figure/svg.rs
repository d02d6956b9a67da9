//! A drawing as SVG.

use super::{Anchor, Colour, Drawing, Item};
use crate::rendering::document::escaped;
use std::fmt::Write;

pub(super) fn render(drawing: &Drawing) -> String {
    let Drawing { title, width, height, items } = drawing;
    let mut svg = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" \
         height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" font-family=\"'Noto Sans', 'DejaVu Sans', Arial, sans-serif\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escaped(title)
    );
    for item in items {
        svg += &element(item);
        svg.push('\n');
    }
    svg + "</svg>\n"
}

fn element(item: &Item) -> String {
    match item {
        Item::Path { pieces, closed, stroke, fill } => {
            let mut data = String::new();
            for piece in pieces {
                for (place, (x, y)) in piece.iter().enumerate() {
                    let _ = write!(data, "{}{x:.2} {y:.2}", if place == 0 { 'M' } else { 'L' });
                }
                if *closed {
                    data.push('z');
                }
            }
            let fill = fill.map_or("none".to_owned(), colour);
            let stroke = stroke.map_or_else(String::new, |stroke| {
                let dash: Vec<String> = stroke.dash.iter().map(ToString::to_string).collect();
                let dash = match dash.is_empty() {
                    true => String::new(),
                    false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
                };
                format!(" stroke=\"{}\" stroke-width=\"{}\"{dash}", colour(stroke.colour), stroke.width)
            });
            format!("<path d=\"{data}\" fill=\"{fill}\"{stroke}/>")
        }
        Item::Text { x, y, size, anchor, turned, colour: of, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let place = match turned {
                true => format!("transform=\"translate({x:.2} {y:.2}) rotate(-90)\""),
                false => format!("x=\"{x:.2}\" y=\"{y:.2}\""),
            };
            let (of, text) = (colour(*of), escaped(text));
            format!("<text {place} font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{of}\">{text}</text>")
        }
    }
}

fn colour([r, g, b]: Colour) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}
