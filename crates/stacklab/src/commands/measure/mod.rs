//! `stacklab measure`: a single trial between this host and another one.

mod comparison;
mod iperf3;
mod options;
mod search;
mod stamp;
mod study;
#[cfg(test)]
mod tests;

pub(crate) use options::MeasureOptions;

use crate::failure::{Failure, NO_DATA, interrupt_flag};
use crate::output::print_text;
use comparison::against;
use options::{CommonOptions, Peer};
use search::search;
use stacklab_agent::client::{self, AgentAddress};
use stacklab_campaign::rig::AgentProcess;
use stacklab_campaign::single::{MeasureRequest, check, plan};
use stacklab_campaign::trial::Evidence;
use stacklab_campaign::trial::clock::{ClockSync, one_machine};
use stacklab_campaign::trial::figures::figures;
use stacklab_model::{
    Direction, Family, HostFacts, Length, Probe, Received, Role, RunRecord, Trial, TrialSpec, count,
    print_duration, say, say_part,
};
use stacklab_report::{MeasurementText, measurement, measurement_json};
use stacklab_traffic::host::now_unix_ns;
use stacklab_traffic::host::zone::route_to;
use stacklab_traffic::protocol::{AgentClient, AgentError};
use stacklab_traffic::sign_of_life::SignOfLife;
use stacklab_traffic::timing::{SLACK, longest};
use stacklab_trial::{Path, collect, measure_offset};
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// The time of an interrupted measurement is rounded to it.
const ROUNDED_NS: u64 = 1_000_000;

pub(crate) fn measure(options: &MeasureOptions) -> Result<(), Failure> {
    let common = options.common();
    let request = options.request();
    if common.peer != Peer::Stamp {
        check(&request)?;
    }
    let interrupted = interrupt_flag()?;
    match common.peer {
        Peer::Agent => {}
        Peer::Iperf3 => return iperf3::measure_iperf3(common, &request, interrupted),
        Peer::Stamp => return stamp::measure(common, &request, options.stamp(), interrupted),
    }
    match (common.against, request.searched_loss_ppm) {
        (Some(baseline), Some(loss_ppm)) => search(common, &request, baseline, loss_ppm, interrupted),
        (Some(baseline), None) => against(common, &request, baseline, interrupted),
        (None, _) => single(common, &request, interrupted),
    }
}

fn single(
    common: &CommonOptions,
    request: &MeasureRequest,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    let (there, address) = reach(common, &[], interrupted)?;
    let met = Instant::now();
    let route = route_to(&address.address, common.target().source_to(&address.address))
        .map_err(Failure::unreachable)?;
    let (_process, mut here) = AgentProcess::here(interrupted)?;
    here.hello()?;
    let direction = direction(common, request);
    let family = Family::of(route.address.ip());
    // Sender first. The zone of another host's address is known to its agent only.
    let mut agents = [here, there];
    let mut addresses = [route.address, address.address.elsewhere()];
    if common.reverse {
        agents.reverse();
        addresses.reverse();
    }
    let [sender, receiver] = &mut agents;
    let facts = [sender.facts()?, receiver.facts()?];
    let shared = one_machine(&facts[0], &facts[1]);
    let (trial, spec) = plan(request, family, direction, shared, token())?;
    for agent in [&mut *sender, &mut *receiver] {
        agent.keep_figures();
        // On a path that loses much, each step may take long.
        agent.must_end(met + longest(&spec) + SLACK);
    }
    let [from, to] = addresses;
    let path = Path {
        // Nothing need be let in here.
        opener: Some(if common.reverse { Role::Receiver } else { Role::Sender }),
        ..Path::unplanned(from, to, route.mtu)
    };
    // The ends are already ordered as sender and receiver.
    let ways = if request.both { Direction::Both } else { Direction::Forward };
    let waiting = WaitingLine::show(&spec);
    let Done { run, interrupted_after_ns } = run_once(&mut agents, &path, &trial, spec, ways, &facts)?;
    drop(waiting);
    let printed = print(common, request, direction, &run, &[&facts[0], &facts[1]]);
    if let Some(ns) = interrupted_after_ns {
        say!("stacklab: the figures are of {}, until the interruption", print_duration(ns));
        return Err(AgentError::Interrupted.into());
    }
    printed
}

/// A measurement, and how long it was if it was interrupted.
struct Done {
    run: RunRecord,
    interrupted_after_ns: Option<u64>,
}

/// Measures once between two agents, sender first, and compares their clocks before and after it. What was sent until
/// an interruption is the whole measurement; one that had sent nothing is an error, and so is a host that is gone.
fn run_once(
    agents: &mut [AgentClient; 2],
    path: &Path,
    trial: &Trial,
    mut spec: TrialSpec,
    ways: Direction,
    facts: &[HostFacts; 2],
) -> Result<Done, Failure> {
    let [sender, receiver] = agents;
    let shared = one_machine(&facts[0], &facts[1]);
    let offset = match ClockSync::unmeasured(&facts[0], &facts[1], &spec) {
        Some(known) => known,
        None => ClockSync::of(shared, measure_offset(sender, receiver, path, &spec)?),
    };
    spec.clock_offset_ns = offset.offset_ns();
    let collected = collect(sender, receiver, path, &spec, ways)?;
    let sent_ns = collected.sent_ns() / ROUNDED_NS * ROUNDED_NS;
    let interrupted_after_ns = sender.is_interrupted().then_some(sent_ns);
    if interrupted_after_ns.is_some() {
        if sent_ns == 0 {
            return Err(AgentError::Interrupted.into());
        }
        spec.probe.length = Length::Time(sent_ns);
        sender.go_on();
        receiver.go_on();
    }
    let mut evidence = Evidence::of(collected);
    evidence.clocks = offset.with_after(|| measure_offset(sender, receiver, path, &spec))?;
    let run = figures(trial, spec, path, ways, evidence);
    if !run.is_valid() {
        sender.hello()?;
        receiver.hello()?;
    }
    Ok(Done { run, interrupted_after_ns })
}

/// Connects to the agent on the first address of the host that accepts. `others` are further addresses of the host, to
/// and from which there will be traffic.
fn reach(
    common: &CommonOptions,
    others: &[AgentAddress],
    interrupted: &'static AtomicBool,
) -> Result<(AgentClient, AgentAddress), Failure> {
    Ok(client::reach(&common.target(), others, &ask_key, interrupted)?)
}

/// Asks for an agent's key, if a person is there to answer.
fn ask_key(there: &AgentAddress) -> Option<io::Result<String>> {
    let is_person = io::stdin().is_terminal();
    is_person.then(|| rpassword::prompt_password(format!("Key of the agent on {there}: ")))
}

/// Refuses the first of these that is given, for this reason.
fn refuse(given: &[(bool, &str)], why: &str) -> Result<(), Failure> {
    let first = given.iter().find(|(given, _)| *given);
    first.map_or(Ok(()), |(_, what)| Err(Failure::usage(format!("{what}{why}"))))
}

fn direction(common: &CommonOptions, request: &MeasureRequest) -> Direction {
    match (common.reverse, request.both) {
        (_, true) => Direction::Both,
        (true, _) => Direction::Reverse,
        _ => Direction::Forward,
    }
}

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
    if !run.is_valid() {
        return Err(Failure::invalid_run());
    }
    refuse_without_arrivals(run)
}

/// A path that nothing gets through has a loss of 100 %, and no figure of anything else: a script has to notice.
fn refuse_without_arrivals(run: &RunRecord) -> Result<(), Failure> {
    let [sender, receiver, ..] = run.host_reports.as_slice() else { return Ok(()) };
    let sent = count(sender.sent.measured, "message");
    let family = run.spec.family;
    let probe = run.spec.probe.probe;
    let why = if probe.echoes() && sender.received.measured == 0 {
        format!("no answer came back to {sent} over {family}: there is no round trip")
    } else if probe == Probe::Stream && sender.sent.measured > 0 && has_nothing(&receiver.received) {
        format!("none of {sent} arrived over {family}: there is no throughput and no delay")
    } else {
        return Ok(());
    };
    Err(Failure::new(NO_DATA, format!("{why} (the output above says what to check)")))
}

/// Whether a receiver got neither a message nor a part of one.
fn has_nothing(received: &Received) -> bool {
    received.measured == 0 && received.bytes == 0 && received.cut_bytes == 0
}

/// A token that other measurements between the same hosts do not have.
fn token() -> u32 {
    (now_unix_ns() / 1000) as u32 ^ std::process::id().rotate_left(16)
}

/// On a terminal a line with the expected duration, which is erased afterwards. It changes, and elsewhere a line is
/// printed, every five seconds only: packets are counted meanwhile.
struct WaitingLine {
    is_erased: bool,
    _sign_of_life: SignOfLife,
}

impl WaitingLine {
    fn show(spec: &TrialSpec) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let what = match spec.probe.length {
            Length::Time(ns) => format!("measuring for {}", print_duration(spec.probe.warmup_ns + ns)),
            Length::Packets(packets) => format!("measuring {}", count(packets, "message")),
        };
        if is_terminal {
            say_part!("{what} ...");
            let _ = std::io::stderr().flush();
        }
        let sign_of_life = SignOfLife::new(move |what, seconds| match is_terminal {
            true => say_part!("\r\x1b[K{what} ... {seconds} s so far"),
            false => say!("stacklab: {what}: {seconds} s so far"),
        });
        sign_of_life.begin(what);
        WaitingLine { is_erased: is_terminal, _sign_of_life: sign_of_life }
    }
}

impl Drop for WaitingLine {
    fn drop(&mut self) {
        if self.is_erased {
            // Return to the start of the line and clear it.
            say_part!("\r\x1b[K");
        }
    }
}
