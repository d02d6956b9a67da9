//! Measures the clock offset between two agents' hosts.

use crate::execute::{Sending, execute};
use crate::path::Path;
use crate::transfers;
use stacklab_model::{Direction, Io, Length, Pacing, Probe, SizeOf, TrialSpec, Tuning};
use stacklab_traffic::protocol::AgentClient;
use stacklab_traffic::protocol::AgentError;
use stacklab_traffic::stats::clock::{self, Offset};

/// Length of the echo that measures the round trip.
const ECHO_NS: u64 = 250_000_000;
/// How long its ends poll, so that the round trip excludes wake-up times.
const POLL_NS: u64 = 1_000_000;

/// Clock offset of the second agent's host from the first one's, measured with an echo over the path and the
/// transport of the trial. The inner result is the reason if it failed.
pub fn measure_offset(
    first: &mut AgentClient,
    second: &mut AgentClient,
    path: &Path,
    trial: &TrialSpec,
) -> Result<Result<Offset, String>, AgentError> {
    let mut spec = TrialSpec {
        token: trial.token.rotate_left(8) ^ 0x0c10_0c10,
        message_bytes: 64,
        size_of: SizeOf::Write,
        poll_ns: POLL_NS,
        io: Io::Send,
        flows: 1,
        clock_offset_ns: 0,
        // Default socket options: a trial's own options may delay small messages.
        tuning: Tuning::default(),
        ..trial.clone()
    };
    spec.probe.probe = Probe::Echo;
    spec.probe.pacing = Pacing::Lockstep;
    spec.probe.length = Length::Time(ECHO_NS);
    spec.probe.warmup_ns = 0;
    spec.probe.metrics = Vec::new();
    let transfers = transfers::of(path, &spec, Direction::Forward);
    match execute(&mut [[first, second]], &transfers, Sending::AtOnce) {
        Ok(host_reports) => {
            let least = host_reports.first().and_then(|ends| ends.sender.received.least_round_trip);
            Ok(clock::offset(least).ok_or_else(|| "no message came back, or the agent is older".to_owned()))
        }
        Err(AgentError::Failed { host, reason }) => Ok(Err(format!("{host} {reason}"))),
        Err(error) => Err(error),
    }
}
