//! A drawing: paths and texts, in points (1/72 inch) from the upper left corner, the width of texts in its font, and
//! the same drawing as SVG and as PDF.

use crate::rendering::document::escape_text;
use pdf_writer::types::LineCapStyle;
use pdf_writer::{Content, Finish, Pdf, Rect, Ref, TextStr};
use std::fmt::Write;
use std::sync::LazyLock;
use ttf_parser::{Face, OutlineBuilder};

/// `#0064a8`.
pub(super) type Colour = &'static str;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawing {
    pub title: String,
    pub width: f64,
    pub height: f64,
    pub items: Vec<Item>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
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
    pub(super) fn lines(
        pieces: Vec<Vec<(f64, f64)>>,
        colour: Colour,
        width: f64,
        dash: &'static [f32],
    ) -> Self {
        Item::Path { pieces, closed: false, stroke: Some(LineStyle { colour, width, dash }), fill: None }
    }

    pub(super) fn form(corners: Vec<(f64, f64)>, stroke: Option<LineStyle>, fill: Colour) -> Self {
        Item::Path { pieces: vec![corners], closed: true, stroke, fill: Some(fill) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LineStyle {
    pub colour: Colour,
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static [f32],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(notosans::REGULAR_TTF, 0).expect("the font of this program is one"));

pub(super) fn width(text: &str, size: f64) -> f64 {
    let glyphs = text.chars().map(|letter| FACE.glyph_index(letter).unwrap_or_default());
    let advances = glyphs.map(|glyph| f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(0)));
    advances.sum::<f64>() * size / f64::from(FACE.units_per_em())
}

/// A text in lines no wider than the room: broken between words, and within a word that is too wide alone.
pub(super) fn wrap_text(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        if let Some(last) = lines.last_mut() {
            let longer = format!("{last} {word}");
            if width(&longer, size) <= room {
                *last = longer;
                continue;
            }
        }
        let mut line = String::new();
        for letter in word.chars() {
            line.push(letter);
            if width(&line, size) > room && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::take(&mut line));
                line.push(letter);
            }
        }
        lines.push(line);
    }
    lines
}

/// The beginning of a text that is wider than the room.
pub(super) fn clip_text(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while kept.pop().is_some() && width(&kept, size) + width("…", size) > room {}
    kept + "…"
}

pub(super) fn svg(drawing: &Drawing) -> String {
    let Drawing { title, width, height, items } = drawing;
    let mut svg = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}pt\" \
         height=\"{height}pt\" viewBox=\"0 0 {width} {height}\" font-family=\"'Noto Sans', 'DejaVu Sans', Arial, sans-serif\">\n\
         <title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
        escape_text(title)
    );
    svg.extend(items.iter().map(element));
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
            let fill = fill.unwrap_or("none");
            let stroke = stroke.map_or_else(String::new, |stroke| {
                let dash: Vec<String> = stroke.dash.iter().map(ToString::to_string).collect();
                let dash = match dash.is_empty() {
                    true => String::new(),
                    false => format!(" stroke-dasharray=\"{}\"", dash.join(" ")),
                };
                format!(" stroke=\"{}\" stroke-width=\"{}\"{dash}", stroke.colour, stroke.width)
            });
            format!("<path d=\"{data}\" fill=\"{fill}\"{stroke}/>\n")
        }
        Item::Text { x, y, size, anchor, turned, colour, text } => {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let place = match turned {
                true => format!("transform=\"translate({x:.2} {y:.2}) rotate(-90)\""),
                false => format!("x=\"{x:.2}\" y=\"{y:.2}\""),
            };
            let text = escape_text(text);
            format!(
                "<text {place} font-size=\"{size}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{text}</text>\n"
            )
        }
    }
}

/// One page of the drawing's size. Text is drawn as outlines and needs no fonts.
pub(super) fn pdf(drawing: &Drawing) -> Vec<u8> {
    let [catalog, pages, page, content, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let height = drawing.height as f32;
    let mut drawn = Content::new();
    drawn.set_line_cap(LineCapStyle::ButtCap);
    for item in &drawing.items {
        draw(&mut drawn, item, height);
    }
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    let mut sheet = pdf.page(page);
    sheet.parent(pages).media_box(Rect::new(0.0, 0.0, drawing.width as f32, height)).contents(content);
    sheet.resources();
    sheet.finish();
    pdf.stream(content, &drawn.finish());
    pdf.document_info(info).title(TextStr(&drawing.title)).creator(TextStr("stacklab"));
    pdf.finish()
}

fn draw(content: &mut Content, item: &Item, height: f32) {
    match item {
        Item::Path { pieces, closed, stroke, fill } => {
            for piece in pieces {
                for (place, (x, y)) in piece.iter().enumerate() {
                    let x = *x as f32;
                    let y = height - *y as f32;
                    match place {
                        0 => content.move_to(x, y),
                        _ => content.line_to(x, y),
                    };
                }
                if *closed {
                    content.close_path();
                }
            }
            if let Some(colour) = fill {
                let [r, g, b] = rgb(colour);
                content.set_fill_rgb(r, g, b);
            }
            if let Some(stroke) = stroke {
                let [r, g, b] = rgb(stroke.colour);
                content.set_stroke_rgb(r, g, b).set_line_width(stroke.width as f32);
                content.set_dash_pattern(stroke.dash.iter().copied(), 0.0);
            }
            match (fill, stroke) {
                (Some(_), Some(_)) => content.fill_nonzero_and_stroke(),
                (Some(_), None) => content.fill_nonzero(),
                (None, Some(_)) => content.stroke(),
                (None, None) => content.end_path(),
            };
        }
        Item::Text { x, y, size, anchor, turned, colour, text } => {
            let scale = *size as f32 / f32::from(FACE.units_per_em());
            let width = width(text, *size) as f32;
            let mut pen = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -width / 2.0,
                Anchor::End => -width,
            };
            let [r, g, b] = rgb(colour);
            content.set_fill_rgb(r, g, b);
            for letter in text.chars() {
                let glyph = FACE.glyph_index(letter).unwrap_or_default();
                let origin = (*x as f32, height - *y as f32);
                let mut outline = Outline { content, scale, turned: *turned, origin, pen, last: (0.0, 0.0) };
                if FACE.outline_glyph(glyph, &mut outline).is_some() {
                    content.fill_nonzero();
                }
                pen += scale * f32::from(FACE.glyph_hor_advance(glyph).unwrap_or(0));
            }
        }
    }
}

fn rgb(colour: &str) -> [f32; 3] {
    [1, 3, 5].map(|at| f32::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap_or(0)) / 255.0)
}

struct Outline<'a> {
    content: &'a mut Content,
    scale: f32,
    turned: bool,
    origin: (f32, f32),
    pen: f32,
    last: (f32, f32),
}

impl Outline<'_> {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let x = self.pen + self.scale * x;
        let y = self.scale * y;
        let (x, y) = if self.turned { (-y, x) } else { (x, y) };
        (self.origin.0 + x, self.origin.1 + y)
    }
}

impl OutlineBuilder for Outline<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        self.last = self.place(x, y);
        self.content.move_to(self.last.0, self.last.1);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        self.last = self.place(x, y);
        self.content.line_to(self.last.0, self.last.1);
    }

    // PDF has cubic curves only: each control point is two thirds of the way to the quadratic one's.
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let from = self.last;
        let via = self.place(x1, y1);
        let to = self.place(x, y);
        let [a, b] =
            [from, to].map(|end| (end.0 + (via.0 - end.0) * 2.0 / 3.0, end.1 + (via.1 - end.1) * 2.0 / 3.0));
        self.content.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
        self.last = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let a = self.place(x1, y1);
        let b = self.place(x2, y2);
        let to = self.place(x, y);
        self.content.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
        self.last = to;
    }

    fn close(&mut self) {
        self.content.close_path();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_every_word_within_the_width() {
        let text = "mechanism=6in4 against mechanism=native, ipv6, flow label 1048575";
        for room in [40.0, 80.0, 150.0, 400.0] {
            let lines = wrap_text(text, 8.0, room);
            assert!(lines.iter().all(|line| width(line, 8.0) <= room), "{room}: {lines:?}");
            assert_eq!(lines.concat().replace(' ', ""), text.replace(' ', ""));
        }
        assert_eq!(wrap_text(text, 8.0, 400.0), [text]);
        assert_eq!(wrap_text("ipv6 against ipv4", 8.0, 50.0), ["ipv6 against", "ipv4"]);
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_fits() {
        let cut = clip_text("receiver (server of http)", 8.0, 50.0);
        assert!(cut.ends_with('…') && cut.starts_with("rec") && width(&cut, 8.0) <= 50.0, "{cut}");
        assert_eq!(clip_text("ipv4", 8.0, 50.0), "ipv4");
    }
}
