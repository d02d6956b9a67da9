//! The costs of two arms by stage of the network stack, as `stacklab explain` prints them.

use crate::exact;
use crate::program_counts::{self, pair_blocks};
use crate::rendering::column::Column;
use crate::rendering::csv;
use crate::rendering::document::{Block, Table, Width, plain};
use crate::rendering::format::{OutputFormat, versioned_json};
use crate::rendering::text::render;
use serde::Serialize;
use stacklab_model::{
    ExactCell, ExactCounts, Explanation, Health, ProgramCounts, ProgramEnd, StageCost, StageCosts, Why, count,
};

const STAGE_COSTS_FORMAT_VERSION: u32 = 2;
const NAMED: usize = 4;

const LEGEND: &str = "CPU time of both hosts per message, without the cost of sampling. ± is half of the 95 % interval of the \
     difference, by trials (Student's t); * marks p < 0.05, adjusted for all stages (Holm). Threads: CPU time of the arm's threads; outside them: work of the stack in kernel threads and in interrupts of other threads. Busy is both, and the sum of all lines above `threads`.";

/// Renders explanations; `functions` adds the functions that differ most.
pub fn stage_costs(all: &[Explanation], format: OutputFormat, functions: bool, width: Width) -> String {
    match format {
        OutputFormat::Csv | OutputFormat::RawCsv => csv(all, functions, format),
        OutputFormat::Json => json(all),
        _ => {
            let title = vec![Block::Title(choose_title(all).to_owned())];
            render(&[title, blocks(all, functions)].concat(), format, width)
        }
    }
}

fn choose_title(all: &[Explanation]) -> &'static str {
    if all.is_empty() || all.iter().any(|one| one.why != Why::NotSampled) {
        return "CPU time by stage of the network stack";
    }
    if all.iter().all(|one| one.programs.is_some()) {
        return program_counts::TITLE;
    }
    "Instructions by stage of the network stack"
}

fn json(all: &[Explanation]) -> String {
    #[derive(Serialize)]
    struct Content<'a> {
        explained: Vec<&'a StageCosts>,
        unexplained: Vec<Unexplained<'a>>,
        counted: Vec<Counted<'a>>,
        programs: Vec<Programs<'a>>,
    }
    #[derive(Serialize)]
    struct Unexplained<'a> {
        cell: String,
        arms: [String; 2],
        reason: &'a str,
    }
    #[derive(Serialize)]
    struct Counted<'a> {
        cell: String,
        arms: [String; 2],
        qemu: &'a str,
        kernel: &'a str,
        counts: &'a ExactCell,
    }
    #[derive(Serialize)]
    struct Programs<'a> {
        cell: String,
        arms: [String; 2],
        counts: &'a ProgramCounts,
    }
    let mut content =
        Content { explained: Vec::new(), unexplained: Vec::new(), counted: Vec::new(), programs: Vec::new() };
    for explanation in all {
        let cell = explanation.context();
        let arms = explanation.arms();
        if let Some((ExactCounts { qemu, kernel, .. }, counts)) = find_exact_counts(explanation) {
            content.counted.push(Counted { cell: cell.clone(), arms: arms.clone(), qemu, kernel, counts });
        }
        if let Some(counts) = &explanation.programs {
            content.programs.push(Programs { cell: cell.clone(), arms: arms.clone(), counts });
        }
        match &explanation.why {
            Why::Costs(costs) => content.explained.push(costs),
            Why::Unknown(reason) => content.unexplained.push(Unexplained { cell, arms, reason }),
            Why::NotSampled => {}
        }
    }
    versioned_json(STAGE_COSTS_FORMAT_VERSION, &content)
}

/// Of a report: without those of which instructions alone were counted, which have a table of their pairs.
pub(crate) fn blocks_of_samples(all: &[Explanation]) -> Vec<Block> {
    let mut sampled = all.to_vec();
    sampled.retain(|explanation| explanation.why != Why::NotSampled);
    blocks(&sampled, false)
}

/// The answer, a table and what says whether it can be believed, for each explanation.
pub(crate) fn blocks(all: &[Explanation], functions: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    for explanation in all {
        let arms = explanation.arm_labels();
        let what = if explanation.why == Why::NotSampled { "Instructions" } else { "Why" };
        let heading = format!("{what}: {}: {} vs {}", explanation.context_label(), arms[1], arms[0]);
        blocks.push(Block::Heading(plain(&heading)));
        match &explanation.why {
            Why::Unknown(reason) => blocks.push(Block::Text(plain(&format!("Not explained: {reason}.")))),
            Why::NotSampled => blocks.extend(count_blocks(explanation, functions)),
            Why::Costs(costs) => {
                blocks.push(Block::Text(answer(explanation, costs)));
                let exact = find_exact_counts(explanation).map(|(_, cell)| cell);
                let stages = costs.stages.iter().chain(costs.sums());
                blocks.push(Block::Table(table(exact, costs, &arms, "stage", stages)));
                if functions {
                    blocks.push(Block::Table(table(exact, costs, &arms, "function", costs.functions.iter())));
                }
                blocks.extend(count_blocks(explanation, functions));
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

/// The instructions of the same pair, if they were counted.
fn count_blocks(explanation: &Explanation, functions: bool) -> Vec<Block> {
    if let Some(counts) = &explanation.programs {
        return pair_blocks(counts, functions);
    }
    let Some((counts, cell)) = find_exact_counts(explanation) else { return Vec::new() };
    let machine = Block::Text(plain(&exact::machine(counts)));
    [vec![machine], exact::cell_blocks(cell, functions)].concat()
}

pub(crate) fn find_exact_counts(explanation: &Explanation) -> Option<(&ExactCounts, &ExactCell)> {
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
    let mut table = Table::default();
    table.push(what, false, rows.iter().map(|row| plain(&row.name)).collect());
    for (arm, level) in arms.iter().enumerate() {
        let column = rows.iter().map(|row| format!("{:.0}", row.ns[arm])).collect();
        table.push(format!("{}, ns", plain(level)), true, column);
    }
    table.push("difference", true, rows.iter().map(|row| format!("{:+.0}", row.difference_ns)).collect());
    table.push("±", true, rows.iter().map(|row| format!("{:.0}", costs.half_width_ns(row))).collect());
    table.push("", false, rows.iter().map(|row| mark_difference(row)).collect());
    if let Some(cell) = exact {
        table.push("instructions", true, rows.iter().map(|row| instructions(cell, &row.name)).collect());
    }
    table
}

fn mark_difference(row: &StageCost) -> String {
    if row.differs() { "*".to_owned() } else { String::new() }
}

/// The difference in instructions of a stage or function; of `busy`, of the whole.
fn instructions(cell: &ExactCell, name: &str) -> String {
    if name == "busy" {
        return format!("{:+.0}", cell.difference(cell.total));
    }
    match cell.stages.iter().chain(&cell.functions).find(|row| row.name == name) {
        Some(row) => format!("{:+.0}", cell.difference(row.instructions)),
        None => String::new(),
    }
}

pub(crate) fn answer(explanation: &Explanation, costs: &StageCosts) -> String {
    let [baseline, candidate] = explanation.arm_labels();
    let busy = &costs.busy;
    let mut differing = Vec::new();
    for row in costs.stages.iter().filter(|row| row.differs()).take(NAMED) {
        let half_width = costs.half_width_ns(row);
        differing.push(format!("{} {:+.0} ± {half_width:.0}", row.name, row.difference_ns));
    }
    let why = match differing.as_slice() {
        [] => "no stage differs by more than chance".to_owned(),
        parts => parts.join(", "),
    };
    if differing.is_empty() && !busy.differs() && busy.difference_ns.abs() <= costs.half_width_ns(busy) {
        return plain(&format!(
            "{}: no difference seen between {candidate} and {baseline} ({:+.0} ± {:.0} ns of CPU time per message).",
            explanation.context_label(),
            busy.difference_ns,
            costs.half_width_ns(busy)
        ));
    }
    if differing.is_empty() && !busy.differs() {
        return plain(&format!(
            "{}: {:+.0} ± {:.0} ns of CPU time per message between {candidate} and {baseline}, which is not sure among so \
             many figures: {why}.",
            explanation.context_label(),
            busy.difference_ns,
            costs.half_width_ns(busy)
        ));
    }
    let more = if busy.difference_ns < 0.0 { "less" } else { "more" };
    plain(&format!(
        "{}: {candidate} takes {:.0} ± {:.0} ns of CPU time {more} than {baseline} per message: {why}.",
        explanation.context_label(),
        busy.difference_ns.abs(),
        costs.half_width_ns(busy)
    ))
}

pub(crate) fn health(health: &Health) -> String {
    let Health { samples, event, messages, lock_ratio, lost, throttled, .. } = health;
    let covers = match health.coverage {
        Some(share) => format!("samples cover {:.1} % of the busy time", 100.0 * share),
        None => "the receiver has no separate CPU time here, so `threads` is by samples".to_owned(),
    };
    let trials =
        if health.trials > 0 { format!(" in {}", count(health.trials, "trial")) } else { String::new() };
    let [overhead, unmapped, other_load] =
        [health.overhead, health.unmapped, health.other_load].map(|share| 100.0 * share);
    format!(
        "{} ({event}) of {}{trials}; lock ratio {lock_ratio:.2} (1: no aliasing), {covers}, \
         sampling lengthened it by {overhead:.1} %, {unmapped:.1} % of it is of no stage, other programs had \
         {other_load:.1} % of all that was not idle; {} lost, {} throttled.",
        count(*samples, "sample"),
        count(*messages, "message"),
        count(*lost, "sample"),
        count(*throttled, "time")
    )
}

/// A row of the CSV: a stage, a sum or a function of two arms, in time or in instructions.
pub(crate) struct CostRow<'a> {
    cell: String,
    arms: [String; 2],
    kind: &'static str,
    name: &'a str,
    cost: Option<(&'a StageCosts, &'a StageCost)>,
    /// Instructions per message.
    instructions: Option<[f64; 2]>,
}

fn csv(all: &[Explanation], functions: bool, format: OutputFormat) -> String {
    let mut rows = Vec::new();
    for explanation in all {
        if let Some(costs) = explanation.costs() {
            push_costs(&mut rows, costs, functions);
        }
        if let Some((_, cell)) = find_exact_counts(explanation) {
            push_instructions(&mut rows, explanation, cell, functions);
        }
        if let Some(counts) = &explanation.programs {
            push_program_instructions(&mut rows, explanation, counts, functions);
        }
    }
    csv::render(&columns(), rows.into_iter(), format)
}

fn push_costs<'a>(rows: &mut Vec<CostRow<'a>>, costs: &'a StageCosts, functions: bool) {
    let mut kinds: Vec<(&'static str, &'a StageCost)> = Vec::new();
    kinds.extend(costs.stages.iter().map(|cost| ("stage", cost)));
    kinds.extend(costs.sums().into_iter().map(|cost| ("whole", cost)));
    if functions {
        kinds.extend(costs.functions.iter().map(|cost| ("function", cost)));
    }
    for (kind, cost) in kinds {
        rows.push(CostRow {
            cell: costs.cell.clone(),
            arms: costs.arms.clone(),
            kind,
            name: &cost.name,
            cost: Some((costs, cost)),
            instructions: None,
        });
    }
}

fn push_instructions<'a>(
    rows: &mut Vec<CostRow<'a>>,
    explanation: &Explanation,
    cell: &'a ExactCell,
    functions: bool,
) {
    let mut kinds: Vec<(&'static str, &'a str, [u64; 2])> = Vec::new();
    kinds.extend(cell.stages.iter().map(|row| ("instructions", &*row.name, row.instructions)));
    kinds.push(("instructions", "sum", cell.total));
    if functions {
        kinds
            .extend(cell.functions.iter().map(|row| ("function instructions", &*row.name, row.instructions)));
    }
    for (kind, name, counts) in kinds {
        rows.push(make_instruction_row(explanation, kind, name, counts.map(|count| cell.per_message(count))));
    }
}

fn push_program_instructions<'a>(
    rows: &mut Vec<CostRow<'a>>,
    explanation: &Explanation,
    counts: &'a ProgramCounts,
    functions: bool,
) {
    let [baseline, candidate] = counts.cells.as_slice() else { return };
    let mut found: Vec<(&'static str, &'a str, [f64; 2])> = Vec::new();
    for end in ProgramEnd::ALL {
        let whole = [baseline, candidate].map(|cell| counts.per_request(cell.end(*end)));
        found.push(("instructions", end.name(), whole));
        if !functions {
            continue;
        }
        for (arm, cell) in [baseline, candidate].into_iter().enumerate() {
            for function in &cell.end(*end).functions {
                let mut pair = [0.0; 2];
                pair[arm] = counts.function_per_request(cell.end(*end), function);
                found.push(("function instructions", &function.name, pair));
            }
        }
    }
    for (kind, name, instructions) in found {
        rows.push(make_instruction_row(explanation, kind, name, instructions));
    }
}

/// A row of both arms' instructions per message or request.
fn make_instruction_row<'a>(
    explanation: &Explanation,
    kind: &'static str,
    name: &'a str,
    instructions: [f64; 2],
) -> CostRow<'a> {
    CostRow {
        cell: explanation.context(),
        arms: explanation.arms(),
        kind,
        name,
        cost: None,
        instructions: Some(instructions),
    }
}

pub(crate) fn columns<'a>() -> Vec<Column<'a, CostRow<'a>>> {
    vec![
        Column::text("cell", "what both arms have in common", |row: &CostRow| Some(&row.cell)),
        Column::text("baseline", "level of the baseline", |row: &CostRow| Some(&row.arms[0])),
        Column::text("candidate", "level of the candidate", |row: &CostRow| Some(&row.arms[1])),
        Column::text(
            "kind",
            "`stage`, `function`, or `whole`: rows that are not stages, and the sums; `instructions` of a stage or the \
             `sum`, or `function instructions`, if they were counted; of programs those of `client` and `server`, and a row \
             for each arm's functions",
            |row: &CostRow| Some(row.kind),
        ),
        Column::text("name", "the stage or function", |row: &CostRow| Some(row.name)),
        Column::figure("baseline_ns", "nanoseconds of CPU time of both hosts a message", |row: &CostRow| {
            Some(row.cost?.1.ns[0])
        }),
        Column::figure("candidate_ns", "the same", |row: &CostRow| Some(row.cost?.1.ns[1])),
        Column::figure("difference_ns", "candidate minus baseline", |row: &CostRow| {
            Some(row.cost?.1.difference_ns)
        }),
        Column::figure("error_ns", "standard error of the difference, by trials", |row: &CostRow| {
            Some(row.cost?.1.error_ns)
        }),
        Column::figure("half_width_ns", "half of the difference's 95 % interval", |row: &CostRow| {
            let (costs, cost) = row.cost?;
            Some(costs.half_width_ns(cost))
        }),
        Column::figure(
            "adjusted_p",
            "p of no difference, adjusted (Holm); empty for `whole`",
            |row: &CostRow| row.cost?.1.adjusted_p,
        ),
        Column::figure(
            "baseline_instructions",
            "instructions per message, exact; of programs per request, the mean of the rounds",
            |row: &CostRow| Some(row.instructions?[0]),
        ),
        Column::figure("candidate_instructions", "the same", |row: &CostRow| Some(row.instructions?[1])),
    ]
}
