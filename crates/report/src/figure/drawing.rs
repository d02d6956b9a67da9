//! The common input of all formats: paths and texts, in points from the upper left corner.

/// A colour: red, green, blue.
pub(super) type Colour = [u8; 3];

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Drawing {
    pub title: String,
    pub width: f64,
    pub height: f64,
    pub items: Vec<Item>,
}

/// An element of a drawing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// Connected points, one list for each piece.
    Path { pieces: Vec<Vec<(f64, f64)>>, closed: bool, stroke: Option<LineStyle>, fill: Option<Colour> },
    /// A line of text.
    Text { x: f64, y: f64, size: f64, anchor: Anchor, turned: bool, colour: Colour, text: String },
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LineStyle {
    pub colour: Colour,
    pub width: f64,
    /// Lengths of dashes and gaps; empty for a solid line.
    pub dash: &'static [f32],
}

/// The alignment of a text at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}
