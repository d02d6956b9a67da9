//! Why arms differ, for the page: waterfalls and flame graphs.

use crate::page::document::{FlameView, PAGE_FORMAT_VERSION, Page, WaterfallRow, WhyView};
use crate::{exact, stage_costs};
use stacklab_model::{ExactCell, ExactCounts, ExactRow, Explanation, StackCost, StageCost, StageCosts, Why};
use std::collections::{BTreeMap, HashMap};

/// Functions in the flame graphs of a document: what is beyond has no room.
const MOST_FUNCTIONS: usize = 12_000;
/// Shares of the largest difference from which on a function's tone is 3, 2 or 1.
const TONES: [f64; 3] = [0.5, 0.125, 0.03125];

/// The views, in the explanations' order.
pub(super) fn views(all: &[Explanation]) -> Vec<WhyView> {
    let mut room = MOST_FUNCTIONS;
    all.iter()
        .flat_map(|explanation| {
            let sampled = view(explanation, &mut room);
            let counted = explanation.exact.iter().flat_map(|counts| exact_views(counts, &mut room));
            [sampled].into_iter().chain(counted).collect::<Vec<_>>()
        })
        .collect()
}

/// The document of exact counts alone.
pub fn exact_page(counts: &ExactCounts) -> Page {
    let mut room = MOST_FUNCTIONS;
    let why = exact_views(counts, &mut room);
    Page {
        format: PAGE_FORMAT_VERSION,
        title: exact::TITLE.to_owned(),
        finished: true,
        facts: super::facts([("Kernel", format!("Linux {}", counts.kernel)), ("QEMU", counts.qemu.clone())]),
        legend: exact::LEGEND.to_owned(),
        why,
        ..Page::default()
    }
}

/// The views of counts: waterfalls, and functions below their stages.
fn exact_views(counts: &ExactCounts, room: &mut usize) -> Vec<WhyView> {
    counts.cells.iter().map(|cell| exact_view(counts, cell, room)).collect()
}

fn exact_view(counts: &ExactCounts, cell: &ExactCell, room: &mut usize) -> WhyView {
    let arms = cell.levels();
    let mut at = cell.per_message(cell.total[0]);
    let steps = cell.stages.iter().map(|row| {
        let difference = cell.difference(row.instructions);
        let from = at;
        at += difference;
        WaterfallRow {
            name: row.name.clone(),
            is_whole: false,
            from: rounded(from),
            to: rounded(at),
            half: 0.0,
            differs: false,
            shown: format!("{difference:+.1}"),
        }
    });
    let steps: Vec<WaterfallRow> = steps.filter(|row| (row.to - row.from).abs() >= exact::LEAST).collect();
    let whole = |arm: usize| whole_row(&arms[arm], cell.per_message(cell.total[arm]), "instructions");
    let mut view = WhyView {
        label: format!("instructions, {}", cell.context()),
        sentence: exact::answer(cell),
        health: exact::machine(counts),
        waterfall: [vec![whole(0)], steps, vec![whole(1)]].concat(),
        unit: "instructions".to_owned(),
        arms,
        ..WhyView::default()
    };
    let stack = |row: &ExactRow| StackCost {
        functions: row.stage.iter().chain([&row.name]).cloned().collect(),
        samples: row.instructions,
        ns: row.instructions.map(|count| cell.per_message(count)),
    };
    add_flame(&mut view, &cell.functions.iter().map(stack).collect::<Vec<_>>(), room);
    view
}

/// Adds a flame graph, if there is room for it.
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
        Why::Costs(costs) => {
            view.sentence = stage_costs::answer(explanation, costs);
            view.health = stage_costs::health(&costs.health);
            view.remarks = costs.complaints();
            view.waterfall = waterfall(costs, &view.arms);
            add_flame(&mut view, &costs.stacks, room);
        }
    }
    view
}

fn waterfall(costs: &StageCosts, arms: &[String; 2]) -> Vec<WaterfallRow> {
    let whole = |arm: usize| whole_row(&arms[arm], costs.busy.ns[arm], "ns");
    let mut at = costs.busy.ns[0];
    let parts = costs.stages.iter().chain([&costs.unmapped, &costs.not_sampled]);
    let mut step = |stage: &StageCost| {
        let from = at;
        at += stage.difference_ns;
        WaterfallRow {
            name: stage.name.clone(),
            is_whole: false,
            from: rounded(from),
            to: rounded(at),
            half: rounded(costs.half_width_ns(stage)),
            differs: stage.differs(),
            shown: format!("{:+.0} ± {:.0}", stage.difference_ns, costs.half_width_ns(stage)),
        }
    };
    let steps: Vec<WaterfallRow> = parts.map(&mut step).collect();
    [vec![whole(0)], steps, vec![whole(1)]].concat()
}

fn whole_row(arm: &str, cost: f64, unit: &str) -> WaterfallRow {
    let to = rounded(cost);
    let (name, shown) = (arm.to_owned(), format!("{to:.0} {unit}"));
    WaterfallRow { name, is_whole: true, from: 0.0, to, half: 0.0, differs: false, shown }
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
        flame.baseline.push(rounded(node.ns[0]));
        flame.candidate.push(rounded(node.ns[1]));
        open.extend(in_turn(node, depth + 1));
    }
    let differences =
        || flame.baseline.iter().zip(&flame.candidate).map(|(baseline, candidate)| candidate - baseline);
    let largest = differences().fold(0.0, |most: f64, difference| most.max(difference.abs()));
    let tone = |difference: f64| -> i8 {
        let share = if largest > 0.0 { difference.abs() / largest } else { 0.0 };
        let steps = TONES.iter().filter(|least| share >= **least).count() as i8;
        if difference < 0.0 { -steps } else { steps }
    };
    flame.tone = differences().map(tone).collect();
    flame
}

/// What a function calls, the last one first.
fn in_turn<'a, 'b>(node: &'b FlameNode<'a>, depth: usize) -> Vec<(usize, &'a str, &'b FlameNode<'a>)> {
    node.calls.iter().rev().map(|(name, called)| (depth, *name, called)).collect()
}

/// Hundredths of a nanosecond or an instruction are enough.
fn rounded(cost: f64) -> f64 {
    (cost * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{costs, exact_counts, explanations};

    #[test]
    fn a_waterfall_goes_from_one_arms_cost_to_the_others_without_a_gap() {
        let rows = waterfall(&costs(), &["IPv4".to_owned(), "IPv6".to_owned()]);
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
    fn a_flame_graph_has_each_function_before_its_calls_with_all_that_these_cost() {
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
    fn exact_counts_are_a_view_after_the_samples_of_the_same_pair() {
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
    fn what_has_no_costs_says_why_and_what_has_no_room_says_where_it_is() {
        let all = views(&explanations());
        assert!(all[0].flame.is_some() && all[0].remarks.is_empty(), "{:?}", all[0]);
        assert_eq!(all[1].sentence, "Not explained: the time for it was over.");
        assert!(all[1].waterfall.is_empty() && all[1].flame.is_none());
        let full = view(&explanations()[0], &mut 3);
        assert!(full.flame.is_none() && full.remarks[0].contains("JSON"), "{full:?}");
    }
}
