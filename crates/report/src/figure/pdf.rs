//! A drawing as PDF: one page of its size. Text is drawn as outlines and needs no fonts.

use super::letters::{FACE, width};
use super::{Anchor, Colour, Drawing, Item};
use pdf_writer::types::LineCapStyle;
use pdf_writer::{Content, Finish, Pdf, Rect, Ref, TextStr};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

pub(super) fn render(drawing: &Drawing) -> Vec<u8> {
    let [catalog, pages, page, content, info] = [1, 2, 3, 4, 5].map(Ref::new);
    let height = drawing.height as f32;
    let mut drawn = Content::new();
    drawn.set_line_cap(LineCapStyle::ButtCap);
    for item in &drawing.items {
        draw(&mut drawn, item, height, &FACE);
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

fn draw(content: &mut Content, item: &Item, height: f32, face: &Face) {
    match item {
        Item::Path { pieces, closed, stroke, fill } => {
            for piece in pieces {
                for (place, (x, y)) in piece.iter().enumerate() {
                    let (x, y) = (*x as f32, height - *y as f32);
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
                fill_with(content, *colour);
            }
            if let Some(stroke) = stroke {
                let [r, g, b] = stroke.colour.map(share);
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
            let glyphs: Vec<GlyphId> =
                text.chars().map(|letter| face.glyph_index(letter).unwrap_or_default()).collect();
            let scale = *size as f32 / f32::from(face.units_per_em());
            let advance = |glyph: &GlyphId| scale * f32::from(face.glyph_hor_advance(*glyph).unwrap_or(0));
            let width = width(text, *size) as f32;
            let mut pen = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => -width / 2.0,
                Anchor::End => -width,
            };
            fill_with(content, *colour);
            for glyph in &glyphs {
                let mut outline = Outline {
                    content,
                    scale,
                    turned: *turned,
                    origin: (*x as f32, height - *y as f32),
                    pen,
                    last: (0.0, 0.0),
                };
                if face.outline_glyph(*glyph, &mut outline).is_some() {
                    content.fill_nonzero();
                }
                pen += advance(glyph);
            }
        }
    }
}

fn fill_with(content: &mut Content, colour: Colour) {
    let [r, g, b] = colour.map(share);
    content.set_fill_rgb(r, g, b);
}

fn share(part: u8) -> f32 {
    f32::from(part) / 255.0
}

/// A glyph on its way to the page.
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
        let (x, y) = (self.pen + self.scale * x, self.scale * y);
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
        let (from, via, to) = (self.last, self.place(x1, y1), self.place(x, y));
        let toward =
            |end: (f32, f32)| (end.0 + (via.0 - end.0) * 2.0 / 3.0, end.1 + (via.1 - end.1) * 2.0 / 3.0);
        let (a, b) = (toward(from), toward(to));
        self.content.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
        self.last = to;
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (a, b, to) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.content.cubic_to(a.0, a.1, b.0, b.1, to.0, to.1);
        self.last = to;
    }

    fn close(&mut self) {
        self.content.close_path();
    }
}
