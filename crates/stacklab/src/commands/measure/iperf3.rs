//! `stacklab measure tcp|udp HOST --peer iperf3`: to a server of iperf3, once or both families by turns.

use crate::commands::measure::comparison::FamilyComparison;
use crate::commands::measure::options::CommonOptions;
use crate::commands::measure::study::{Arms, arms_at_low_rate, message_size, study_text};
use crate::commands::measure::{direction, print, refuse};
use crate::failure::{Failure, campaign_error};
use stacklab_agent::client::{AgentAddress, addresses, both_families, unreachable};
use stacklab_agent::target::name_failures;
use stacklab_campaign::single::{MeasureRequest, study_of_one, trial_of};
use stacklab_campaign::trial::spec::spec_without_rig;
use stacklab_model::{
    CpuScope, Direction, Family, Io, Length, Probe, RunRecord, SizeOf, Transport, Trial, TrialSpec,
};
use stacklab_protocols::iperf3::client::{self, ClientError, Test};
use stacklab_protocols::iperf3::figures::run_of;
use stacklab_protocols::iperf3::{MAX_BLOCK_BYTES, MAX_STREAMS, Parameters};
use stacklab_store::HostRow;
use stacklab_traffic::host::zone::{Route, route_to};
use stacklab_traffic::host::{facts, now_unix_ns};
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::Path;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const SECOND_NS: u64 = 1_000_000_000;
/// How often a busy server, or one that does not listen between two tests, is asked again in a campaign, and after
/// which pause.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(500);

pub(super) fn measure_iperf3(
    common: &CommonOptions,
    request: &MeasureRequest,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    check(common, request)?;
    let direction = direction(common, request);
    if let Some(baseline) = common.against {
        return against(common, request, baseline, direction, interrupted);
    }
    let mut failed = Vec::new();
    for address in addresses(&common.target())? {
        let way = ServerRoute::to(address, common)?;
        let study = study_of_one(request, way.describe(common), way.family(), direction)?;
        let trial = trial_of(&study);
        let spec = spec_without_rig(&study, 0, &trial);
        match way.run(&trial, spec, direction, interrupted, true) {
            Ok(run) => {
                name_failures(&failed, &way.there);
                let printed = print(common, request, direction, &run, &[&facts::collect()]);
                return if interrupted.load(Ordering::Relaxed) {
                    printed.and(Err(AgentError::Interrupted.into()))
                } else {
                    printed
                };
            }
            Err(ClientError::Io { attempted: "connect", reason, .. }) => {
                failed.push((way.there, reason));
            }
            Err(error) => return Err(error.into()),
        }
    }
    let host = &common.host;
    let port = common.port();
    let service = format!("`iperf3 -s -p {port}`");
    Err(unreachable("no iperf3 server could be reached", &failed, &service, host, port).into())
}

fn check(common: &CommonOptions, request: &MeasureRequest) -> Result<(), Failure> {
    let &MeasureRequest { probe, transport, size_of, io, delays, flows, size, length, warmup_ns, .. } =
        request;
    let refused = [
        (probe != Probe::Stream, "only streams (tcp, udp) go with --peer iperf3"),
        (size_of != SizeOf::Write, "--size-of payload"),
        (request.searched_loss_ppm.is_some(), "--search"),
        (io == Some(Io::Zerocopy), "--io zerocopy"),
        (delays && transport == Transport::Tcp, "--delays"),
        (warmup_ns % SECOND_NS != 0, "-O of a fraction of a second"),
        (warmup_ns > 600 * SECOND_NS, "-O of more than 600 s"),
        (matches!(length, Length::Time(ns) if ns > 86_400 * SECOND_NS), "-t of more than a day"),
        (flows > MAX_STREAMS, "more than 128 streams"),
        (size.is_some_and(|size| size > MAX_BLOCK_BYTES), "-l of more than 1M"),
        (warmup_ns > 0 && common.against.is_some(), "-O with --against"),
        (common.tls.is_some() || common.key_file.is_some(), "--tls and --key-file"),
    ];
    refuse(&refused, ": an iperf3 server cannot do this, use an agent of stacklab")
}

struct ServerRoute {
    here: Route,
    there: AgentAddress,
}

impl ServerRoute {
    fn to(there: AgentAddress, common: &CommonOptions) -> Result<Self, Failure> {
        let here = route_to(&there.address, common.target().source_to(&there.address))
            .map_err(Failure::unreachable)?;
        Ok(ServerRoute { here, there })
    }

    fn describe(&self, common: &CommonOptions) -> String {
        format!("to the iperf3 server {}: {} over {}", common.host, self.there, self.here.interface)
    }

    fn family(&self) -> Family {
        Family::of(self.there.address.ip())
    }

    /// Runs a trial. The size of a message is said in full, so that it is the same in both families: without it, iperf3
    /// takes what fits a segment of the control connection.
    fn run(
        &self,
        trial: &Trial,
        mut spec: TrialSpec,
        direction: Direction,
        interrupted: &AtomicBool,
        keeps_figures: bool,
    ) -> Result<RunRecord, ClientError> {
        spec.cpu_scope = CpuScope::Host;
        if spec.transport == Transport::Tcp {
            // iperf3's streams end without a last message that would push what is held back.
            spec.io = Io::Send;
        }
        let io = spec.io;
        let test = Test {
            from: self.here.address.clone(),
            to: self.there.socket,
            parameters: Parameters::of(&spec, direction),
            length: spec.probe.length,
            io,
            interrupted,
            keeps_figures,
        };
        let outcome = client::run(&test)?;
        if interrupted.load(Ordering::Relaxed) {
            spec.probe.length = Length::Time(outcome.window_ns);
        }
        let here = self.here.address.clone();
        let there = self.there.address.elsewhere();
        let [sender, receiver] = if direction == Direction::Reverse { [there, here] } else { [here, there] };
        let path = Path::without_plan(sender, receiver, self.here.mtu);
        Ok(run_of(trial, spec, &path, &outcome))
    }
}

/// Both families to one server. It serves one client at a time, so the families' tests alternate, in blocks of one
/// short test of each in random order.
fn against(
    common: &CommonOptions,
    request: &MeasureRequest,
    baseline: Family,
    direction: Direction,
    interrupted: &'static AtomicBool,
) -> Result<(), Failure> {
    arms_at_low_rate(request)?;
    let request = &MeasureRequest { size: Some(message_size(request, false)), ..request.clone() };
    let comparison =
        FamilyComparison::new(common, study_text(common, request, baseline, Arms::Alternating, true)?)?;
    let mut ways = BTreeMap::new();
    // Of several addresses of a family, those that accept a connection were looked for.
    let was_tried = addresses(&common.target())?.len() > Family::ALL.len();
    for (family, address) in both_families(&common.target())? {
        ways.insert(family, ServerRoute::to(address, common)?);
    }
    let described: Vec<String> =
        ways.values().map(|way| format!("{} over {}", way.there, way.here.interface)).collect();
    let description = format!("to the iperf3 server {}: {}", common.host, described.join(", "));
    let host = HostRow {
        name: "here".to_owned(),
        kind: "this host".to_owned(),
        since_unix_ns: now_unix_ns(),
        facts: facts::collect(),
    };
    comparison.measure(description, CpuScope::Host, vec![host], |study, _, trials| {
        let runs = trials.iter().map(|trial| {
            let spec = spec_without_rig(study, 0, trial);
            let way = &ways[&trial.cell.family];
            patiently(was_tried || trial.block > 0, || {
                way.run(trial, spec.clone(), direction, interrupted, false)
            })
            .map_err(campaign_error)
        });
        runs.collect()
    })
}

/// Asks again where another client is served: between two tests others may have theirs. A server that served before is
/// asked again, too, where it refuses the connection: after each test iperf3 closes its port, and opens it anew.
fn patiently(
    served_before: bool,
    mut run: impl FnMut() -> Result<RunRecord, ClientError>,
) -> Result<RunRecord, ClientError> {
    for _ in 1..BUSY_TRIES {
        match run() {
            Err(error) if is_passing(&error, served_before) => thread::sleep(BUSY_PAUSE),
            done => return done,
        }
    }
    run()
}

fn is_passing(error: &ClientError, served_before: bool) -> bool {
    match error {
        ClientError::Busy(_) => true,
        ClientError::Io { attempted: "connect", reason, .. } => {
            served_before && reason.kind() == io::ErrorKind::ConnectionRefused
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_served_before_is_retried_on_refusal() {
        for (served_before, expected) in [(false, 1), (true, 2)] {
            let mut asked = 0;
            let error = patiently(served_before, || {
                asked += 1;
                if asked > 1 {
                    return Err(ClientError::Interrupted);
                }
                let reason = io::ErrorKind::ConnectionRefused.into();
                Err(ClientError::Io { attempted: "connect", at: "server".to_owned(), reason })
            });
            assert!(error.is_err());
            assert_eq!(asked, expected, "served before: {served_before}");
        }
    }
}
