//! `stacklab measure`: a single trial between this host and another one.

mod comparison;
mod options;
mod peers;
mod routes;
mod search;
mod single;
mod stamp;
mod study;
#[cfg(test)]
mod tests;

pub(crate) use options::MeasureOptions;

use crate::failure::{Failure, NO_DATA, interrupt_flag};
use crate::output::print_text;
use comparison::against;
use options::CommonOptions;
use peers::PeerProgram;
use search::search;
use single::measure_once;
use stacklab_agent::client::AgentAddress;
use stacklab_campaign::single::MeasureRequest;
use stacklab_model::{HostFacts, Probe, Received, RunRecord, count};
use stacklab_report::{MeasurementText, measurement, measurement_json};
use stamp::measure_session;
use std::io::{self, IsTerminal};

pub(crate) fn measure(options: &MeasureOptions) -> Result<(), Failure> {
    let common = options.common();
    let asked = options.request();
    let peer = PeerProgram::of(options, &asked)?;
    let request = &peer.fit(asked);
    let target = &common.target();
    let interrupted = interrupt_flag()?;
    match (common.against, request.searched_loss_ppm, &peer) {
        (Some(baseline), Some(loss_ppm), _) => {
            search(common, request, target, baseline, loss_ppm, interrupted)
        }
        (Some(baseline), None, _) => against(common, request, target, &peer, baseline, interrupted),
        (None, _, PeerProgram::StampReflector(settings)) => {
            measure_session(common, request, target, settings, interrupted)
        }
        (None, ..) => measure_once(common, request, target, &peer, interrupted),
    }
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

fn print(
    common: &CommonOptions,
    request: &MeasureRequest,
    run: &RunRecord,
    facts: &[&HostFacts],
) -> Result<(), Failure> {
    let about = MeasurementText {
        version: env!("CARGO_PKG_VERSION"),
        direction: request.direction,
        rows: request.interval_ns > 0,
    };
    print_text(&match common.json {
        true => measurement_json(run, facts),
        false => measurement(run, &about),
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
