//! The costs of two arms by stage of the network stack, as `stacklab explain` prints them.

use crate::exact;
use crate::rendering::csv::{self, Field, field};
use crate::rendering::document::{Block, Table, Width, plain};
use crate::rendering::format::{OutputFormat, render, versioned_json};
use serde::Serialize;
use stacklab_model::{ExactCell, ExactCounts, Explanation, Health, StageCost, StageCosts, Why};

const STAGE_COSTS_FORMAT_VERSION: u32 = 2;
const NAMED: usize = 4;

const LEGEND: &str = "CPU time of both hosts per message, without the cost of sampling. ± is half of the 95 % interval of the \
     difference, by trials (Student's t); * marks p < 0.05, adjusted for all stages (Holm). Threads: CPU time of the arm's threads; outside them: work of the stack in kernel threads and in interrupts of other threads. Busy is both, and the sum of all lines above `threads`.";

/// Renders explanations; `functions` adds the functions that differ most.
pub fn stage_costs(all: &[Explanation], format: OutputFormat, functions: bool, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv(all, functions, format),
        OutputFormat::Json => versioned_json(STAGE_COSTS_FORMAT_VERSION, &Content::of(all)),
        _ => {
            let title = vec![Block::Title("CPU time by stage of the network stack".to_owned())];
            render(&[title, blocks(all, functions)].concat(), format, width)
        }
    }
}

#[derive(Serialize)]
struct Content<'a> {
    explained: Vec<&'a StageCosts>,
    unexplained: Vec<Unexplained<'a>>,
}

#[derive(Serialize)]
struct Unexplained<'a> {
    cell: String,
    arms: [String; 2],
    reason: &'a str,
}

impl<'a> Content<'a> {
    fn of(all: &'a [Explanation]) -> Self {
        let unexplained = all.iter().filter_map(|explanation| match &explanation.why {
            Why::Costs(_) => None,
            Why::Unknown(reason) => {
                Some(Unexplained { cell: explanation.context(), arms: explanation.arms(), reason })
            }
        });
        Content {
            explained: all.iter().filter_map(Explanation::costs).collect(),
            unexplained: unexplained.collect(),
        }
    }
}

/// The answer, a table and what says whether it can be believed, for each explanation.
pub(crate) fn blocks(all: &[Explanation], functions: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for explanation in all {
        let arms = explanation.arm_labels();
        let heading = format!("Why: {}: {} vs {}", explanation.context_label(), arms[1], arms[0]);
        blocks.push(Block::Heading(plain(&heading)));
        match &explanation.why {
            Why::Unknown(reason) => blocks.push(Block::Text(plain(&format!("Not explained: {reason}.")))),
            Why::Costs(costs) => {
                blocks.push(Block::Text(answer(explanation, costs)));
                let exact = counted(explanation).map(|(_, cell)| cell);
                blocks.push(Block::Table(table(
                    exact,
                    costs,
                    &arms,
                    "stage",
                    costs.stages.iter().chain(costs.sums()),
                )));
                if functions {
                    blocks.push(Block::Table(table(exact, costs, &arms, "function", costs.functions.iter())));
                }
                if let Some((counts, cell)) = counted(explanation) {
                    blocks.push(Block::Text(plain(&exact::machine(counts))));
                    blocks.extend(exact::cell_blocks(cell, functions));
                }
                blocks.push(Block::Text(health(&costs.health)));
                blocks.push(Block::List(costs.complaints().iter().map(|text| plain(text)).collect()));
            }
        }
    }
    if all.iter().any(|explanation| explanation.costs().is_some()) {
        blocks.push(Block::Text(LEGEND.to_owned()));
    }
    blocks
}

/// The exact counts of the same pair, and their cell.
fn counted(explanation: &Explanation) -> Option<(&ExactCounts, &ExactCell)> {
    let counts = explanation.exact.as_deref()?;
    Some((counts, counts.cells.first()?))
}

/// Sampled nanoseconds, and beside them counted instructions of the stages and functions that have the same name.
fn table<'a>(
    exact: Option<&ExactCell>,
    costs: &StageCosts,
    arms: &[String; 2],
    what: &str,
    rows: impl Iterator<Item = &'a StageCost>,
) -> Table {
    let rows: Vec<&StageCost> = rows.collect();
    let column = |of: &dyn Fn(&StageCost) -> String| rows.iter().map(|row| of(row)).collect::<Vec<_>>();
    let mut table = Table::default();
    table.push(what, false, column(&|row| plain(&row.name)));
    for (arm, level) in arms.iter().enumerate() {
        table.push(format!("{}, ns", plain(level)), true, column(&|row| format!("{:.0}", row.ns[arm])));
    }
    table.push("difference", true, column(&|row| format!("{:+.0}", row.difference_ns)));
    table.push("±", true, column(&|row| format!("{:.0}", costs.half_width_ns(row))));
    table.push("", false, column(&|row| if row.differs() { "*".to_owned() } else { String::new() }));
    if let Some(cell) = exact {
        table.push("instructions", true, column(&|row| instructions(cell, &row.name)));
    }
    table
}

/// The difference in instructions of a stage or function; of `busy`, of the whole.
fn instructions(cell: &ExactCell, name: &str) -> String {
    let rows = cell.stages.iter().chain(&cell.functions);
    let of = |name: &str| rows.clone().find(|row| row.name == name).map(|row| row.instructions);
    let counts = if name == "busy" { Some(cell.total) } else { of(name) };
    counts.map_or_else(String::new, |counts| format!("{:+.0}", cell.difference(counts)))
}

pub(crate) fn answer(explanation: &Explanation, costs: &StageCosts) -> String {
    let [baseline, candidate] = explanation.arm_labels();
    let busy = &costs.busy;
    let more = |ns: f64| if ns < 0.0 { "less" } else { "more" };
    let part =
        |row: &StageCost| format!("{} {:+.0} ± {:.0}", row.name, row.difference_ns, costs.half_width_ns(row));
    let differing: Vec<String> =
        costs.stages.iter().filter(|row| row.differs()).take(NAMED).map(part).collect();
    let sentence = format!(
        "{}: {candidate} takes {:.0} ± {:.0} ns of CPU time {} than {baseline} per message",
        explanation.context_label(),
        busy.difference_ns.abs(),
        costs.half_width_ns(busy),
        more(busy.difference_ns)
    );
    let why = match differing.as_slice() {
        [] => "no stage differs by more than chance".to_owned(),
        parts => parts.join(", "),
    };
    plain(&format!("{sentence}: {why}."))
}

/// What says whether the samples describe the stack.
pub(crate) fn health(health: &Health) -> String {
    let covers = match health.coverage {
        Some(share) => format!("samples cover {:.1} % of the busy time", 100.0 * share),
        None => "the receiver has no separate CPU time here, so `threads` is by samples".to_owned(),
    };
    let trials = match health.trials {
        0 => String::new(),
        trials => format!(" in {trials} trials"),
    };
    format!(
        "{} samples ({}) of {} messages{trials}; lock ratio {:.2} (1: no aliasing), {covers}, sampling \
         lengthened it by {:.1} %, {:.1} % of it is of no stage, other programs had {:.1} % of all that was not idle; {} samples lost, {} times \
         throttled.",
        health.samples,
        health.event,
        health.messages,
        health.lock_ratio,
        100.0 * health.overhead,
        100.0 * health.unmapped,
        100.0 * health.other_load,
        health.lost,
        health.throttled
    )
}

fn csv(all: &[Explanation], functions: bool, format: OutputFormat) -> String {
    let rows = all.iter().filter_map(Explanation::costs).flat_map(|costs| {
        let row = |kind: &'static str| move |cost| fields(Some((costs, kind, cost)));
        let listed = costs.functions.iter().filter(move |_| functions);
        let stages = costs.stages.iter().map(row("stage"));
        stages.chain(costs.sums().into_iter().map(row("whole"))).chain(listed.map(row("function")))
    });
    csv::render(&fields(None), rows, format)
}

/// The row of a cost, which is of a kind; without one, the columns.
pub(crate) fn fields(row: Option<(&StageCosts, &str, &StageCost)>) -> Vec<Field> {
    let costs = row.map(|(costs, ..)| costs);
    let cost = row.map(|(.., cost)| cost);
    let kind = row.map(|(_, kind, _)| kind);
    vec![
        field("cell", "what both arms have in common", costs.map(|costs| costs.cell.as_str())),
        field("baseline", "level of the baseline", costs.map(|costs| costs.arms[0].as_str())),
        field("candidate", "level of the candidate", costs.map(|costs| costs.arms[1].as_str())),
        field("kind", "`stage`, `function`, or `whole`: rows that are not stages, and the sums", kind),
        field("name", "the stage or function", cost.map(|cost| cost.name.as_str())),
        field("baseline_ns", "nanoseconds of CPU time of both hosts a message", cost.map(|cost| cost.ns[0])),
        field("candidate_ns", "the same", cost.map(|cost| cost.ns[1])),
        field("difference_ns", "candidate minus baseline", cost.map(|cost| cost.difference_ns)),
        field("error_ns", "standard error of the difference, by trials", cost.map(|cost| cost.error_ns)),
        field(
            "half_width_ns",
            "half of the difference's 95 % interval",
            row.map(|(costs, _, cost)| costs.half_width_ns(cost)),
        ),
        field(
            "adjusted_p",
            "p of no difference, adjusted (Holm); empty for `whole`",
            cost.and_then(|cost| cost.adjusted_p),
        ),
    ]
}
