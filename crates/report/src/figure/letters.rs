//! The font of figures, the width of texts in it, and their line breaks.

use std::sync::LazyLock;
use ttf_parser::Face;

pub(super) const FONT: &[u8] = notosans::REGULAR_TTF;

/// The font, understood.
pub(super) static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(FONT, 0).expect("the font of this program is one"));

pub(super) fn width(text: &str, size: f64) -> f64 {
    let advance = |letter| {
        let glyph = FACE.glyph_index(letter).unwrap_or_default();
        f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(0))
    };
    text.chars().map(advance).sum::<f64>() * size / f64::from(FACE.units_per_em())
}

/// A text in lines no wider than the room: broken between words, and within a word that is too wide alone.
pub(super) fn wrapped(text: &str, size: f64, room: f64) -> Vec<String> {
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
pub(super) fn clipped(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut kept = text.to_owned();
    while kept.pop().is_some() && width(&kept, size) + width("…", size) > room {}
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_hold_every_word_and_are_no_wider_than_the_room() {
        let text = "mechanism=6in4 against mechanism=native, ipv6, flow label 1048575";
        for room in [40.0, 80.0, 150.0, 400.0] {
            let lines = wrapped(text, 8.0, room);
            assert!(lines.iter().all(|line| width(line, 8.0) <= room), "{room}: {lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            assert_eq!(letters(&lines.concat()), letters(text));
        }
        assert_eq!(wrapped(text, 8.0, 400.0), [text]);
        assert_eq!(wrapped("ipv6 against ipv4", 8.0, 50.0), ["ipv6 against", "ipv4"]);
    }

    #[test]
    fn a_text_that_is_cut_says_so_and_fits() {
        let cut = clipped("receiver (server of http)", 8.0, 50.0);
        assert!(cut.ends_with('…') && cut.starts_with("rec") && width(&cut, 8.0) <= 50.0, "{cut}");
        assert_eq!(clipped("ipv4", 8.0, 50.0), "ipv4");
    }
}
