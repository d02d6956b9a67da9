//! Exact counts of programs for a campaign: the instructions of the cells whose comparisons ask for them.

use crate::ExplainError;
use crate::exact::programs::symbols::SymbolFiles;
use crate::exact::programs::{CPU, DEFAULT_REQUESTS, UserEmulator};
use stacklab_campaign::rig::{Rigs, RoutedPlacement};
use stacklab_model::{Cell, EndCounts, FunctionCount, ProgramCell, ProgramCounts, ProgramEnd, Why};
use stacklab_store::Record;
use stacklab_study::{CountedPair, Study};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

/// The most functions of an end that a record keeps: those that take most in either arm. All others are one row
/// together, of the same name in both.
const MAX_KEPT_FUNCTIONS: usize = 200;
const OTHER_FUNCTIONS: &str = "other functions";

/// The instructions of a cell, or why it has none.
type Counted = Result<ProgramCell, String>;

/// Counts the instructions of these pairs of programs in the study's testbed. The record keeps each pair once it is
/// counted, so that an interrupted campaign continues behind it, and the reason of a pair that cannot be counted, which
/// is the error if there is one. Call it from the main thread.
pub fn count_programs_of_campaign(
    record: &mut Record,
    study: &Study,
    missing: Vec<CountedPair>,
    routed: Option<RoutedPlacement>,
    step: &mut dyn FnMut(&str),
    interrupted: &'static AtomicBool,
) -> Result<(), ExplainError> {
    let emulator = UserEmulator::find()?;
    let mut rigs = Rigs::build(study, 0, Vec::new(), routed, interrupted)?;
    let requests = [DEFAULT_REQUESTS, 2 * DEFAULT_REQUESTS];
    let mut symbols = SymbolFiles::default();
    let mut known: Vec<(Cell, Counted)> = Vec::new();
    let mut first_reason = None;
    for CountedPair { mut explanation, .. } in missing {
        for cell in [&explanation.baseline, &explanation.candidate] {
            if known.iter().any(|(other, _)| other == cell) {
                continue;
            }
            let counted = match emulator.count(&mut rigs, study, cell, requests, &mut symbols, step) {
                Ok(counted) => Ok(counted),
                Err(ExplainError::Program(reason)) => Err(reason),
                Err(error) => return Err(error),
            };
            known.push((cell.clone(), counted));
        }
        match find_cells(&known, [&explanation.baseline, &explanation.candidate]) {
            Ok(mut cells) => {
                keep_most(&mut cells);
                let qemu = emulator.version.clone();
                let cpu = CPU.to_owned();
                let counts = ProgramCounts { qemu, cpu, requests, cells, pairs: vec![[0, 1]] };
                explanation.programs = Some(Box::new(counts));
            }
            Err(reason) => {
                explanation.why = Why::Unknown(reason.clone());
                first_reason.get_or_insert(reason);
            }
        }
        record.put_explanations(&[explanation])?;
    }
    first_reason.map_or(Ok(()), |reason| Err(ExplainError::Program(reason)))
}

/// The counts of a pair's cells, or why one of them has none.
fn find_cells(known: &[(Cell, Counted)], pair: [&Cell; 2]) -> Result<Vec<ProgramCell>, String> {
    let mut cells = Vec::new();
    for wanted in pair {
        for (cell, counted) in known {
            if cell == wanted {
                cells.push(counted.clone()?);
            }
        }
    }
    Ok(cells)
}

/// Keeps the same functions of all cells of a pair, so that each row of the record is of both.
fn keep_most(cells: &mut [ProgramCell]) {
    for end in ProgramEnd::ALL {
        let kept = list_largest(cells, *end);
        for cell in cells.iter_mut() {
            join_others(cell.end_mut(*end), &kept);
        }
    }
}

/// A function of two builds of a program.
type FunctionKey = (String, String);

fn find_key(function: &FunctionCount) -> FunctionKey {
    (function.name.clone(), function.file_name().to_owned())
}

/// The functions of an end that take most in any of the cells; all of them if they are few.
fn list_largest(cells: &[ProgramCell], end: ProgramEnd) -> BTreeSet<FunctionKey> {
    let mut largest: BTreeMap<FunctionKey, u64> = BTreeMap::new();
    for cell in cells {
        let mut sums: BTreeMap<FunctionKey, i64> = BTreeMap::new();
        for function in &cell.end(end).functions {
            *sums.entry(find_key(function)).or_default() += function.instructions;
        }
        for (key, sum) in sums {
            let most = largest.entry(key).or_default();
            *most = sum.unsigned_abs().max(*most);
        }
    }
    let mut keys: Vec<(FunctionKey, u64)> = largest.into_iter().collect();
    if keys.len() > MAX_KEPT_FUNCTIONS {
        keys.sort_by_key(|(_, most)| Reverse(*most));
        keys.truncate(MAX_KEPT_FUNCTIONS - 1);
    }
    keys.into_iter().map(|(key, _)| key).collect()
}

/// Joins the functions that are not kept to one, so that the sum stays.
fn join_others(end: &mut EndCounts, kept: &BTreeSet<FunctionKey>) {
    let before = end.functions.len();
    let mut rest = 0;
    end.functions.retain(|function| {
        let is_kept = kept.contains(&find_key(function));
        if !is_kept {
            rest += function.instructions;
        }
        is_kept
    });
    if end.functions.len() < before {
        let name = OTHER_FUNCTIONS.to_owned();
        end.functions.push(FunctionCount { name, file: String::new(), offsets: None, instructions: rest });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Family, SizeOf, Transport};

    fn count_cell(functions: i64) -> ProgramCell {
        let mut client = EndCounts { rounds: vec![[0, 10 * functions as u64]], functions: Vec::new() };
        for number in 0..functions {
            let name = format!("f{number}");
            // Half of them take less in the longer runs.
            let instructions = if number % 2 == 0 { 30 } else { -10 };
            client.functions.push(FunctionCount { name, file: String::new(), offsets: None, instructions });
        }
        let label = String::new();
        let server = EndCounts::default();
        ProgramCell { program: String::new(), family: Family::Ipv4, label, client, server }
    }

    fn sum(cell: &ProgramCell) -> i64 {
        cell.client.functions.iter().map(|function| function.instructions).sum()
    }

    #[test]
    fn small_functions_are_one_and_the_sum_stays() {
        for functions in [10, 200, 1000] {
            let mut cells = [count_cell(functions), count_cell(functions)];
            keep_most(&mut cells);
            for cell in &cells {
                assert_eq!(cell.client.functions.len(), functions.min(200) as usize);
                assert_eq!(sum(cell), 10 * functions);
            }
        }
    }

    #[test]
    fn both_arms_keep_the_same_functions() {
        // What is small in one arm is the largest of the other one, of another build with fewer functions.
        let mut cells = [count_cell(1000), count_cell(900)];
        cells[1].client.functions[801].instructions = 5000;
        for function in &mut cells[1].client.functions {
            function.file = "/b/server".to_owned();
        }
        for function in &mut cells[0].client.functions {
            function.file = "/a/server".to_owned();
        }
        let sums = [sum(&cells[0]), sum(&cells[1])];
        keep_most(&mut cells);
        assert_eq!([sum(&cells[0]), sum(&cells[1])], sums);
        let names = [&cells[0], &cells[1]].map(|cell| {
            let functions = cell.client.functions.iter();
            functions.map(|function| function.name.as_str()).collect::<Vec<_>>()
        });
        assert_eq!(names[0], names[1]);
        assert!(names[0].contains(&"f801") && names[0].last() == Some(&"other functions"));
    }

    #[test]
    fn a_pair_has_both_cells_or_a_reason() {
        let [one, other] =
            [Family::Ipv4, Family::Ipv6].map(|family| Cell::new(family, Transport::Tcp, SizeOf::Payload, 0));
        let failed: Counted = Err("it fails".to_owned());
        let known = [(one.clone(), Ok(count_cell(1))), (other.clone(), failed)];
        assert_eq!(find_cells(&known, [&one, &one]).unwrap().len(), 2);
        assert_eq!(find_cells(&known, [&one, &other]), Err("it fails".to_owned()));
    }
}
