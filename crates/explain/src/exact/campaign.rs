//! Exact counts for a campaign: the instructions of the cells whose comparisons ask for them.

use crate::ExplainError;
use crate::exact::beside::KernelSource;
use crate::exact::count_instructions;
use crate::exact::inside::share_network;
use crate::exact::plan::ExactPlan;
use stacklab_model::{ExactArm, ExactCounts, ExactPair, Explanation, Tracking};
use stacklab_store::Record;
use stacklab_study::{CountedPair, Study};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The most pairs that one emulated machine counts: what is counted is kept when it ends.
const MAX_PAIRS: usize = 8;
/// The most entries in the tables of all its networks, both families together: it has a gigabyte of memory.
const MAX_ENTRIES: u32 = 700_000;

/// The pairs whose instructions a study asks for, that can be counted, and that a record does not have yet.
pub fn list_missing_counts(record: &Record, study: &Study) -> Result<Vec<CountedPair>, ExplainError> {
    let known = record.explanations()?;
    let mut missing = study.list_counted_pairs();
    missing.retain(|pair| {
        let is_counted =
            known.iter().any(|one| one.exact.is_some() && one.is_of_same_cells(&pair.explanation));
        pair.exact.is_ok() && !is_counted
    });
    Ok(missing)
}

/// Counts the instructions of these pairs in as many emulated machines as they need, one after the other. The record
/// keeps what each has counted, so that an interrupted campaign continues behind it.
pub fn count_campaign(
    record: &mut Record,
    missing: Vec<CountedPair>,
    program: &Path,
    step: &mut dyn FnMut(&str),
    interrupted: &AtomicBool,
) -> Result<(), ExplainError> {
    let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
    let source: KernelSource = crate::KERNEL.parse().map_err(ExplainError::Exact)?;
    let kernel = source.kernel(folder.path(), step, interrupted)?;
    let mut pairs = Vec::new();
    let mut explanations = Vec::new();
    for CountedPair { explanation, exact } in missing {
        pairs.push(exact.map_err(ExplainError::Exact)?);
        explanations.push(explanation);
    }
    let machines = divide(&pairs);
    let all = machines.len();
    let mut rest = explanations.into_iter();
    for (number, pairs) in machines.into_iter().enumerate() {
        let mut asked: Vec<Explanation> = rest.by_ref().take(pairs.len()).collect();
        let plan = ExactPlan::new(pairs).map_err(ExplainError::Exact)?;
        let counts = count_instructions(
            &plan,
            &kernel,
            program,
            &mut |what| step(&format!("machine {} of {all}: {what}", number + 1)),
            interrupted,
        )?;
        give_counts(&mut asked, counts);
        record.put_explanations(&asked)?;
    }
    Ok(())
}

/// Gives each pair its cell of a machine's counts.
fn give_counts(asked: &mut [Explanation], counts: ExactCounts) {
    let ExactCounts { qemu, kernel, cells } = counts;
    for (explanation, cell) in asked.iter_mut().zip(cells) {
        let counts = ExactCounts { qemu: qemu.clone(), kernel: kernel.clone(), cells: vec![cell] };
        explanation.exact = Some(Box::new(counts));
    }
}

/// The pairs of each machine, in their order: as many as it has room for.
fn divide(pairs: &[ExactPair]) -> Vec<Vec<ExactPair>> {
    let mut machines: Vec<Vec<ExactPair>> = Vec::new();
    for pair in pairs {
        match machines.last_mut().filter(|machine| has_room(machine, pair)) {
            Some(machine) => machine.push(*pair),
            None => machines.push(vec![*pair]),
        }
    }
    machines
}

fn has_room(machine: &[ExactPair], pair: &ExactPair) -> bool {
    let pairs = [machine, &[*pair]].concat();
    let mut networks: Vec<&ExactArm> = Vec::new();
    for arm in pairs.iter().flat_map(|pair| &pair.arms) {
        if !networks.iter().any(|known| share_network(known, arm)) {
            networks.push(arm);
        }
    }
    let entries: u32 = networks.iter().map(|arm| count_entries(arm)).sum();
    pairs.len() <= MAX_PAIRS && entries <= MAX_ENTRIES && ExactPlan::new(pairs).is_ok()
}

/// The entries of both families that a network's tables have.
fn count_entries(arm: &ExactArm) -> u32 {
    let connections = match arm.conntrack {
        Tracking::Off => 0,
        Tracking::On(connections) => connections,
    };
    2 * (arm.routes + arm.neighbours + connections + arm.firewall.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str, number: usize) -> Vec<ExactPair> {
        vec![text.parse::<ExactPlan>().unwrap().pairs[0]; number]
    }

    #[test]
    fn a_machine_counts_as_many_pairs_as_it_has_room_for() {
        let small = pairs("udp:ipv4@native/128*0+ipv4@native/128*0!1000!off", 9);
        assert_eq!(divide(&small).iter().map(Vec::len).collect::<Vec<_>>(), [8, 1]);
        // Pairs with one network share it; each of the others needs its own.
        let large = pairs("udp:ipv4@native/128*0+ipv4@native/128*0!200000!off", 1);
        let other = pairs("udp:ipv4@native/128*0+ipv4@native/128*0!200000!0", 1);
        assert_eq!(divide(&[large.clone(), large.clone()].concat()).len(), 1);
        assert_eq!(divide(&[large, other].concat()).len(), 2);
    }
}
