//! Figures of the fixtures' campaign.

use super::{FigureFormat, figure, figures};
use crate::page::tests::document;

#[test]
fn every_metric_and_place_has_its_figures() {
    let page = document();
    let names: Vec<String> = figures(&page).into_iter().map(|(name, _)| name).collect();
    for name in
        ["throughput-tcp-segment", "throughput-tcp-segment-difference", "rtt-udp-segment", "loss-udp-segment"]
    {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
    for name in &names {
        for format in [FigureFormat::Svg, FigureFormat::Png, FigureFormat::Pdf] {
            assert!(figure(&page, name, format).is_some_and(|bytes| bytes.len() > 1000), "{name} {format:?}");
        }
    }
    assert_eq!(figure(&page, "throughput", FigureFormat::Svg), None);
}

#[test]
fn a_figure_has_arms_units_sizes_and_a_limit() {
    let svg =
        String::from_utf8(figure(&document(), "throughput-tcp-segment", FigureFormat::Svg).unwrap()).unwrap();
    for text in
        ["throughput, Mbit/s", "size, bytes", ">ipv4<", ">ipv6<", ">64<", ">1408<", "what headers leave"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    assert_eq!(
        svg,
        String::from_utf8(figure(&document(), "throughput-tcp-segment", FigureFormat::Svg).unwrap()).unwrap()
    );
}

#[test]
fn a_picture_has_300_dots_to_the_inch_and_letters() {
    let png = figure(&document(), "throughput-tcp-segment", FigureFormat::Png).unwrap();
    let picture = resvg::tiny_skia::Pixmap::decode_png(&png).unwrap();
    // Three and a half inches.
    assert_eq!(picture.width(), 1050);
    // Letters of the axis' title, which would be missing without a font.
    let is_dark = |x: u32, y: u32| picture.pixel(x, y).is_some_and(|dot| dot.red() < 0x60);
    let dark = (18..45)
        .flat_map(|x| (0..picture.height()).map(move |y| (x, y)))
        .filter(|(x, y)| is_dark(*x, *y))
        .count();
    assert!(dark > 100, "{dark} dark dots at the axis' title");
}

#[test]
fn a_pdf_is_one_page_of_outlines() {
    let pdf = figure(&document(), "throughput-tcp-segment", FigureFormat::Pdf).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF-1.7") && text.trim_end().ends_with("%%EOF"));
    assert_eq!(text.matches("/Type /Page\n").count(), 1);
    // No font is asked for, and curves are drawn.
    assert!(!text.contains("/Font ") && text.matches(" c\n").count() > 500);
}

#[test]
fn names_from_files_stay_text() {
    let mut page = document();
    page.factors.iter_mut().find(|factor| factor.name == "family").unwrap().labels[0] =
        "</text><script>&".to_owned();
    let svg = String::from_utf8(figure(&page, "throughput-tcp-segment", FigureFormat::Svg).unwrap()).unwrap();
    assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&amp;") && !svg.contains("<script"), "{svg}");
    // Whatever a study's levels are, the picture is made.
    assert!(figure(&page, "throughput-tcp-segment", FigureFormat::Png).is_some());
}
