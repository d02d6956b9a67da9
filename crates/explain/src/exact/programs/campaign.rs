//! Exact counts of programs for a campaign: the instructions of the cells whose comparisons ask for them.

use crate::ExplainError;
use crate::exact::programs::symbols::SymbolFiles;
use crate::exact::programs::{CPU, DEFAULT_REQUESTS, UserEmulator};
use stacklab_campaign::rig::{Rigs, RoutedPlacement};
use stacklab_model::{Cell, EndCounts, FunctionCount, ProgramCell, ProgramCounts, Why};
use stacklab_store::Record;
use stacklab_study::{CountedPair, Study};
use std::sync::atomic::AtomicBool;

/// The most functions of an end that a record keeps: those that take most. All others are one row together.
const MAX_KEPT_FUNCTIONS: usize = 200;

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
                Ok(counted) => Ok(keep_most(counted)),
                Err(ExplainError::Program(reason)) => Err(reason),
                Err(error) => return Err(error),
            };
            known.push((cell.clone(), counted));
        }
        match find_cells(&known, [&explanation.baseline, &explanation.candidate]) {
            Ok(cells) => {
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

fn keep_most(mut cell: ProgramCell) -> ProgramCell {
    for end in [&mut cell.client, &mut cell.server] {
        add_up_small(end);
    }
    cell
}

/// Joins the functions that take least to one, so that the sum stays.
fn add_up_small(end: &mut EndCounts) {
    if end.functions.len() <= MAX_KEPT_FUNCTIONS {
        return;
    }
    end.functions.sort_by_key(|function| std::cmp::Reverse(function.instructions.unsigned_abs()));
    let rest = end.functions.split_off(MAX_KEPT_FUNCTIONS - 1);
    let name = format!("{} other functions", rest.len());
    let instructions = rest.iter().map(|function| function.instructions).sum();
    end.functions.push(FunctionCount { name, file: String::new(), offsets: None, instructions });
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

    #[test]
    fn small_functions_are_one_and_the_sum_stays() {
        for functions in [10, 200, 1000] {
            let kept = keep_most(count_cell(functions)).client;
            assert_eq!(kept.functions.len(), functions.min(200) as usize);
            let sum: i64 = kept.functions.iter().map(|function| function.instructions).sum();
            assert_eq!(sum, 10 * functions);
        }
        assert_eq!(keep_most(count_cell(1000)).client.functions[199].name, "801 other functions");
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
