//! Figures of the fixtures' campaign.

use super::drawing::{self, Anchor, Drawing, Item};
use super::{OutputFormat, chart, figure, figures, series};
use crate::page::Page;
use crate::page::tests::document;

#[test]
fn every_metric_and_place_has_its_figures() {
    let page = document();
    let names: Vec<String> = figures(&page).into_iter().map(|(name, _)| name).collect();
    for name in
        ["throughput-tcp-payload", "throughput-tcp-payload-difference", "rtt-udp-payload", "loss-udp-payload"]
    {
        assert!(names.iter().any(|known| known == name), "{name} is not in {names:?}");
    }
    for name in &names {
        for format in [OutputFormat::Svg, OutputFormat::Pdf] {
            assert!(figure(&page, name, format).is_some_and(|bytes| bytes.len() > 1000), "{name} {format:?}");
        }
    }
    assert_eq!(figure(&page, "throughput", OutputFormat::Svg), None);
}

#[test]
fn a_figure_has_arms_units_sizes_and_a_limit() {
    let svg =
        String::from_utf8(figure(&document(), "throughput-tcp-payload", OutputFormat::Svg).unwrap()).unwrap();
    for text in
        ["throughput, Mbit/s", "size, bytes", ">IPv4<", ">IPv6<", ">64<", ">1408<", "limit by headers"]
    {
        assert!(svg.contains(text), "{text}: {svg}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let rtt = String::from_utf8(figure(&document(), "rtt-udp-payload", OutputFormat::Svg).unwrap()).unwrap();
    assert!(rtt.contains(">RTT, us<"), "{rtt}");
    assert_eq!(
        svg,
        String::from_utf8(figure(&document(), "throughput-tcp-payload", OutputFormat::Svg).unwrap()).unwrap()
    );
}

/// Fails if a text extends beyond the picture, by the font's own widths.
fn everything_is_inside(plot: &series::Plot) {
    let drawing = chart::draw(plot);
    for item in &drawing.items {
        let Item::Text { x, y, size, anchor, turned, text, .. } = item else { continue };
        let width = drawing::width(text, *size);
        let before = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        // A turned text goes up.
        let [across, along] = match turned {
            false => [(x - before, x - before + width), (y - size, y + size / 4.0)],
            true => [(x - size, x + size / 4.0), (y + before - width, y + before)],
        };
        assert!(across.0 >= 0.0 && across.1 <= drawing.width, "{}: {text} {across:?}", plot.name);
        assert!(along.0 >= 0.0 && along.1 <= drawing.height, "{}: {text} {along:?}", plot.name);
    }
}

#[test]
fn every_text_is_inside_the_picture_with_long_names() {
    let mut page = document();
    for comparison in &mut page.comparisons {
        comparison.arms = "mechanism=6in4 against mechanism=native, flow label 1048575".to_owned();
    }
    for metric in &mut page.metrics {
        metric.label = format!("{} of all processors of the sending host", metric.label);
    }
    let family = page.factors.iter().position(|factor| factor.name == "family").unwrap();
    page.factors[family].alone[1] =
        "namespace_->_ssh:somebody@a-machine-with-a-long-name.example.org".to_owned();
    let plots = series::all(&page);
    assert!(plots.iter().any(|plot| plot.name.ends_with("difference")), "{plots:?}");
    plots.iter().for_each(everything_is_inside);
    for mut plot in plots {
        let count = plot.lines.iter().flat_map(|line| &line.points).map(|point| point.level + 1).max();
        let names = (0..count.unwrap_or(1)).map(|level| format!("linux-6.12 -> gvisor on a machine {level}"));
        (plot.names, plot.numbers) = (names.collect(), None);
        everything_is_inside(&plot);
    }
}

#[test]
fn limit_of_a_single_size_is_drawn_as_in_the_legend() {
    let mut plots = series::all(&document());
    let plot = plots.iter_mut().find(|plot| plot.name == "throughput-tcp-payload").unwrap();
    for line in &mut plot.lines {
        line.points.truncate(1);
    }
    assert!(plot.lines.iter().any(|line| line.points[0].limit.is_some()));
    let drawing = chart::draw(plot);
    let mut limits = 0;
    for item in &drawing.items {
        let Item::Path { stroke: Some(stroke), pieces, .. } = item else { continue };
        // A path of one point is no ink.
        let is_line = pieces.iter().all(|piece| piece.len() > 1);
        limits += usize::from(is_line && stroke.dash == chart::LIMIT_DASH);
    }
    // One in the plot, and one in the legend.
    assert_eq!(limits, 2);
}

#[test]
fn the_page_and_its_figures_have_the_same_colours() {
    let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../web/src/chart/palette.ts"));
    let light = page.split("light: [").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let colours: Vec<String> = chart::COLOURS.iter().map(|colour| format!("\"{colour}\"")).collect();
    assert_eq!(light.split(", ").collect::<Vec<_>>(), colours);
}

#[test]
fn candidate_beside_two_others_has_a_line_for_each() {
    let mut page = document();
    let family = page.factors.iter().position(|factor| factor.name == "family").unwrap();
    let before = find_plot(&page, "throughput-tcp-payload-difference").lines;
    page.factors[family].levels.push("other".to_owned());
    page.factors[family].alone.push("other".to_owned());
    let level = page.factors[family].levels.len() - 1;
    for mut comparison in page.comparisons.clone() {
        let mut cell = page.cells[comparison.baseline].clone();
        cell.levels[family] = level;
        page.cells.push(cell);
        comparison.baseline = page.cells.len() - 1;
        comparison.arms = "ipv6 against other".to_owned();
        page.comparisons.push(comparison);
    }
    let after = find_plot(&page, "throughput-tcp-payload-difference").lines;
    let labels: Vec<&str> = after.iter().map(|line| &line.label[..]).collect();
    assert_eq!(labels, ["IPv6 vs IPv4", "ipv6 against other"]);
    assert_eq!((&after[0].points, &after[1].points), (&before[0].points, &before[0].points));
}

fn find_plot(page: &Page, name: &str) -> series::Plot {
    series::all(page).into_iter().find(|plot| plot.name == name).unwrap()
}

#[test]
fn a_pdf_is_one_page_of_outlines() {
    let pdf = figure(&document(), "throughput-tcp-payload", OutputFormat::Pdf).unwrap();
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.starts_with("%PDF-1.7") && text.trim_end().ends_with("%%EOF"));
    assert_eq!(text.matches("/Type /Page\n").count(), 1);
    // No font is asked for, and curves are drawn.
    assert!(!text.contains("/Font ") && text.matches(" c\n").count() > 500);
}

#[test]
fn names_from_files_stay_text() {
    let mut page = document();
    page.factors.iter_mut().find(|factor| factor.name == "family").unwrap().alone[0] =
        "</text><script>&".to_owned();
    let svg = String::from_utf8(figure(&page, "throughput-tcp-payload", OutputFormat::Svg).unwrap()).unwrap();
    assert!(svg.contains("&lt;/text&gt;&lt;script&gt;&amp;") && !svg.contains("<script"), "{svg}");
    // Whatever a study's levels are, the file is written.
    assert!(figure(&page, "throughput-tcp-payload", OutputFormat::Pdf).is_some());
}

#[test]
fn lines_name_the_settings_that_their_cells_have() {
    let mut page = document();
    let mtu = crate::page::FactorView {
        name: "mtu".to_owned(),
        label: "MTU".to_owned(),
        levels: vec![String::new(), "1280".to_owned()],
        labels: vec!["as it is".to_owned(), "1280".to_owned()],
        alone: vec!["MTU as it is".to_owned(), "MTU 1280".to_owned()],
        numbers: None,
    };
    page.factors.push(mtu);
    for (place, cell) in page.cells.iter_mut().enumerate() {
        cell.levels.push(place % 2);
    }
    let lines = find_plot(&page, "throughput-tcp-payload").lines;
    let labels: Vec<&str> = lines.iter().map(|line| &line.label[..]).collect();
    assert_eq!(labels, ["IPv4", "IPv6, MTU 1280"]);
}

#[test]
fn an_axis_has_no_figures_that_cannot_be() {
    let mut page = document();
    for estimate in &mut page.estimates {
        estimate.low = estimate.mean.map(|mean| -mean);
    }
    assert_eq!(find_lowest(&page), 0.0);
    page.metrics.iter_mut().for_each(|metric| metric.can_be_negative = true);
    assert!(find_lowest(&page) < 0.0);
}

/// The lowest end of an interval of round trips.
fn find_lowest(page: &Page) -> f64 {
    let plot = find_plot(page, "rtt-udp-payload");
    let points = plot.lines.iter().flat_map(|line| &line.points);
    points.filter_map(|point| Some(point.interval?.0)).fold(9.9, f64::min)
}

#[test]
fn difference_has_its_margin_and_better_direction() {
    let page = document();
    let drawing = chart::draw(&find_plot(&page, "throughput-tcp-payload-difference"));
    let rate = join_texts(&drawing);
    assert!(rate.contains("higher is better") && rate.contains("margin, -1.96 to +2"), "{rate}");
    // In the plot and in the legend.
    assert_eq!(count_bands(&drawing), 2);
    assert!(rate.contains("size, bytes (log scale)"), "{rate}");
    let drawing = chart::draw(&find_plot(&page, "rtt-udp-payload"));
    let delay = join_texts(&drawing);
    assert!(delay.contains("lower is better") && !delay.contains("margin"), "{delay}");
    assert_eq!(count_bands(&drawing), 0);
}

fn join_texts(drawing: &Drawing) -> String {
    let mut texts: Vec<&str> = Vec::new();
    for item in &drawing.items {
        if let Item::Text { text, .. } = item {
            texts.push(text);
        }
    }
    texts.join("|")
}

fn count_bands(drawing: &Drawing) -> usize {
    let items = drawing.items.iter();
    items.filter(|item| matches!(item, Item::Path { fill: Some(chart::BAND), .. })).count()
}
