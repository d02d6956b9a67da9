//! The page of runs that are known.

use super::*;
use crate::compare::compare_delays;
use crate::measurement::ReferenceCheck;
use crate::run::samples::run;
use crate::summary::summarize;
use stacklab_model::Family::{Ipv4, Ipv6};

fn measure(command: &[&str], second_attempt_ms: f64) -> Measurement {
    let mut dropped = run(&[(Ipv6, 1.0), (Ipv4, second_attempt_ms)], Some(Ipv4));
    dropped.attempts[1].established_ms = Some(second_attempt_ms + 1.0);
    let mut scenarios = Vec::new();
    for (name, label, run) in [
        ("both", "both families work", run(&[(Ipv6, 1.0)], Some(Ipv6))),
        ("ipv6-drop", "IPv6 is dropped", dropped),
    ] {
        scenarios.push(ScenarioRuns { name: name.to_owned(), label: label.to_owned(), runs: vec![run] });
    }
    Measurement {
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        seed: 1,
        limit_s: 10.0,
        reference: ReferenceCheck { set_ms: 250.0, median_ms: Some(250.1), measured_ms: vec![250.1] },
        summary: summarize(&scenarios),
        scenarios,
    }
}

#[test]
fn a_page_has_a_timeline_of_each_network() {
    let page = to_html(&measure(&["curl", "http://{host}/"], 253.0));
    assert_eq!(page.matches("<svg xmlns=").count(), 2);
    assert!(page.contains("<h3>IPv6 is dropped: IPv4 after 252 ms</h3>"), "{page}");
    assert!(page.contains("<h3>Both families work: IPv6, first byte after 300 ms</h3>"), "{page}");
    // The tables of the text, and nothing from elsewhere.
    assert!(page.contains("<th scope=\"row\">RFC 8305, 5</th>"), "{page}");
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("href="), "{page}");
}

#[test]
fn marks_stand_at_their_times() {
    let page = to_html(&measure(&["curl", "{host}"], 253.0));
    let timeline = page.split("<section id=\"ipv6-drop\">").nth(1).unwrap();
    // 305 ms are on 744 px from 200 px on: the SYN at 253 ms is at 817.2 px.
    assert!(timeline.contains("<path class=\"sent\" d=\"M817.2 "), "{timeline}");
    assert!(timeline.contains("<rect class=\"bar\" x=\"817.2\""), "{timeline}");
    // IPv6 has no answer: from 1 ms to the end.
    assert!(
        timeline.contains("<rect class=\"bar open\" x=\"202.4\" y=\"37.0\" width=\"741.6\""),
        "{timeline}"
    );
    assert!(timeline.contains(">1.0 ms, no answer</text>"), "{timeline}");
}

#[test]
fn a_wait_of_minutes_is_shortened() {
    let page = to_html(&measure(&["wget", "{host}"], 133_501.0));
    let timeline = page.split("<section id=\"ipv6-drop\">").nth(1).unwrap();
    // From the last moment before it, at 305 ms.
    assert!(timeline.contains("class=\"cut\"") && timeline.contains(">133.2 s</text>"), "{timeline}");
}

#[test]
fn a_hostile_command_stays_text() {
    let mut hostile = measure(&["<script>alert(1)</script>", "\"'&{host}"], 253.0);
    hostile.scenarios[0].runs[0].host = "</figcaption><script>".to_owned();
    for page in [to_html(&hostile), comparison_to_html(&compare(hostile.clone(), hostile))] {
        assert!(!page.contains("<script"), "{page}");
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &quot;&#39;&amp;{host}"), "{page}");
        assert!(page.contains("&lt;/figcaption&gt;&lt;script&gt;"), "{page}");
    }
}

fn compare(baseline: Measurement, candidate: Measurement) -> ClientComparison {
    let delays = compare_delays(&baseline, &candidate);
    ClientComparison { baseline, candidate, delays }
}

#[test]
fn two_clients_share_the_axis_of_a_network() {
    let page =
        comparison_to_html(&compare(measure(&["old", "{host}"], 101.0), measure(&["new", "{host}"], 253.0)));
    assert_eq!(page.matches("<svg xmlns=").count(), 4);
    assert!(page.contains("<h3>IPv6 is dropped: IPv4 after 100 ms, baseline</h3>"), "{page}");
    assert!(page.contains("<h3>IPv6 is dropped: IPv4 after 252 ms, candidate</h3>"), "{page}");
    assert!(page.contains("<h2>Candidate: new {host}</h2>"), "{page}");
    let timelines = page.split("<section id=\"ipv6-drop\">").nth(1).unwrap();
    let timelines = timelines.split("</section>").next().unwrap();
    assert!(timelines.contains("d=\"M446.4 ") && timelines.contains("d=\"M817.2 "), "{timelines}");
}
