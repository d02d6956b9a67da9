//! `stacklab measure`: a single trial between this host and another one.

mod comparison;
mod ends;
mod iperf3;
pub(crate) mod options;
mod stamp;
mod study;
#[cfg(test)]
pub(crate) mod tests;

use crate::commands::measure::comparison::against;
use crate::commands::measure::ends::AgentPair;
use crate::commands::measure::options::{CommonOptions, MeasureOptions, Peer};
use crate::failure::{Failure, interrupt_flag};
use crate::output::print_text;
use stacklab_campaign::single::{MeasureRequest, check, plan};
use stacklab_campaign::trial::clock_offset::{ClockSync, one_machine};
use stacklab_campaign::trial::evidence::Evidence;
use stacklab_campaign::trial::figures::figures;
use stacklab_model::{Direction, HostFacts, Length, Role, RunRecord, TrialSpec, print_duration};
use stacklab_report::{MeasurementText, measurement, measurement_json};
use stacklab_traffic::host::unix_time::now_unix_ns;
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::timing::{SLACK, longest};
use stacklab_trial::{Path, collect, measure_offset};
use std::io::{IsTerminal, Write};

/// The time of an interrupted measurement is rounded to it.
const ROUNDED_NS: u64 = 1_000_000;

/// Measures once between this host and another one, or both families in turns.
pub(crate) fn measure(options: &MeasureOptions) -> Result<(), Failure> {
    let (common, request) = (options.common(), options.request());
    if common.peer != Peer::Stamp {
        check(&request)?;
    }
    let interrupted = interrupt_flag()?;
    match common.peer {
        Peer::Agent => {}
        Peer::Iperf3 => return iperf3::measure_iperf3(common, &request, interrupted),
        Peer::Stamp => return stamp::measure(common, &request, options.stamp(), interrupted),
    }
    if let Some(baseline) = common.against {
        return against(common, &request, baseline, interrupted);
    }
    let mut pair = AgentPair::connect(common, interrupted)?;
    pair.here.agent.keep_figures();
    pair.there.agent.keep_figures();
    let shared = one_machine(&pair.here.facts, &pair.there.facts);
    let direction = direction(common, &request);
    let (trial, mut spec) = plan(&request, pair.family, direction, shared, token())?;
    // On a path that loses much, each step may take long.
    let must_end = pair.met + longest(&spec) + SLACK;
    pair.here.agent.must_end(must_end);
    pair.there.agent.must_end(must_end);
    let (sender, receiver) =
        if common.reverse { (&mut pair.there, &mut pair.here) } else { (&mut pair.here, &mut pair.there) };
    let path = Path {
        // Nothing need be let in here.
        opener: Some(if common.reverse { Role::Receiver } else { Role::Sender }),
        ..Path::unplanned(sender.address.clone(), receiver.address.clone(), pair.route.mtu)
    };
    // The ends are already ordered as sender and receiver.
    let ways = if request.both { Direction::Both } else { Direction::Forward };
    let waiting = WaitingLine::show(&spec);
    let offset = match ClockSync::unmeasured(&sender.facts, &receiver.facts, &spec) {
        Some(known) => known,
        None => ClockSync::of(shared, measure_offset(&mut sender.agent, &mut receiver.agent, &path, &spec)?),
    };
    spec.clock_offset_ns = offset.offset_ns();
    let collected = collect(&mut sender.agent, &mut receiver.agent, &path, &spec, ways)?;
    let sent_ns = collected.sent_ns() / ROUNDED_NS * ROUNDED_NS;
    let was_interrupted = sender.agent.is_interrupted();
    if was_interrupted {
        if sent_ns == 0 {
            return Err(AgentError::Interrupted.into());
        }
        // What was sent until then is the whole measurement.
        spec.probe.length = Length::Time(sent_ns);
        sender.agent.go_on();
        receiver.agent.go_on();
    }
    let clocks =
        offset.with_after(|| measure_offset(&mut sender.agent, &mut receiver.agent, &path, &spec))?;
    let run = figures(&trial, spec, &path, ways, Evidence::of(collected).with_clocks(clocks));
    if !run.is_valid() {
        // A host that is gone is an error, and gives no measurement.
        sender.agent.hello()?;
        receiver.agent.hello()?;
    }
    drop(waiting);
    let printed = print(common, &request, direction, &run, &[&sender.facts, &receiver.facts]);
    if was_interrupted {
        eprintln!("stacklab: the figures are of {}, until the interruption", print_duration(sent_ns));
        return Err(AgentError::Interrupted.into());
    }
    printed
}

/// Refuses the first of these that is given, for this reason.
pub(super) fn refuse(given: &[(bool, &str)], why: &str) -> Result<(), Failure> {
    let first = given.iter().find(|(given, _)| *given);
    first.map_or(Ok(()), |(_, what)| Err(Failure::usage(format!("{what}{why}"))))
}

pub(super) fn direction(common: &CommonOptions, request: &MeasureRequest) -> Direction {
    match (common.reverse, request.both) {
        (_, true) => Direction::Both,
        (true, _) => Direction::Reverse,
        _ => Direction::Forward,
    }
}

/// Prints a run, which is an error if it is invalid.
fn print(
    common: &CommonOptions,
    request: &MeasureRequest,
    direction: Direction,
    run: &RunRecord,
    facts: &[&HostFacts],
) -> Result<(), Failure> {
    let rows = request.interval_ns > 0;
    print_text(&match common.json {
        true => measurement_json(run, facts),
        false => measurement(run, &MeasurementText { version: env!("CARGO_PKG_VERSION"), direction, rows }),
    })?;
    if run.is_valid() { Ok(()) } else { Err(Failure::invalid_run()) }
}

/// A token that other measurements between the same hosts do not have.
fn token() -> u32 {
    (now_unix_ns() / 1000) as u32 ^ std::process::id().rotate_left(16)
}

/// A line on a terminal with the expected duration. It is printed before the measurement and erased afterwards: the
/// terminal is not updated while packets are counted.
struct WaitingLine(bool);

impl WaitingLine {
    fn show(spec: &TrialSpec) -> Self {
        let shown = std::io::stderr().is_terminal();
        if shown {
            let warmup = spec.probe.warmup_ns;
            match spec.probe.length {
                Length::Time(ns) => eprint!("measuring for {} ...", print_duration(warmup + ns)),
                Length::Packets(packets) => eprint!("measuring {packets} messages ..."),
            }
            let _ = std::io::stderr().flush();
        }
        WaitingLine(shown)
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        if self.0 {
            // Return to the start of the line and clear it.
            eprint!("\r\x1b[K");
        }
    }
}
