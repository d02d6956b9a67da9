//! Exact counts for a campaign: the instructions of the cells whose comparisons ask for them.

use crate::ExplainError;
use crate::exact::beside::KernelSource;
use crate::exact::plan::ExactPlan;
use crate::exact::{check_machine, count_instructions};
use stacklab_model::{ExactCounts, ExactPair, Explanation, MAX_ENTRIES, Why, count_entries};
use stacklab_store::Record;
use stacklab_study::{CountWay, CountedPair, Study};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The most pairs that one emulated machine counts: what is counted is kept when it ends.
const MAX_PAIRS: usize = 8;

/// The pairs whose instructions a study asks for, that can be counted, and that a record does not have yet.
pub fn list_missing_counts(record: &Record, study: &Study) -> Result<Vec<CountedPair>, ExplainError> {
    let known = record.explanations()?;
    let mut missing = study.list_counted_pairs();
    missing.retain(|pair| {
        let is_counted = known.iter().any(|one| one.has_counts() && one.is_of_same_cells(&pair.explanation));
        pair.way.is_ok() && !is_counted
    });
    Ok(missing)
}

/// Counts the instructions of these pairs in as many emulated machines as they need, one after the other. The record
/// keeps what each has counted, so that an interrupted campaign continues behind it. It also keeps why a pair could not
/// be counted, which is the error if the others could.
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
    check_machine()?;
    let is_sampled = record.campaign()?.sample_period_ns.is_some();
    count_pairs(
        missing,
        &mut |plan, place| {
            count_instructions(
                plan,
                &kernel,
                program,
                &mut |what| step(&format!("{place}: {what}")),
                interrupted,
            )
        },
        &mut |counted| {
            // Of a sampled campaign, a reason without costs is that of its samples.
            if !is_sampled || counted.iter().all(|explanation| explanation.exact.is_some()) {
                record.put_explanations(counted)?;
            }
            Ok(())
        },
    )
}

/// Counts pairs with `count`, whose second argument is the place of a machine among all, and gives `keep` what became
/// of them. If a machine fails, each of its pairs gets one to itself: one that cannot be built takes no others along.
fn count_pairs(
    missing: Vec<CountedPair>,
    count: &mut dyn FnMut(&ExactPlan, &str) -> Result<ExactCounts, ExplainError>,
    keep: &mut dyn FnMut(&[Explanation]) -> Result<(), ExplainError>,
) -> Result<(), ExplainError> {
    let mut machines = VecDeque::from(divide(missing)?);
    let mut all = machines.len();
    let mut number = 0;
    let mut first_error = None;
    while let Some(mut machine) = machines.pop_front() {
        number += 1;
        let plan = ExactPlan::new(machine.pairs.clone()).map_err(ExplainError::Exact)?;
        match count(&plan, &format!("machine {number} of {all}")) {
            Ok(counts) => {
                give_counts(&mut machine.asked, counts);
                keep(&machine.asked)?;
            }
            Err(ExplainError::Interrupted) => return Err(ExplainError::Interrupted),
            Err(_) if machine.pairs.len() > 1 => {
                all += machine.pairs.len();
                for (pair, explanation) in machine.pairs.into_iter().zip(machine.asked).rev() {
                    machines.push_front(Machine { pairs: vec![pair], asked: vec![explanation] });
                }
            }
            Err(error) => {
                for explanation in &mut machine.asked {
                    explanation.why = Why::Unknown(error.reason());
                }
                keep(&machine.asked)?;
                first_error.get_or_insert(error);
            }
        }
    }
    first_error.map_or(Ok(()), Err)
}

/// Gives each pair its cell of a machine's counts.
fn give_counts(asked: &mut [Explanation], counts: ExactCounts) {
    let ExactCounts { qemu, kernel, cells } = counts;
    for (explanation, cell) in asked.iter_mut().zip(cells) {
        let counts = ExactCounts { qemu: qemu.clone(), kernel: kernel.clone(), cells: vec![cell] };
        explanation.exact = Some(Box::new(counts));
    }
}

const REQUESTS_ELSEWHERE: &str = "requests of programs are not counted in an emulated machine";

/// The pairs that one machine counts, with the cells that they are of.
#[derive(Default)]
struct Machine {
    pairs: Vec<ExactPair>,
    asked: Vec<Explanation>,
}

/// The pairs of each machine, in their order: as many as it has room for.
fn divide(missing: Vec<CountedPair>) -> Result<Vec<Machine>, ExplainError> {
    let mut machines: Vec<Machine> = Vec::new();
    for CountedPair { explanation, way } in missing {
        let pair = match way {
            Ok(CountWay::Messages(pair)) => pair,
            Ok(CountWay::Requests) => return Err(ExplainError::Exact(REQUESTS_ELSEWHERE.to_owned())),
            Err(reason) => return Err(ExplainError::Exact(reason)),
        };
        if !machines.last().is_some_and(|machine| has_room(&machine.pairs, &pair)) {
            machines.push(Machine::default());
        }
        if let Some(machine) = machines.last_mut() {
            machine.pairs.push(pair);
            machine.asked.push(explanation);
        }
    }
    Ok(machines)
}

fn has_room(machine: &[ExactPair], pair: &ExactPair) -> bool {
    let pairs = [machine, &[*pair]].concat();
    let entries = count_entries(pairs.iter().flat_map(|pair| &pair.arms));
    pairs.len() <= MAX_PAIRS && entries <= MAX_ENTRIES && ExactPlan::new(pairs).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::{Cell, ExactCell, ExactPath, Factor, Family, Mechanism, Probe, SizeOf, Transport};

    const SMALL: &str = "udp:ipv4@native/128*0+ipv4@native/128*0!1000!off";

    fn pairs(text: &str, number: usize) -> Vec<CountedPair> {
        let pair = text.parse::<ExactPlan>().unwrap().pairs[0];
        let baseline = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 128);
        let mut candidate = baseline.clone();
        candidate.set(Factor::Routes, "1000").unwrap();
        let explanation = Explanation::of_cells(Probe::Stream, Factor::Routes, baseline, candidate);
        vec![CountedPair { explanation, way: Ok(CountWay::Messages(pair)) }; number]
    }

    fn sizes(missing: Vec<CountedPair>) -> Vec<usize> {
        divide(missing).unwrap().iter().map(|machine| machine.pairs.len()).collect()
    }

    #[test]
    fn a_machine_counts_as_many_pairs_as_it_has_room_for() {
        assert_eq!(sizes(pairs(SMALL, 9)), [8, 1]);
        // Pairs with one network share it; each of the others needs its own.
        let large = pairs("udp:ipv4@native/128*0+ipv4@native/128*0!200000!off", 1);
        let other = pairs("udp:ipv4@native/128*0+ipv4@native/128*0!200000!0", 1);
        assert_eq!(sizes([large.clone(), large.clone()].concat()), [2]);
        assert_eq!(sizes([large, other].concat()), [1, 1]);
    }

    /// Counts, unless a pair is through dnat.
    fn count_native(plan: &ExactPlan) -> Result<ExactCounts, ExplainError> {
        let mut cells = Vec::new();
        for pair in &plan.pairs {
            if pair.arms[1].path == ExactPath::Routed(Mechanism::Dnat) {
                return Err(ExplainError::Kernel("no dnat".to_owned()));
            }
            cells.push(ExactCell {
                probe: pair.probe,
                arms: pair.arms,
                messages: 1,
                total: [1, 2],
                rounds: Vec::new(),
                stages: Vec::new(),
                functions: Vec::new(),
            });
        }
        Ok(ExactCounts { qemu: String::new(), kernel: String::new(), cells })
    }

    #[test]
    fn a_pair_that_fails_leaves_the_others_their_counts() {
        let dnat = pairs("udp:ipv4@native/128*0+ipv4@dnat/128*0", 1);
        let missing = [pairs(SMALL, 1), dnat, pairs(SMALL, 8)].concat();
        let mut places = Vec::new();
        let mut kept = Vec::new();
        let error = count_pairs(
            missing,
            &mut |plan, place| {
                places.push(place.to_owned());
                count_native(plan)
            },
            &mut |counted| {
                kept.extend(counted.to_vec());
                Ok(())
            },
        );
        assert!(matches!(error, Err(ExplainError::Kernel(_))), "{error:?}");
        let (counted, failed): (Vec<_>, Vec<_>) = kept.iter().partition(|one| one.exact.is_some());
        assert_eq!((counted.len(), failed.len()), (9, 1));
        assert_eq!(failed[0].why, Why::Unknown("no dnat".to_owned()));
        // The first of two machines again, pair by pair.
        assert_eq!((places.len(), &*places[1], &*places[9]), (10, "machine 2 of 10", "machine 10 of 10"));
    }

    #[test]
    fn an_interrupted_count_ends_at_once() {
        let mut asked = 0;
        let ended = count_pairs(
            pairs(SMALL, 9),
            &mut |_, _| {
                asked += 1;
                Err(ExplainError::Interrupted)
            },
            &mut |_| panic!("nothing was counted"),
        );
        assert!(matches!(ended, Err(ExplainError::Interrupted)) && asked == 1);
    }
}
