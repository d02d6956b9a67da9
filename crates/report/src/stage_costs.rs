//! The costs of two arms by stage of the network stack, as `stacklab explain` prints them.

use crate::rendering::columns::{self, Column};
use crate::rendering::csv_cells::Cells;
use crate::rendering::document::{Block, Table, plain};
use crate::rendering::format::OutputFormat;
use crate::rendering::json::versioned_json;
use crate::rendering::width::Width;
use crate::rendering::{markdown, text};
use serde::Serialize;
use stacklab_model::{Explanation, Health, StageCost, StageCosts, Why};

/// Version of the JSON.
pub const STAGE_COSTS_FORMAT_VERSION: u32 = 2;
/// Stages that the answer names.
const NAMED: usize = 4;

/// What the tables' columns and rows are.
const LEGEND: &str = "CPU time of both hosts per message, without the cost of sampling. ± is half of the 95 % interval of the \
     difference, by trials (Student's t); * marks p < 0.05, adjusted for all stages (Holm). Threads: CPU time of the arm's threads; outside them: work of the stack in kernel threads and in interrupts of other threads. Busy is both, and the sum of all lines above `threads`.";

/// Renders explanations; `functions` adds the functions that differ most.
pub fn stage_costs(all: &[Explanation], format: OutputFormat, functions: bool, width: Width) -> String {
    let title = || vec![Block::Title("CPU time by stage of the network stack".to_owned())];
    match format {
        OutputFormat::Text => text::render(&[title(), blocks(all, functions)].concat(), width),
        OutputFormat::Markdown => markdown::render(&[title(), blocks(all, functions)].concat()),
        OutputFormat::Csv | OutputFormat::RawCsv => csv(all, functions, format.cells()),
        OutputFormat::Json => versioned_json(STAGE_COSTS_FORMAT_VERSION, &Content::of(all)),
        _ => format.unsupported(),
    }
}

/// The JSON.
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
                blocks.push(Block::Table(table(
                    costs,
                    &arms,
                    "stage",
                    costs.stages.iter().chain(costs.sums()),
                )));
                if functions {
                    blocks.push(Block::Table(table(costs, &arms, "function", costs.functions.iter())));
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

fn table<'a>(
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
    table
}

/// The answer in a sentence: by how much the arms differ, and in which stages.
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

/// A row of the CSV.
pub(crate) struct Row<'a> {
    costs: &'a StageCosts,
    kind: &'static str,
    cost: &'a StageCost,
}

fn csv(all: &[Explanation], functions: bool, cells: Cells) -> String {
    let rows = all.iter().filter_map(Explanation::costs).flat_map(|costs| {
        let kind = |kind: &'static str| move |cost| Row { costs, kind, cost };
        let listed = costs.functions.iter().filter(move |_| functions);
        costs
            .stages
            .iter()
            .map(kind("stage"))
            .chain(costs.sums().into_iter().map(kind("whole")))
            .chain(listed.map(kind("function")))
    });
    columns::render(&csv_columns(), rows, cells)
}

/// The CSV's columns.
pub(crate) fn csv_columns<'a>() -> Vec<Column<Row<'a>>> {
    vec![
        Column::new("cell", "what both arms have in common", |row: &Row<'a>| row.costs.cell.clone()),
        Column::new("baseline", "level of the baseline", |row: &Row<'a>| row.costs.arms[0].clone()),
        Column::new("candidate", "level of the candidate", |row: &Row<'a>| row.costs.arms[1].clone()),
        Column::new(
            "kind",
            "`stage`, `function`, or `whole`: rows that are not stages, and the sums",
            |row: &Row<'a>| row.kind.to_owned(),
        ),
        Column::new("name", "the stage or function", |row: &Row<'a>| row.cost.name.clone()),
        Column::new("baseline_ns", "nanoseconds of CPU time of both hosts a message", |row: &Row<'a>| {
            row.cost.ns[0].to_string()
        }),
        Column::new("candidate_ns", "the same", |row: &Row<'a>| row.cost.ns[1].to_string()),
        Column::new("difference_ns", "candidate minus baseline", |row: &Row<'a>| {
            row.cost.difference_ns.to_string()
        }),
        Column::new("error_ns", "standard error of the difference, by trials", |row: &Row<'a>| {
            row.cost.error_ns.to_string()
        }),
        Column::new("half_width_ns", "half of the difference's 95 % interval", |row: &Row<'a>| {
            row.costs.half_width_ns(row.cost).to_string()
        }),
        Column::new(
            "adjusted_p",
            "p of no difference, adjusted (Holm); empty for `whole`",
            |row: &Row<'a>| columns::figure(row.cost.adjusted_p),
        ),
    ]
}
