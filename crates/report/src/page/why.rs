//! Why arms differ, for the page: waterfalls and flame graphs.

use crate::findings::program_instructions;
use crate::page::document::{FlameView, PAGE_FORMAT_VERSION, Page, WaterfallRow, WhyView, facts};
use crate::{exact, program_counts, stage_costs};
use stacklab_model::{ExactCell, ExactCounts, Explanation, ProgramCounts, StackCost, StageCosts, Why};
use std::collections::{BTreeMap, HashMap};

/// Functions in the flame graphs of a document: what is beyond has no room.
const MAX_FUNCTIONS: usize = 12_000;
/// Functions of programs in a waterfall.
const MAX_STEPS: usize = 12;
/// Shares of the largest difference from which on a function's tone is 3, 2 or 1.
const TONES: [f64; 3] = [0.5, 0.125, 0.03125];

pub(super) fn views(all: &[Explanation]) -> Vec<WhyView> {
    let mut room = MAX_FUNCTIONS;
    let mut views = Vec::new();
    for explanation in all {
        if explanation.why != Why::NotSampled {
            views.push(view(explanation, &mut room));
        }
        if let Some(counts) = &explanation.exact {
            views.extend(exact_views(counts, &mut room));
        }
        if let Some(counts) = &explanation.programs {
            views.push(program_view(explanation, counts));
        }
    }
    views
}

/// The document of exact counts alone.
pub fn exact_page(counts: &ExactCounts) -> Page {
    Page {
        format: PAGE_FORMAT_VERSION,
        title: exact::TITLE.to_owned(),
        finished: true,
        facts: facts([("Kernel", format!("Linux {}", counts.kernel)), ("QEMU", counts.qemu.clone())]),
        legend: exact::LEGEND.to_owned(),
        why: exact_views(counts, &mut { MAX_FUNCTIONS }),
        ..Page::default()
    }
}

fn exact_views(counts: &ExactCounts, room: &mut usize) -> Vec<WhyView> {
    counts.cells.iter().map(|cell| exact_view(counts, cell, room)).collect()
}

fn exact_view(counts: &ExactCounts, cell: &ExactCell, room: &mut usize) -> WhyView {
    let arms = cell.levels();
    let steps = cell.stages.iter().map(|row| {
        let difference = cell.difference(row.instructions);
        step(&row.name, difference, 0.0, false, format!("{difference:+.1}"))
    });
    let costs = cell.total.map(|total| cell.per_message(total));
    let mut waterfall = waterfall(&arms, costs, "instructions", steps);
    waterfall.retain(|row| row.is_whole || (row.to - row.from).abs() >= exact::MIN_SHOWN);
    let mut view = WhyView {
        label: format!("instructions, {}", cell.context()),
        sentence: exact::answer(cell),
        health: exact::machine(counts),
        waterfall,
        unit: "instructions".to_owned(),
        arms,
        ..WhyView::default()
    };
    let mut stacks = Vec::new();
    for row in &cell.functions {
        stacks.push(StackCost {
            functions: row.stage.iter().chain([&row.name]).cloned().collect(),
            samples: row.instructions,
            ns: row.instructions.map(|count| cell.per_message(count)),
        });
    }
    add_flame(&mut view, &stacks, room);
    view
}

/// A waterfall of the functions in which two programs differ most: client and server together.
fn program_view(explanation: &Explanation, counts: &ProgramCounts) -> WhyView {
    let arms = explanation.arm_labels();
    let mut steps = Vec::new();
    let mut rest = 0.0;
    for (place, (name, difference)) in program_counts::list_differences(counts).into_iter().enumerate() {
        if place < MAX_STEPS {
            steps.push(step(&name, difference, 0.0, false, format!("{difference:+.1}")));
        } else {
            rest += difference;
        }
    }
    steps.push(step("all other functions", rest, 0.0, false, format!("{rest:+.1}")));
    let mut costs = [0.0; 2];
    for (cost, cell) in costs.iter_mut().zip(&counts.cells) {
        *cost = counts.per_request(&cell.client) + counts.per_request(&cell.server);
    }
    let mut waterfall = waterfall(&arms, costs, "instructions", steps.into_iter());
    waterfall.retain(|row| row.is_whole || (row.to - row.from).abs() >= exact::MIN_SHOWN);
    WhyView {
        label: format!("instructions per request, {}", explanation.context_label()),
        sentence: program_counts::answer(counts, [0, 1]),
        health: program_instructions::describe_emulator(counts),
        waterfall,
        unit: "instructions".to_owned(),
        arms,
        ..WhyView::default()
    }
}

fn add_flame(view: &mut WhyView, stacks: &[StackCost], room: &mut usize) {
    let flame = flame(stacks);
    if flame.name.len() <= *room {
        *room -= flame.name.len();
        view.flame = Some(flame).filter(|flame| !flame.name.is_empty());
    } else {
        view.remarks.push("its call chains have no room here; the JSON report has them".to_owned());
    }
}

fn view(explanation: &Explanation, room: &mut usize) -> WhyView {
    let mut view = WhyView {
        label: explanation.context_label(),
        arms: explanation.arm_labels(),
        unit: "ns".to_owned(),
        ..WhyView::default()
    };
    match &explanation.why {
        Why::Unknown(reason) => view.sentence = format!("Not explained: {reason}."),
        Why::NotSampled => {}
        Why::Costs(costs) => {
            view.sentence = stage_costs::answer(explanation, costs);
            view.health = stage_costs::health(&costs.health);
            view.remarks = costs.complaints();
            view.waterfall = sampled_waterfall(costs, &view.arms);
            add_flame(&mut view, &costs.stacks, room);
        }
    }
    view
}

fn sampled_waterfall(costs: &StageCosts, arms: &[String; 2]) -> Vec<WaterfallRow> {
    let parts = costs.stages.iter().chain([&costs.unmapped, &costs.not_sampled]);
    let steps = parts.map(|stage| {
        let difference = stage.difference_ns;
        let half = costs.half_width_ns(stage);
        let shown = format!("{difference:+.0} ± {half:.0}");
        step(&stage.name, difference, round_cost(half), stage.differs(), shown)
    });
    waterfall(arms, costs.busy.ns, "ns", steps)
}

/// A step from no cost to its difference, for [`waterfall`].
fn step(name: &str, difference: f64, half: f64, differs: bool, shown: String) -> WaterfallRow {
    WaterfallRow { name: name.to_owned(), is_whole: false, from: 0.0, to: difference, half, differs, shown }
}

/// The steps, one after the other, from one arm's cost to the other's.
fn waterfall(
    arms: &[String; 2],
    costs: [f64; 2],
    unit: &str,
    steps: impl Iterator<Item = WaterfallRow>,
) -> Vec<WaterfallRow> {
    let mut rows = vec![fill_whole(&arms[0], costs[0], unit)];
    let mut at = costs[0];
    for step in steps {
        let from = at;
        at += step.to;
        rows.push(WaterfallRow { from: round_cost(from), to: round_cost(at), ..step });
    }
    rows.push(fill_whole(&arms[1], costs[1], unit));
    rows
}

/// The row of an arm's whole cost.
fn fill_whole(arm: &str, cost: f64, unit: &str) -> WaterfallRow {
    // Of the cost itself, as in the report: rounded twice, it may be another number.
    let shown = format!("{cost:.0} {unit}");
    WaterfallRow { is_whole: true, to: round_cost(cost), ..step(arm, 0.0, 0.0, false, shown) }
}

#[derive(Default)]
struct FlameNode<'a> {
    ns: [f64; 2],
    calls: BTreeMap<&'a str, FlameNode<'a>>,
}

fn flame(stacks: &[StackCost]) -> FlameView {
    let mut root = FlameNode::default();
    for stack in stacks {
        let mut node = &mut root;
        for function in &stack.functions {
            node = node.calls.entry(function).or_default();
            (0..2).for_each(|arm| node.ns[arm] += stack.ns[arm]);
        }
    }
    let mut flame = FlameView::default();
    let mut known = HashMap::new();
    // Not by recursion: the record decides the depth of chains. The last one is the next.
    let mut open: Vec<(usize, &str, &FlameNode)> = in_turn(&root, 0);
    while let Some((depth, name, node)) = open.pop() {
        let number = *known.entry(name).or_insert_with(|| {
            flame.names.push(name.to_owned());
            flame.names.len() - 1
        });
        flame.name.push(number);
        flame.depth.push(depth);
        flame.baseline.push(round_cost(node.ns[0]));
        flame.candidate.push(round_cost(node.ns[1]));
        open.extend(in_turn(node, depth + 1));
    }
    let differences: Vec<f64> = flame
        .baseline
        .iter()
        .zip(&flame.candidate)
        .map(|(baseline, candidate)| candidate - baseline)
        .collect();
    let largest = differences.iter().fold(0.0, |most: f64, difference| most.max(difference.abs()));
    flame.tone = differences.into_iter().map(|difference| choose_tone(difference, largest)).collect();
    flame
}

fn choose_tone(difference: f64, largest: f64) -> i8 {
    let share = if largest > 0.0 { difference.abs() / largest } else { 0.0 };
    let steps = TONES.iter().filter(|least| share >= **least).count() as i8;
    if difference < 0.0 { -steps } else { steps }
}

/// What a function calls, the last one first.
fn in_turn<'a, 'b>(node: &'b FlameNode<'a>, depth: usize) -> Vec<(usize, &'a str, &'b FlameNode<'a>)> {
    node.calls.iter().rev().map(|(name, called)| (depth, *name, called)).collect()
}

/// Hundredths of a nanosecond or an instruction are enough.
fn round_cost(cost: f64) -> f64 {
    (cost * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{costs, exact_counts, explanations};

    #[test]
    fn waterfall_joins_both_arms_costs_without_a_gap() {
        let rows = sampled_waterfall(&costs(), &["IPv4".to_owned(), "IPv6".to_owned()]);
        assert_eq!((rows[0].to, rows[rows.len() - 1].to), (900.0, 1022.0));
        for pair in rows.windows(2).take(rows.len() - 2) {
            assert!((pair[0].to - pair[1].from).abs() < 1e-9, "{pair:?}");
        }
        let last = &rows[rows.len() - 2];
        assert!((last.to - 1022.0).abs() < 1e-9, "{last:?}");
        let route = &rows[1];
        assert_eq!(
            (route.name.as_str(), route.differs, route.shown.as_str()),
            ("route lookup", true, "+74 ± 12")
        );
    }

    #[test]
    fn flame_graph_has_each_function_before_its_calls() {
        let flame = flame(&costs().stacks);
        let named: Vec<(usize, &str)> = flame
            .depth
            .iter()
            .zip(&flame.name)
            .map(|(depth, name)| (*depth, flame.names[*name].as_str()))
            .collect();
        assert_eq!(
            named,
            [
                (0, "entry"),
                (1, "udp_sendmsg"),
                (2, "fib_table_lookup"),
                (1, "udpv6_sendmsg"),
                (2, "fib6_table_lookup"),
                (0, "user (stacklab)")
            ]
        );
        assert_eq!((flame.baseline[0], flame.candidate[0]), (326.0, 400.0));
        assert_eq!(flame.tone, [2, -3, -3, 3, 3, 1]);
    }

    #[test]
    fn exact_counts_follow_the_samples_of_the_same_pair() {
        let mut all = explanations();
        all[0].exact = Some(Box::new(exact_counts()));
        let views = views(&all);
        assert_eq!(
            views.iter().map(|view| view.unit.as_str()).collect::<Vec<_>>(),
            ["ns", "instructions", "ns"]
        );
        let counted = &views[1];
        let shown: Vec<(&str, &str)> =
            counted.waterfall.iter().map(|row| (row.name.as_str(), row.shown.as_str())).collect();
        let expected =
            [("IPv4", "3000 instructions"), ("ip output", "+1000.0"), ("IPv6", "4000 instructions")];
        assert_eq!(shown, expected);
        let flame = counted.flame.as_ref().unwrap();
        assert_eq!((flame.names.len(), flame.depth.as_slice()), (2, &[0, 1][..]), "{flame:?}");
        let page = exact_page(&exact_counts());
        assert_eq!((page.why.len(), page.metrics.len()), (1, 0));
    }

    #[test]
    fn missing_costs_say_why_and_missing_room_says_where() {
        let all = views(&explanations());
        assert!(all[0].flame.is_some() && all[0].remarks.is_empty(), "{:?}", all[0]);
        assert_eq!(all[1].sentence, "Not explained: the time for it was over.");
        assert!(all[1].waterfall.is_empty() && all[1].flame.is_none());
        let full = view(&explanations()[0], &mut 3);
        assert!(full.flame.is_none() && full.remarks[0].contains("JSON"), "{full:?}");
    }
}
