//! `[blocks]`: when to stop, and how trials that are compared are interleaved.

use crate::diagnostics::Problems;
use crate::language::leaf;
use crate::plan::interleave;
use crate::read::{Node, nanoseconds, whole};
use stacklab_model::{
    ArmSchedule, Cell, ComparisonSpec, Factor, Generator, Length, ProbeSpec, StoppingRule, System, Systems,
    Transport, print_duration,
};

pub(super) fn rule(blocks: Node, problems: &mut Problems) -> Option<StoppingRule> {
    let min = blocks.get("min").at(whole, problems)?;
    let max = blocks.get("max").at(whole, problems)?;
    if min.value > max.value {
        let title = format!("`blocks.min` is {} and `blocks.max` is {}", min.value, max.value);
        let problem = min.problem(title, format!("expected at most {}", max.value));
        problems.add(problem.with_related_place(&max.place, "or a larger one here"));
    }
    Some(StoppingRule {
        min: min.value,
        max: max.value,
        until: blocks.get("until").value(leaf::name, problems)?,
        target: blocks.get("target").value(leaf::share, problems)?,
        budget_ns: blocks.get("budget").value(nanoseconds, problems),
    })
}

/// Reads `blocks.schedule` and `blocks.slice`; `Alone` if each trial is measured by itself. Without `blocks.schedule`,
/// arms are interleaved where nothing speaks against it.
pub(super) fn schedule(
    blocks: Node,
    probes: &[ProbeSpec],
    comparisons: &[ComparisonSpec],
    cells: &[Cell],
    round_trip_ns: u64,
    problems: &mut Problems,
) -> ArmSchedule {
    if blocks.0.is_none() {
        return ArmSchedule::Alone;
    }
    let slice = blocks.get("slice").at(nanoseconds, problems);
    let slice_ns = slice.as_ref().map(|slice| slice.value);
    if blocks.get("schedule").0.is_none() {
        let reason = reason_for_separate(slice_ns, probes, comparisons, cells)
            .or_else(|| history(comparisons, cells, round_trip_ns > 0))
            .or_else(|| slow(probes, round_trip_ns));
        if let (Some(slice), Some(reason)) = (slice, &reason) {
            problems.add(slice.problem(
                format!("`blocks.slice` is set, and {reason}"),
                "expected no slice, or blocks.schedule = \"interleaved\" and what it needs",
            ));
        }
        return if reason.is_none() { ArmSchedule::TokenPassing(slice_ns) } else { ArmSchedule::Alone };
    }
    let Some(arms) = blocks.get("schedule").at(leaf::text, problems) else { return ArmSchedule::Alone };
    if arms.value != "interleaved" {
        if let Some(slice) = slice {
            let title = "`blocks.slice` is set, and the schedule is sequential";
            let problem = slice.problem(title, "expected no slice");
            problems.add(problem.with_related_place(&arms.place, "or \"interleaved\" here"));
        }
        return ArmSchedule::Alone;
    }
    if let Some(ProbeSpec { probe, length, .. }) = find_packet_probe(probes) {
        problems.add(arms.problem(
            format!("the arms are interleaved, and probe.{probe} ends after {length}"),
            format!("expected \"sequential\", or probe.{probe}.length = {{ time = .. }}"),
        ));
    }
    for ProbeSpec { probe, length, .. } in probes.iter().filter(|spec| is_short(spec, slice_ns)) {
        if let (Some(slice), Length::Time(ns)) = (&slice, *length) {
            let rounds = ArmSchedule::MIN_ROUNDS;
            let [own, most, whole] = [slice.value, ns / rounds, ns].map(print_duration);
            problems.add(slice.problem(
                format!("a slice of {own} leaves probe.{probe} fewer than {rounds} in its {whole}"),
                format!("expected at most {most}, or a longer probe.{probe}.length"),
            ));
        }
    }
    if let Some((factor, reason)) = unfit(comparisons, cells) {
        problems.add(arms.problem(
            format!("the arms are interleaved and differ in {factor}, and {reason}"),
            "expected \"sequential\"",
        ));
    }
    ArmSchedule::TokenPassing(slice_ns)
}

/// Whether a probe that would interleave has no time for as many slices as it needs.
fn is_short(spec: &ProbeSpec, slice_ns: Option<u64>) -> bool {
    spec.probe.interleaves()
        && matches!((slice_ns, &spec.length), (Some(slice_ns), Length::Time(ns)) if slice_ns > ns / ArmSchedule::MIN_ROUNDS)
}

fn find_packet_probe(probes: &[ProbeSpec]) -> Option<&ProbeSpec> {
    probes.iter().find(|spec| spec.probe.interleaves() && matches!(spec.length, Length::Packets(_)))
}

/// Why arms are separate unless the study says that they are interleaved.
fn reason_for_separate(
    slice_ns: Option<u64>,
    probes: &[ProbeSpec],
    comparisons: &[ComparisonSpec],
    cells: &[Cell],
) -> Option<String> {
    if comparisons.is_empty() {
        return Some("nothing is compared".to_owned());
    }
    if let Some(spec) = find_packet_probe(probes) {
        return Some(format!("probe.{} ends after {}", spec.probe, spec.length));
    }
    if let Some(spec) = probes.iter().find(|spec| is_short(spec, slice_ns)) {
        return Some(format!("probe.{} has no time for {} slices", spec.probe, ArmSchedule::MIN_ROUNDS));
    }
    if let Some((factor, reason)) = unfit(comparisons, cells) {
        return Some(format!("the arms differ in {factor}, and {reason}"));
    }
    let asked = ArmSchedule::TokenPassing(slice_ns);
    let of_testbeds = comparisons.iter().find(|comparison| comparison.factor.is_of_testbeds());
    let planned = of_testbeds.map_or(asked, |comparison| interleave::schedule(asked, comparison.factor));
    for spec in probes.iter().filter(|spec| spec.probe.interleaves()) {
        if let Some(metric) = spec.metrics.iter().find(|metric| planned.shares(**metric)) {
            return Some(format!("interleaved arms share the counter of {metric}"));
        }
    }
    None
}

/// Why arms are separate unless the study says that they are interleaved: what they differ in acts through a TCP
/// connection's history, and turns interrupt it. A window that waits for its turn is restarted, and the other arm's
/// queue is not its own.
fn history(comparisons: &[ComparisonSpec], cells: &[Cell], delayed: bool) -> Option<String> {
    if cells.iter().all(|cell| cell.transport != Transport::Tcp) {
        return None;
    }
    for ComparisonSpec { factor, .. } in comparisons {
        let acts = match factor {
            Factor::CongestionControl => true,
            // With a delay, a buffer limits the window, and a queue shows what the window does.
            Factor::SendBuffer | Factor::ReceiveBuffer => delayed,
            _ => false,
        };
        if acts {
            return Some(format!("{factor} acts through a connection's history, which turns interrupt"));
        }
    }
    None
}

/// Why arms are separate unless the study says that they are interleaved: each slice waits for its last message to
/// arrive, for longer than the probe lasts.
fn slow(probes: &[ProbeSpec], round_trip_ns: u64) -> Option<String> {
    let mut interleaved = probes.iter().filter(|spec| spec.probe.interleaves());
    let short = interleaved.find(|spec| matches!(spec.length, Length::Time(ns) if ns <= round_trip_ns))?;
    Some(format!("probe.{} lasts no longer than a round trip", short.probe))
}

/// Why arms cannot take turns: those of other generators, and some with separate testbeds.
fn unfit(comparisons: &[ComparisonSpec], cells: &[Cell]) -> Option<(Factor, String)> {
    let factor = comparisons.first().map(|comparison| comparison.factor)?;
    if let Some(generator) = cells.iter().map(Generator::of).find(|generator| generator.is_other()) {
        return Some((factor, format!("trials of generator {generator} have no slices")));
    }
    if cells.iter().any(Cell::has_other_programs) {
        return Some((factor, "runs of programs are whole".to_owned()));
    }
    if factor.is_of_wifi() {
        return Some((factor, "each Wi-Fi network has a separate guest and clock".to_owned()));
    }
    if !factor.is_of_testbeds() {
        return None;
    }
    let systems = cells.iter().flat_map(|cell| [Systems::of(cell), Systems::of_routers(cell)]);
    let reason = systems.flat_map(|systems| systems.0).find_map(|system| match system {
        System::Localhost | System::Ssh(_) => {
            Some(format!("{system} is a real machine: all arms would have one network"))
        }
        // Seen: a second without an answer to an echo after its host had slept.
        system if system.is_uml() => {
            Some(format!("{system} sleeps between its turns, and may then miss packets for a second"))
        }
        _ => None,
    });
    Some((factor, reason?))
}
