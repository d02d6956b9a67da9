//! What was measured as one HTML page that works offline and has no scripts: summary, a timeline of each network, and
//! the tables.
//!
//! | file | contents |
//! |---|---|
//! | `outcome` | the run that is drawn, and what came of it |
//! | `lanes` | what happened in a run |
//! | `scale` | the time axis, with shortened waits |
//! | `drawing` | the timeline as SVG |
//! | `timeline.css`, `page.css`, `legend.html` | colours, the rest of the page's style, and what the marks mean |

mod drawing;
mod lanes;
mod outcome;
mod scale;

use crate::compare::ClientComparison;
use crate::measurement::Measurement;
use crate::page::drawing::{LEFT, RIGHT, draw_timeline};
use crate::page::lanes::{list_lanes, list_times};
use crate::page::outcome::{choose_median_run, describe_outcome};
use crate::page::scale::{MAX_WAIT_MS, Scale};
use crate::print::{describe_command, list_comparison, list_summary, list_tables};
use crate::run::Run;
use crate::runs::{ScenarioRuns, runs_of};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use stacklab_model::{capitalize, count};
use stacklab_report::{Block, document_html, escape_markup};

const STYLE: &str = concat!("\n", include_str!("timeline.css"), include_str!("page.css"));
const LEGEND: &str = include_str!("legend.html");

/// The measurement as a page.
pub fn to_html(measurement: &Measurement) -> String {
    let title = describe_command(measurement);
    let mut body = document_html(&[Block::Title(title.clone())]);
    body += &document_html(&list_summary(measurement));
    body += &begin_timelines();
    for scenario in &measurement.scenarios {
        if let Some(run) = choose_median_run(&scenario.runs) {
            let client = Client { role: None, run, of: scenario.runs.len() };
            body += &write_network(scenario, &[client]);
        }
    }
    body += &document_html(&[Block::Heading("All runs".to_owned())]);
    body += &document_html(&list_tables(measurement));
    write_page(&title, &body)
}

/// A comparison as a page: the timelines of both clients below each other.
pub fn comparison_to_html(comparison: &ClientComparison) -> String {
    let ClientComparison { baseline, candidate, .. } = comparison;
    let title = format!("{} against {}", describe_command(candidate), describe_command(baseline));
    let mut body = document_html(&[Block::Title(title.clone())]);
    body += &document_html(&list_comparison(comparison));
    body += &begin_timelines();
    for scenario in &baseline.scenarios {
        let mut clients = Vec::new();
        for (role, runs) in
            [("baseline", &scenario.runs[..]), ("candidate", runs_of(&candidate.scenarios, &scenario.name))]
        {
            if let Some(run) = choose_median_run(runs) {
                clients.push(Client { role: Some(role), run, of: runs.len() });
            }
        }
        body += &write_network(scenario, &clients);
    }
    for (role, measurement) in [("Baseline", baseline), ("Candidate", candidate)] {
        let heading = format!("{role}: {}", describe_command(measurement));
        body += &document_html(&[Block::Heading(heading)]);
        body += &document_html(&list_summary(measurement));
        body += &document_html(&list_tables(measurement));
    }
    write_page(&title, &body)
}

/// The heading of the timelines, and what their marks mean.
fn begin_timelines() -> String {
    let text = format!(
        "Of each network, the run whose first byte is the median of all runs. Waits of more than {:.0} s in which nothing \
         happens are shortened.",
        MAX_WAIT_MS / 1e3
    );
    let blocks = [Block::Heading("What happens in each network".to_owned()), Block::Text(text)];
    format!("{}{LEGEND}", document_html(&blocks))
}

/// The run that stands for a client in a network.
struct Client<'a> {
    /// In a comparison.
    role: Option<&'static str>,
    run: &'a Run,
    /// All runs.
    of: usize,
}

/// The timelines of a network, which share their axis.
fn write_network(scenario: &ScenarioRuns, clients: &[Client<'_>]) -> String {
    let mut drawn = Vec::new();
    let mut times = Vec::new();
    for client in clients {
        let lanes = list_lanes(client.run);
        times.extend(list_times(&lanes));
        drawn.push(lanes);
    }
    let scale = Scale::new(&times, LEFT, RIGHT);
    let mut section = format!("<section id=\"{}\">\n", escape_markup(&scenario.name));
    for (client, lanes) in clients.iter().zip(&drawn) {
        let outcome = format!("{}: {}", scenario.label, describe_outcome(client.run));
        let title = match client.role {
            None => capitalize(&outcome),
            Some(role) => format!("{}, {role}", capitalize(&outcome)),
        };
        section += &format!(
            "<h3>{}</h3>\n<figure><div class=\"scroll\" tabindex=\"0\">\n{}</div>\n<figcaption>{}</figcaption></figure>\n",
            escape_markup(&title),
            draw_timeline(&title, lanes, &scale),
            escape_markup(&format!("{}, one of {}", client.run.host, count(client.of, "run")))
        );
    }
    section + "</section>\n"
}

/// The page around its content. The policy allows its style and nothing else.
fn write_page(title: &str, body: &str) -> String {
    let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape_markup(title)
    )
}

#[cfg(test)]
mod tests;
