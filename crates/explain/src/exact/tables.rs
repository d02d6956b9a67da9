//! Counts of addresses as rows of functions and stages.

use crate::costs::twins::paired;
use crate::exact::output::Phase;
use crate::exact::plan::{ExactPair, ExactPlan, ROUNDS};
use crate::sampling::stages::StageMap;
use crate::sampling::symbols::Symbols;
use stacklab_model::{ExactCell, ExactRow};
use std::collections::BTreeMap;

/// Rows that are not kernel functions, or have no stage.
const USER: &str = "programs in user space";
const WITHOUT_SYMBOL: &str = "kernel code without a symbol";
const WITHOUT_STAGE: &str = "other kernel functions";
/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// The cells of a plan, from the counts of its phases in order.
pub(super) fn cells(plan: &ExactPlan, phases: &[Phase], symbols: &Symbols) -> Vec<ExactCell> {
    let map = StageMap::new();
    plan.pairs
        .iter()
        .zip(phases.chunks(2 * ROUNDS))
        .map(|(pair, phases)| {
            let ExactPair { probe, arms } = *pair;
            let has_twins = arms[0].family != arms[1].family;
            let functions = functions(phases, symbols, &map, has_twins);
            let mut stages: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
            for row in &functions {
                let sums = stages.entry(row.stage.as_deref().unwrap_or(&row.name)).or_default();
                sums.iter_mut().zip(row.instructions).for_each(|(sum, count)| *sum += count);
            }
            let stages = stages.into_iter().map(|(name, instructions)| ExactRow {
                name: name.to_owned(),
                stage: None,
                instructions,
            });
            let rounds: Vec<[u64; 2]> =
                phases.chunks(2).map(|round| [round[0].total, round[1].total]).collect();
            ExactCell {
                probe,
                arms,
                messages: pair.messages() * ROUNDS as u64,
                total: [0, 1].map(|arm| rounds.iter().map(|round| round[arm]).sum()),
                rounds,
                stages: largest_first(stages.collect()),
                functions: largest_first(functions),
            }
        })
        .collect()
}

/// Counts by function. With twins, functions of both families that do the same are one row.
fn functions(phases: &[Phase], symbols: &Symbols, map: &StageMap, has_twins: bool) -> Vec<ExactRow> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut counts: Vec<[u64; 2]> = Vec::new();
    for (number, phase) in phases.iter().enumerate() {
        for (address, count) in &phase.counts {
            let name = match *address >= KERNEL {
                true => symbols.name_near(*address).unwrap_or(WITHOUT_SYMBOL),
                false => USER,
            };
            let place = *places.entry(name).or_insert(counts.len());
            if place == counts.len() {
                counts.push([0, 0]);
            }
            counts[place][number % 2] += count;
        }
    }
    let stage_of = |name: &str| match name {
        // Its row is a stage too.
        USER | WITHOUT_SYMBOL => None,
        name => {
            Some(map.stage(name).map_or(WITHOUT_STAGE, |stage| &map.stages[stage as usize].0.name).to_owned())
        }
    };
    let named = places.into_iter().map(|(name, place)| (name.to_owned(), place));
    let named: Vec<(String, Vec<usize>)> = match has_twins {
        true => paired(named.collect()),
        false => named.map(|(name, place)| (name, vec![place])).collect(),
    };
    let pair = |(name, places): (String, Vec<usize>)| {
        let stage = stage_of(name.split(" / ").next().unwrap_or_default());
        let sum = |arm: usize| places.iter().map(|place| counts[*place][arm]).sum();
        ExactRow { stage, instructions: [sum(0), sum(1)], name }
    };
    named.into_iter().map(pair).collect()
}

fn largest_first(mut rows: Vec<ExactRow>) -> Vec<ExactRow> {
    let of = |row: &ExactRow| row.instructions[0].abs_diff(row.instructions[1]);
    rows.sort_by(|a, b| of(b).cmp(&of(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "ffffffff81000000 T udp_sendmsg\nffffffff81001000 T udpv6_sendmsg.cold\n\
                        ffffffff81002000 t memset\nffffffff81003000 T ip_rcv_core\n";

    fn phase(counts: &[(u64, u64)]) -> Phase {
        Phase { counts: counts.to_vec(), total: counts.iter().map(|(_, count)| count).sum() }
    }

    fn cell() -> ExactCell {
        let ipv4 = [
            (0x5000, 2),
            (0xffff_ffff_8100_0000, 10),
            (0xffff_ffff_8100_0004, 10),
            (0xffff_ffff_8100_2000, 7),
        ];
        let ipv6 = [
            (0x5000, 2),
            (0xffff_ffff_8100_1000, 40),
            (0xffff_ffff_8100_2000, 6),
            (0xffff_ffff_8100_3000, 1),
            (0xffff_ffff_c000_0000, 5),
        ];
        let phases: Vec<Phase> = (0..ROUNDS).flat_map(|_| [phase(&ipv4), phase(&ipv6)]).collect();
        let plan: ExactPlan = "udp:ipv4@loopback/128*0+ipv6@loopback/128*0".parse().unwrap();
        cells(&plan, &phases, &Symbols::parse(TEXT)).remove(0)
    }

    #[test]
    fn twins_are_one_row_and_the_largest_difference_is_first() {
        let cell = cell();
        let rows: Vec<(&str, [u64; 2])> = cell
            .functions
            .iter()
            .map(|row| (row.name.as_str(), row.instructions.map(|n| n / ROUNDS as u64)))
            .collect();
        let expected = [
            ("udp_sendmsg / udpv6_sendmsg", [20, 40]),
            ("kernel code without a symbol", [0, 5]),
            ("ip_rcv_core", [0, 1]),
            ("memset", [7, 6]),
            ("programs in user space", [2, 2]),
        ];
        assert_eq!(rows, expected);
        let stages: Vec<&str> = cell.stages.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(
            stages,
            [
                "transport transmit",
                "kernel code without a symbol",
                "ip input",
                "other kernel functions",
                "programs in user space"
            ]
        );
    }

    #[test]
    fn rows_add_up_to_the_total() {
        let cell = cell();
        for rows in [&cell.stages, &cell.functions] {
            let sum = |family: usize| rows.iter().map(|row| row.instructions[family]).sum::<u64>();
            assert_eq!([sum(0), sum(1)], cell.total);
        }
        assert_eq!(cell.total, [29 * ROUNDS as u64, 54 * ROUNDS as u64]);
        assert_eq!(cell.rounds, [[29, 54]; ROUNDS]);
    }
}
