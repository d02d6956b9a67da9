//! Prints, by simulation, which share of the claims of a report is false, and how often intervals cover.
//!
//! `bench/coverage` runs it. Every figure is seeded and therefore reproducible.

use stacklab_simulation::{families, fleets, interleaved, nulls, records, resumed, searches, stress};

const PARTS: [&str; 8] =
    ["families", "nulls", "stress", "resumed", "fleets", "records", "searches", "recorded"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let part = words.get(1).map(String::as_str);
    let count = match words.first().map_or(Ok(10_000), |count| count.parse()) {
        Ok(count) if part.is_none_or(|part| PARTS.contains(&part)) => count,
        _ => {
            stacklab_model::say!(
                "coverage: expected a number of campaigns, then one of: {}",
                PARTS.join(", ")
            );
            std::process::exit(2);
        }
    };
    println!("{count} simulated campaigns for each figure of one comparison, fewer of many");
    let is_asked = |of| part.is_none_or(|part| part == of);
    if is_asked("families") {
        families::print(count);
        families::print_ranges(count);
    }
    if is_asked("nulls") {
        nulls::print(count);
    }
    if is_asked("stress") {
        stress::print(count);
    }
    if is_asked("resumed") {
        resumed::print(count);
    }
    if is_asked("fleets") {
        fleets::print(count);
    }
    if is_asked("records") {
        records::print(count);
    }
    if is_asked("searches") {
        searches::print(count);
    }
    if is_asked("recorded") {
        interleaved::print(count);
    }
}
