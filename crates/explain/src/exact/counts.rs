//! Parsers of the two files that an emulated machine leaves: the plugin's counts and the guest's report. Untrusted
//! input: the guest determines both. And the tables of functions and stages that they give.

use crate::costs::functions::pair_twins;
use crate::exact::inside::{END, GuestReport};
use crate::exact::plan::{ExactPlan, ROUNDS};
use crate::sampling::symbols::{StageMap, Symbols};
use stacklab_model::{ExactCell, ExactPair, ExactRow};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Read};
use std::path::Path;

/// Longest line of either file, bytes; a report of ticks is the longest.
const MAX_LINE_LENGTH: u64 = 64 << 10;
/// Most instructions with a count in a phase, and most functions: a kernel has fewer.
const MAX_ADDRESSES: usize = 1 << 20;
const MAX_FUNCTIONS: usize = 1 << 20;

/// Instructions between a mark and the reading of the clock beside it, at both ends of a phase.
const BESIDE_MARKS: u64 = 64;

/// The error of a report that is missing or incomplete.
pub(super) const NONE: &str = "the guest ended without a report";

/// The counts of a phase: addresses, ascending, with executions.
#[derive(Debug, Default, PartialEq, Eq)]
struct PhaseCounts {
    counts: Vec<(u64, u64)>,
    total: u64,
}

/// The guest's kernel and the cells of a plan, from the files that an emulated machine leaves.
pub(crate) fn read_counts(
    plan: &ExactPlan,
    counts_file: impl BufRead,
    report_file: impl BufRead,
) -> Result<(String, Vec<ExactCell>), String> {
    let (kernel, ticks, symbols) = report(report_file, plan.phases())?;
    let phases = phases(counts_file, plan.phases())?;
    for (phase, ticks) in phases.iter().zip(ticks) {
        if !(ticks..ticks.saturating_add(BESIDE_MARKS)).contains(&phase.total) {
            return Err(format!(
                "the plugin counted {} instructions in a phase in which QEMU's own counter advanced by {ticks}",
                phase.total
            ));
        }
    }
    Ok((kernel, cells(plan, &phases, &symbols)))
}

/// The phases that the plugin has written so far.
pub(super) fn count_phases(file: &Path) -> usize {
    let text = fs::read(file).unwrap_or_default();
    text.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"phase ")).count()
}

/// The plugin's counts of this many phases. The error says what is wrong with the file.
fn phases(mut file: impl BufRead, expected: usize) -> Result<Vec<PhaseCounts>, String> {
    let mut all: Vec<PhaseCounts> = Vec::new();
    loop {
        let line = line(&mut file)?.ok_or("the plugin's counts lack their end")?;
        if line == END {
            break;
        }
        if line == format!("phase {}", all.len()) && all.len() < expected {
            all.push(PhaseCounts::default());
            continue;
        }
        let is_added = match (all.last_mut(), parse_count(&line)) {
            (Some(phase), Some((address, count))) => phase.add(address, count),
            _ => false,
        };
        if !is_added {
            return Err(format!("the plugin's counts have an unexpected line: {line:.80}"));
        }
    }
    match all.len() == expected {
        true => Ok(all),
        false => Err(format!("the plugin counted {} phases of {expected}", all.len())),
    }
}

/// An address and how often it was executed.
fn parse_count(line: &str) -> Option<(u64, u64)> {
    let (address, count) = line.split_once(' ')?;
    let count = count.parse().ok().filter(|count: &u64| *count > 0)?;
    Some((u64::from_str_radix(address, 16).ok()?, count))
}

impl PhaseCounts {
    /// Whether the count is in order and within the limits.
    fn add(&mut self, address: u64, count: u64) -> bool {
        let is_next = self.counts.last().is_none_or(|(before, _)| *before < address);
        // Sums over all phases stay below 2^64.
        let total = self.total.checked_add(count).filter(|total| *total < 1 << 53);
        let Some(total) = total.filter(|_| is_next && self.counts.len() < MAX_ADDRESSES) else {
            return false;
        };
        self.total = total;
        self.counts.push((address, count));
        true
    }
}

/// A guest's report: the release of its kernel, the ticks of each phase and its functions. The error is the guest's, or
/// says what is wrong with the report.
fn report(mut file: impl BufRead, phases: usize) -> Result<(String, Vec<u64>, Symbols), String> {
    let first = line(&mut file)?.ok_or(NONE)?;
    let (kernel, ticks) = match serde_json::from_str(&first) {
        Ok(GuestReport::Counted { kernel, ticks }) if ticks.len() == phases => (kernel, ticks),
        Ok(GuestReport::Failed { reason }) => return Err(reason),
        _ => return Err(format!("the guest's report is malformed: {first:.80}")),
    };
    let mut text = String::new();
    for _ in 0..MAX_FUNCTIONS {
        let line = line(&mut file)?.ok_or(NONE)?;
        if line == END {
            let symbols = Symbols::parse(&text);
            return match symbols.is_empty() {
                false => Ok((kernel, ticks, symbols)),
                true => Err(format!("Linux {kernel} hides the addresses of its functions")),
            };
        }
        text += &(line + "\n");
    }
    Err("the guest's report has too many functions".to_owned())
}

/// The next line without its end; `None` at the end of the file.
fn line(file: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let read = file.take(MAX_LINE_LENGTH).read_until(b'\n', &mut bytes);
    read.map_err(|reason| format!("cannot read what the emulated machine wrote: {reason}"))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err("the emulated machine wrote an incomplete line".to_owned());
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| "the emulated machine wrote bytes that are not text".to_owned())
}

/// Rows that are not kernel functions, or have no stage.
const USER: &str = "programs in user space";
const WITHOUT_SYMBOL: &str = "kernel code without a symbol";
const WITHOUT_STAGE: &str = "other kernel functions";
/// The first address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// The cells of a plan, from the counts of its phases in order.
fn cells(plan: &ExactPlan, phases: &[PhaseCounts], symbols: &Symbols) -> Vec<ExactCell> {
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
fn functions(phases: &[PhaseCounts], symbols: &Symbols, map: &StageMap, has_twins: bool) -> Vec<ExactRow> {
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
    let named = places.into_iter().map(|(name, place)| (name.to_owned(), place));
    let named: Vec<(String, Vec<usize>)> = match has_twins {
        true => pair_twins(named.collect()),
        false => named.map(|(name, place)| (name, vec![place])).collect(),
    };
    let mut rows = Vec::new();
    for (name, places) in named {
        let stage = find_stage(name.split(" / ").next().unwrap_or_default(), map);
        let instructions = [0, 1].map(|arm| places.iter().map(|place| counts[*place][arm]).sum());
        rows.push(ExactRow { stage, instructions, name });
    }
    rows
}

fn find_stage(function: &str, map: &StageMap) -> Option<String> {
    if [USER, WITHOUT_SYMBOL].contains(&function) {
        // Its row is a stage too.
        return None;
    }
    let name = map.stage(function).map_or(WITHOUT_STAGE, |stage| &map.stages[stage as usize].0.name);
    Some(name.to_owned())
}

fn largest_first(mut rows: Vec<ExactRow>) -> Vec<ExactRow> {
    rows.sort_by(|a, b| count_more(b).cmp(&count_more(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// How many instructions one of the arms has more.
fn count_more(row: &ExactRow) -> u64 {
    row.instructions[0].abs_diff(row.instructions[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_phase() {
        let text = "phase 0\nff 3\n101 1\nphase 1\nend\n";
        let expected =
            [PhaseCounts { counts: vec![(0xff, 3), (0x101, 1)], total: 4 }, PhaseCounts::default()];
        assert_eq!(phases(text.as_bytes(), 2).unwrap(), expected);
    }

    #[test]
    fn refuses_counts_that_the_plugin_would_not_write() {
        for (text, why) in [
            ("", "lack their end"),
            ("phase 0\n", "lack their end"),
            ("phase 0\nff 3", "incomplete"),
            ("end\n", "0 phases of 1"),
            ("ff 3\nend\n", "unexpected line"),
            ("phase 1\nend\n", "unexpected line"),
            ("phase 0\nphase 1\nend\n", "unexpected line"),
            ("phase 0\nff 3\nff 3\nend\n", "unexpected line"),
            ("phase 0\nff 3\nfe 3\nend\n", "unexpected line"),
            ("phase 0\nff 0\nend\n", "unexpected line"),
            ("phase 0\nff -1\nend\n", "unexpected line"),
            ("phase 0\nff 18446744073709551615\nend\n", "unexpected line"),
            ("phase 0\nfffffffffffffffff 1\nend\n", "unexpected line"),
            ("phase 0\n\u{0}\nend\n", "unexpected line"),
        ] {
            let error = phases(text.as_bytes(), 1).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        let long = vec![b'a'; MAX_LINE_LENGTH as usize + 1];
        assert!(phases(&long[..], 1).unwrap_err().contains("incomplete"));
        assert!(phases(&b"\xff\n"[..], 1).unwrap_err().contains("not text"));
    }

    #[test]
    fn report_has_the_kernel_and_its_functions() {
        let text = "{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\nffffffff81000000 T ip_rcv\nend\n";
        let (kernel, ticks, symbols) = report(text.as_bytes(), 2).unwrap();
        assert_eq!((kernel.as_str(), ticks), ("6.1", vec![5, 6]));
        assert_eq!(symbols.name_near(0xffff_ffff_8100_0001), Some("ip_rcv"));
        for (text, why) in [
            ("", "without a report"),
            ("x\n", "malformed"),
            ("{\"failed\":{\"reason\":\"no IPv6\"}}\nend\n", "no IPv6"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5]}}\nend\n", "malformed"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\n", "without a report"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\nend\n", "hides the addresses"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\n0000000000000000 T ip_rcv\nend\n", "hides"),
        ] {
            let error = report(text.as_bytes(), 2).err().unwrap();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }

    const TEXT: &str = "ffffffff81000000 T udp_sendmsg\nffffffff81001000 T udpv6_sendmsg.cold\n\
                        ffffffff81002000 t memset\nffffffff81003000 T ip_rcv_core\n";

    fn phase(counts: &[(u64, u64)]) -> PhaseCounts {
        PhaseCounts { counts: counts.to_vec(), total: counts.iter().map(|(_, count)| count).sum() }
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
        let phases: Vec<PhaseCounts> = (0..ROUNDS).flat_map(|_| [phase(&ipv4), phase(&ipv6)]).collect();
        let plan: ExactPlan = "udp:ipv4@loopback/128*0+ipv6@loopback/128*0".parse().unwrap();
        cells(&plan, &phases, &Symbols::parse(TEXT)).remove(0)
    }

    #[test]
    fn twins_share_a_row_and_largest_difference_is_first() {
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
            let sums = [0, 1].map(|arm| rows.iter().map(|row| row.instructions[arm]).sum::<u64>());
            assert_eq!(sums, cell.total);
        }
        assert_eq!(cell.total, [29 * ROUNDS as u64, 54 * ROUNDS as u64]);
        assert_eq!(cell.rounds, [[29, 54]; ROUNDS]);
    }
}
