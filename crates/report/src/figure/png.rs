//! A drawing as PNG.

use super::drawing::Drawing;
use super::letters::FONT;
use super::svg;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// Dots for a point: 300 to the inch.
const SCALE: f32 = 300.0 / 72.0;

/// The picture at 300 dots per inch.
pub fn render(drawing: &Drawing) -> Vec<u8> {
    let mut options = Options::default();
    options.fontdb_mut().load_font_data(FONT.to_vec());
    let tree = Tree::from_str(&svg::render(drawing), &options).expect("our own SVG is understood");
    let size = tree.size();
    // A point is more than one pixel of the tree, because its inch has 96 pixels.
    let scale = SCALE * drawing.width as f32 / size.width();
    let dots = |length: f32| (length * scale).ceil() as u32;
    let mut picture = Pixmap::new(dots(size.width()), dots(size.height())).expect("a figure has a size");
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut picture.as_mut());
    picture.encode_png().expect("memory can be written to")
}
