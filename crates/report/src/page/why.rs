//! Why arms differ, for the page: waterfalls and flame graphs.

use crate::page::document::{FlameView, WaterfallRow, WhyView};
use crate::stage_costs;
use stacklab_model::{Explanation, StackCost, StageCost, StageCosts, Why};
use std::collections::{BTreeMap, HashMap};

/// Functions in the flame graphs of a document: what is beyond has no room.
const MOST_FUNCTIONS: usize = 12_000;
/// Shares of the largest difference from which on a function's tone is 3, 2 or 1.
const TONES: [f64; 3] = [0.5, 0.125, 0.03125];

/// The views, in the explanations' order.
pub(super) fn views(all: &[Explanation]) -> Vec<WhyView> {
    let mut room = MOST_FUNCTIONS;
    all.iter().map(|explanation| view(explanation, &mut room)).collect()
}

fn view(explanation: &Explanation, room: &mut usize) -> WhyView {
    let mut view =
        WhyView { label: explanation.context_label(), arms: explanation.arm_labels(), ..WhyView::default() };
    match &explanation.why {
        Why::Unknown(reason) => view.sentence = format!("Not explained: {reason}."),
        Why::Costs(costs) => {
            view.sentence = stage_costs::answer(explanation, costs);
            view.health = stage_costs::health(&costs.health);
            view.remarks = costs.complaints();
            view.waterfall = waterfall(costs, &view.arms);
            let flame = flame(&costs.stacks);
            if flame.name.len() <= *room {
                *room -= flame.name.len();
                view.flame = Some(flame).filter(|flame| !flame.name.is_empty());
            } else {
                view.remarks.push("its call chains have no room here; the JSON report has them".to_owned());
            }
        }
    }
    view
}

fn waterfall(costs: &StageCosts, arms: &[String; 2]) -> Vec<WaterfallRow> {
    let whole = |arm: usize| {
        let to = rounded(costs.busy.ns[arm]);
        let shown = format!("{to:.0} ns");
        WaterfallRow {
            name: arms[arm].clone(),
            is_whole: true,
            from: 0.0,
            to,
            half: 0.0,
            differs: false,
            shown,
        }
    };
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

/// Hundredths of a nanosecond are enough.
fn rounded(ns: f64) -> f64 {
    (ns * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures::{costs, explanations};

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
    fn what_has_no_costs_says_why_and_what_has_no_room_says_where_it_is() {
        let all = views(&explanations());
        assert!(all[0].flame.is_some() && all[0].remarks.is_empty(), "{:?}", all[0]);
        assert_eq!(all[1].sentence, "Not explained: the time for it was over.");
        assert!(all[1].waterfall.is_empty() && all[1].flame.is_none());
        let full = view(&explanations()[0], &mut 3);
        assert!(full.flame.is_none() && full.remarks[0].contains("JSON"), "{full:?}");
    }
}
