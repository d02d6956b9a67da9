//! A replication as text.

use crate::Reference;
use crate::replication::Replication;
use crate::replication::counts::{Answers, CellPrecision, Precision};
use crate::replication::judge::{Judged, JudgedPart};
use crate::tables::Limit;
use stacklab_model::{Effect, Interval, Metric, Scale, count};
use stacklab_report::{Block, Table, Width, text};

/// Parts of a study that are not replicated here, listed before measuring.
pub fn limits(own: &Reference, width: Width) -> String {
    text(&limit_blocks(&own.limits), width)
}

fn limit_blocks(limits: &[Limit]) -> Vec<Block> {
    let mut lines = Vec::new();
    for Limit { original, stand_in, needs, .. } in limits {
        lines.push(format!("{original}. Here: {stand_in}. To have it: {needs}"));
    }
    vec![Block::Heading("Differences from the study's testbed".to_owned()), Block::List(lines)]
}

/// Findings with their verdicts, the published figures, and the time it took.
pub fn render(replication: &Replication, width: Width) -> String {
    let mut blocks = vec![
        Block::Title(format!("{}, its findings tested here", replication.study)),
        Block::Facts(vec![
            ("measured", replication.measured.clone()),
            ("testbed", replication.testbed.clone()),
            (
                "systems",
                format!("{} at both ends, which is not one of the study's systems", replication.stand_in),
            ),
            ("runs", format!("{} valid, {:.1} minutes", replication.runs, replication.minutes)),
        ]),
    ];
    for finding in &replication.findings {
        blocks.extend(finding_blocks(finding));
    }
    if !replication.cuts.is_empty() {
        blocks.push(Block::Heading("Messages that do not fit a packet".to_owned()));
        blocks.push(Block::List(replication.cuts.iter().map(|cut| cut.text()).collect()));
    }
    if let Some(answers) = &replication.answers {
        blocks.push(Block::Heading("Time to an answer".to_owned()));
        blocks.push(Block::List(answer_lines(answers, replication.precision.as_ref())));
        blocks
            .extend(replication.precision.as_ref().map(|precision| Block::Table(precision_table(precision))));
    }
    blocks.push(Block::Heading("Verdicts".to_owned()));
    blocks.push(Block::Table(verdicts(&replication.findings)));
    text(&blocks, width) + &text(&limit_blocks(&replication.limits), width)
}

fn verdicts(findings: &[Judged]) -> Table {
    let column = |cell: &dyn Fn(&Judged) -> String| findings.iter().map(cell).collect::<Vec<String>>();
    let mut table = Table::default();
    table.push("finding", false, column(&|finding| finding.id.clone()));
    table.push("", false, column(&|finding| finding.outcome.short_name().to_owned()));
    table.push(
        "here, % [95 %]",
        true,
        column(&|finding| match &finding.parts[..] {
            [part] => {
                part.effect.as_ref().map_or_else(|| "-".to_owned(), |effect| percent(effect, finding.metric))
            }
            [] => "-".to_owned(),
            parts => format!("{} parts", parts.len()),
        }),
    );
    table.push("what the study says", false, column(&|finding| finding.statement.clone()));
    table
}

fn finding_blocks(finding: &Judged) -> Vec<Block> {
    let Judged { id, statement, location, scope, metric, outcome, because, instead, .. } = finding;
    let mut lines = Vec::new();
    match &finding.parts[..] {
        [] => {}
        [part] => lines.extend(here(part, *metric)),
        parts => lines.extend(parts.iter().flat_map(|part| {
            let figures = here(part, *metric);
            let figures = figures.unwrap_or_else(|| part.because.clone());
            [format!("{}: {}; {figures}", part.part, part.outcome.name())]
        })),
    }
    const MAX_SHOWN: usize = 6;
    for pair in finding.published.iter().take(MAX_SHOWN) {
        let what = &pair.what;
        let a = &pair.a;
        let b = &pair.b;
        let unit = &pair.unit;
        lines.push(format!("published: {a} against {b} {unit} ({what})"));
    }
    match finding.published.len() {
        0 => lines.push("published: no figures, only the words".to_owned()),
        n if n > MAX_SHOWN => lines.push(format!("and {} more: stacklab reference show", n - MAX_SHOWN)),
        _ => {}
    }
    let instead = if instead.is_empty() { String::new() } else { format!(" ({instead})") };
    vec![
        Block::Heading(format!("{id}: {statement}")),
        Block::Text(format!("{location}; {metric}; {scope}")),
        Block::Text(format!("{}{instead}: {because}", outcome.name().to_uppercase())),
        Block::List(lines),
    ]
}

fn here(part: &JudgedPart, metric: Metric) -> Option<String> {
    let effect = part.effect.as_ref()?;
    let figures = percent(effect, metric);
    let blocks = count(effect.pairs, "block");
    Some(match effect.scale {
        Scale::Ratio => {
            let margin = (1e4 * part.margin).round() / 100.0;
            format!("here: {figures} %, 95 % interval, {blocks}; margin {margin} %")
        }
        Scale::Difference => {
            let unit = metric.unit().symbol();
            format!("here: {figures}, 95 % interval, {blocks}; margin {} {unit}", part.margin)
        }
    })
}

/// Formats a ratio as a difference in per cent, and a difference in its unit.
fn percent(effect: &Effect, metric: Metric) -> String {
    let Interval { low, high } = effect.interval95;
    match effect.scale {
        Scale::Ratio => {
            let [estimate, low, high] = [effect.estimate, low, high].map(|ratio| 100.0 * (ratio - 1.0));
            format!("{estimate:+.2} [{low:+.2}, {high:+.2}]")
        }
        Scale::Difference => {
            format!("{:+.4} [{low:+.4}, {high:+.4}] {}", effect.estimate, metric.unit().symbol())
        }
    }
}

fn answer_lines(answers: &Answers, precision: Option<&Precision>) -> Vec<String> {
    let Answers { asked, answered, blocks, runs, minutes, published_runs, fixed_runs, fixed_minutes } =
        answers;
    let mut lines = vec![format!(
        "{answered} of {} were answered (interval narrow enough, or verdict decided) by {} in {}, {minutes:.1} minutes; the \
         study's {published_runs} runs of everything would be {fixed_runs} runs and {fixed_minutes:.1} minutes of the same \
         length",
        count(*asked, "comparison"),
        count(*runs, "run"),
        count(*blocks, "block")
    )];
    let Some(precision) = precision else { return lines };
    let Precision { cells, reached, runs, minutes, most_runs, fixed_runs, fixed_minutes, .. } = precision;
    lines.push(format!(
        "the study's precision (half of a mean's 95 % interval, from its standard deviations over {published_runs} runs) was \
         reached for {reached} of {cells} throughputs, looked at after each run"
    ));
    if *reached == 0 {
        return lines;
    }
    lines.push(format!(
        "these took {runs} runs, at most {most_runs} of one cell, and {minutes:.1} minutes; {published_runs} runs of every cell \
         would be {fixed_runs} runs and {fixed_minutes:.1} minutes, or {:.0} minutes with a million packets a run",
        precision.fixed_minutes_of_a_million_packets
    ));
    lines
}

fn precision_table(precision: &Precision) -> Table {
    let column =
        |cell: &dyn Fn(&CellPrecision) -> String| precision.each.iter().map(cell).collect::<Vec<_>>();
    let mut table = Table::default();
    table.push("throughput", false, column(&|cell| cell.cell.clone()));
    table.push(
        "published ±, Mbit/s",
        true,
        column(&|cell| format_half_width(Some(cell.published_half_width))),
    );
    table.push("here ±, Mbit/s", true, column(&|cell| format_half_width(cell.half_width)));
    table.push(
        "runs to the published",
        true,
        column(&|cell| cell.runs.map_or_else(|| "not reached".to_owned(), |runs| runs.to_string())),
    );
    table
}

fn format_half_width(half_width: Option<f64>) -> String {
    half_width.map_or_else(|| "-".to_owned(), |half_width| format!("{half_width:.3}"))
}
