//! A server of iperf3 as the other host of trials. It has no agent: what it did is its word.

use crate::CampaignError;
use crate::rig::machines::describe_ways;
use crate::rig::{TrialHosts, this_host};
use crate::trial::SingleRun;
use crate::trial::spec::spec_without_rig;
use stacklab_model::{CpuScope, Direction, Family, Io, Length, RunRecord, ScopedAddr, Transport, Trial};
use stacklab_protocols::iperf3::Parameters;
use stacklab_protocols::iperf3::client::{self, ClientError, OpenControl, Test};
use stacklab_protocols::iperf3::figures::run_of;
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use stacklab_traffic::host::zone::Route;
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::Path;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How often a busy server, or one that does not listen between two tests, is asked again in a campaign, and after
/// which pause.
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// The way to a server in one family.
pub struct ServerWay {
    /// From this host.
    pub here: Route,
    /// The server's address, with its zone as this host names it.
    pub there: ScopedAddr,
    /// The same with the port, as this host's kernel takes it.
    pub socket: SocketAddr,
}

/// This host and a server of iperf3, which serves one client at a time.
pub struct Iperf3Server {
    name: String,
    ways: BTreeMap<Family, ServerWay>,
    /// Whether the server sends in trials of the forward direction.
    reverse: bool,
    /// The connection for the first test, if it was opened to find the server's address.
    open: Option<OpenControl>,
    /// Whether it has accepted a connection before: where it then refuses one, it is between two tests.
    has_served: bool,
    interrupted: &'static AtomicBool,
}

impl Iperf3Server {
    /// The server that the user names so, over one family: opens the connection for the first test.
    pub fn connect(name: &str, way: ServerWay, interrupted: &'static AtomicBool) -> io::Result<Self> {
        let open = OpenControl::connect(&way.here.address, way.socket)?;
        let family = Family::of(way.there.ip());
        let server = Self::over(name, BTreeMap::from([(family, way)]), false, true, interrupted);
        Ok(Iperf3Server { open: Some(open), ..server })
    }

    /// The server over these families, which may have accepted a connection before. With `reverse` it is the sender.
    pub fn over(
        name: &str,
        ways: BTreeMap<Family, ServerWay>,
        reverse: bool,
        has_served: bool,
        interrupted: &'static AtomicBool,
    ) -> Self {
        Iperf3Server { name: name.to_owned(), ways, reverse, open: None, has_served, interrupted }
    }

    /// Asks again where another client is served: between two tests others may have theirs.
    fn run_patiently(&mut self, study: &Study, trial: &Trial) -> Result<RunRecord, ClientError> {
        let has_served = self.has_served || trial.block > 0;
        retry(has_served, || self.run_test(study, trial, false))
    }

    /// Runs a trial. The size of a message is said in full, so that it is the same in both families: without it, iperf3
    /// takes what fits a segment of the control connection.
    fn run_test(
        &mut self,
        study: &Study,
        trial: &Trial,
        keeps_figures: bool,
    ) -> Result<RunRecord, ClientError> {
        let ServerWay { here, there, socket } = &self.ways[&trial.cell.family];
        let direction = if self.reverse { Direction::Reverse } else { Direction::of(&trial.cell) };
        let mut spec = spec_without_rig(study, 0, trial);
        spec.cpu_scope = CpuScope::Host;
        if spec.transport == Transport::Tcp {
            // iperf3's streams end without a last message that would push what is held back.
            spec.io = Io::Send;
        }
        let test = Test {
            from: here.address.clone(),
            to: *socket,
            parameters: Parameters::of(&spec, direction),
            length: spec.probe.length,
            io: spec.io,
            interrupted: self.interrupted,
            keeps_figures,
        };
        let outcome = client::run(&test, self.open.take())?;
        if self.interrupted.load(Ordering::Relaxed) {
            spec.probe.length = Length::Time(outcome.window_ns);
        }
        let [sender, receiver] = match direction {
            Direction::Reverse => [there.elsewhere(), here.address.clone()],
            _ => [here.address.clone(), there.elsewhere()],
        };
        let path = Path::without_plan(sender, receiver, here.mtu);
        Ok(run_of(trial, spec, &path, &outcome))
    }
}

impl TrialHosts for Iperf3Server {
    fn describe(&self, _: &Study) -> String {
        let ways = describe_ways(self.ways.values().map(|way| (&way.there, &way.here)));
        let toward = if self.reverse { "from" } else { "to" };
        format!("{toward} the iperf3 server {}: {ways}", self.name)
    }

    fn hosts(&mut self) -> Result<Vec<HostRow>, CampaignError> {
        Ok(vec![this_host()])
    }

    fn cpu_scope(&self, _: &Study) -> CpuScope {
        CpuScope::Host
    }

    fn run(
        &mut self,
        study: &Study,
        _: &Plan,
        arms: &[Trial],
        _: &[RunRecord],
    ) -> Result<Vec<RunRecord>, CampaignError> {
        let mut runs = Vec::new();
        for trial in arms {
            runs.push(self.run_patiently(study, trial).map_err(end_campaign)?);
        }
        Ok(runs)
    }

    fn run_once(
        &mut self,
        study: &Study,
        _: &Plan,
        trial: &Trial,
        _: u64,
    ) -> Result<SingleRun, CampaignError> {
        let run = self.run_test(study, trial, true).map_err(end_campaign)?;
        let interrupted_after_ns = match run.spec.probe.length {
            Length::Time(ns) if self.interrupted.load(Ordering::Relaxed) => Some(ns),
            _ => None,
        };
        Ok(SingleRun { run, interrupted_after_ns })
    }
}

fn end_campaign(error: ClientError) -> CampaignError {
    match error {
        ClientError::Interrupted => AgentError::Interrupted.into(),
        error => CampaignError::Unreachable(error.to_string()),
    }
}

/// Runs a test again while the reason for its failure passes.
fn retry(
    has_served: bool,
    mut run: impl FnMut() -> Result<RunRecord, ClientError>,
) -> Result<RunRecord, ClientError> {
    for _ in 1..BUSY_TRIES {
        match run() {
            Err(error) if is_passing(&error, has_served) => thread::sleep(BUSY_PAUSE),
            done => return done,
        }
    }
    run()
}

/// A server that has served is asked again, too, where it refuses the connection: after each test iperf3 closes its
/// port, and opens it anew.
fn is_passing(error: &ClientError, has_served: bool) -> bool {
    match error {
        ClientError::Busy(_) => true,
        ClientError::Io { attempted: "connect", reason, .. } => {
            has_served && reason.kind() == io::ErrorKind::ConnectionRefused
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_that_served_before_is_retried_on_refusal() {
        for (has_served, expected) in [(false, 1), (true, 2)] {
            let mut asked = 0;
            let error = retry(has_served, || {
                asked += 1;
                if asked > 1 {
                    return Err(ClientError::Interrupted);
                }
                let reason = io::ErrorKind::ConnectionRefused.into();
                Err(ClientError::Io { attempted: "connect", at: "server".to_owned(), reason })
            });
            assert!(error.is_err());
            assert_eq!(asked, expected, "has served: {has_served}");
        }
    }
}
