//! A STAMP or TWAMP-Light reflector as the other host of trials, each of which is a session. It has no agent: its times
//! and its numbers are its word.

use crate::CampaignError;
use crate::rig::iperf3_server::ServerWay;
use crate::rig::machines::describe_ways;
use crate::rig::{TrialHosts, this_host};
use crate::trial::SingleRun;
use crate::trial::spec::spec_without_rig;
use stacklab_model::{CpuScope, Family, Length, Pacing, RunRecord, Trial, Tuning};
use stacklab_protocols::stamp::report::Measured;
use stacklab_protocols::stamp::{
    Codec, ErrorEstimate, Extensions, SENDER_TTL, SessionFigures, StampKey, StampSession, TimeFormat,
};
use stacklab_store::HostRow;
use stacklab_study::{Plan, Study};
use stacklab_traffic::peer::{ExchangeSpec, PacketFormat, PeerError, clock_error_ns, exchange};
use stacklab_traffic::protocol::AgentError;
use stacklab_trial::Path;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// What all sessions with a reflector have in common.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Of authenticated packets.
    pub key: Option<StampKey>,
    /// What packets have besides.
    pub extensions: Extensions,
    /// Bytes of a packet; without, as few as possible.
    pub packet_bytes: Option<usize>,
    /// Session identifier; without, a random one for each.
    pub number: Option<u16>,
    /// How packets have their times.
    pub time_format: TimeFormat,
    /// The largest difference of both hosts' clocks that the user promises, nanoseconds.
    pub clock_error_ns: Option<u64>,
}

impl SessionSettings {
    /// A session with them; the error names the sizes that its packets can have.
    pub fn session(&self) -> Result<StampSession, String> {
        let codec = Codec::new(self.key.clone());
        let error = ErrorEstimate::new(self.time_format, clock_error_ns());
        StampSession::new(codec, self.extensions, self.packet_bytes, self.number, error)
    }
}

/// The packets of one session.
#[derive(Debug, Clone)]
pub struct SessionTraffic {
    /// A second.
    pub rate: f64,
    /// When it ends.
    pub length: Length,
    /// Socket options.
    pub tuning: Tuning,
}

/// This host and a reflector.
pub struct StampReflector {
    name: String,
    ways: BTreeMap<Family, ServerWay>,
    settings: SessionSettings,
    interrupted: &'static AtomicBool,
}

impl StampReflector {
    /// The reflector that the user names so, over these families.
    pub fn over(
        name: &str,
        ways: BTreeMap<Family, ServerWay>,
        settings: SessionSettings,
        interrupted: &'static AtomicBool,
    ) -> Self {
        StampReflector { name: name.to_owned(), ways, settings, interrupted }
    }

    /// Runs a session over a family. What was answered until an interruption is the whole session.
    pub fn run_session(&self, family: Family, traffic: &SessionTraffic) -> Result<Measured, CampaignError> {
        let ServerWay { here, there, socket } = &self.ways[&family];
        let session = self.settings.session().map_err(CampaignError::Usage)?;
        let spec = ExchangeSpec {
            from: here.address.clone(),
            to: *socket,
            per_second: traffic.rate,
            length: traffic.length,
            tuning: traffic.tuning.clone(),
            ttl: SENDER_TTL,
        };
        let exchange = exchange(&spec, &session, self.interrupted).map_err(end_campaign)?;
        let figures = SessionFigures::of(&exchange, self.settings.clock_error_ns, clock_error_ns());
        Ok(Measured {
            host: self.name.clone(),
            from: here.address.to_string(),
            to: there.with_port(socket.port()),
            session: session.number(),
            authenticated: self.settings.key.is_some(),
            bytes: session.bytes(),
            per_second: traffic.rate,
            said: session.last_extensions(),
            figures,
            exchange,
        })
    }

    fn run_trial(&self, study: &Study, trial: &Trial) -> Result<RunRecord, CampaignError> {
        let spec = spec_without_rig(study, 0, trial);
        let Pacing::Schedule(rate) = spec.probe.pacing else {
            unreachable!("sessions are on a schedule, and their study has its rate")
        };
        let traffic = SessionTraffic { rate, length: spec.probe.length, tuning: (*spec.tuning).clone() };
        let measured = self.run_session(trial.cell.family, &traffic)?;
        check_answers(&measured)?;
        let ServerWay { here, there, .. } = &self.ways[&trial.cell.family];
        let path = Path::without_plan(here.address.clone(), there.elsewhere(), here.mtu);
        Ok(measured.to_run(trial, spec, &path))
    }
}

/// An error if nothing was answered: what to check.
pub fn check_answers(measured: &Measured) -> Result<(), CampaignError> {
    if !measured.exchange.answers.is_empty() {
        return Ok(());
    }
    Err(CampaignError::Unreachable(format!(
        "{} did not answer: check whether a STAMP reflector runs there, whether UDP passes the firewalls, and whether \
         it requires another key (--key-file)",
        measured.to
    )))
}

impl TrialHosts for StampReflector {
    fn describe(&self, _: &Study) -> String {
        let ways = describe_ways(self.ways.values().map(|way| (&way.there, &way.here)));
        format!("to the STAMP reflector {}: {ways}", self.name)
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
            let run = self.run_trial(study, trial)?;
            // One that was cut short is none of the campaign's.
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(AgentError::Interrupted.into());
            }
            runs.push(run);
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
        let run = self.run_trial(study, trial)?;
        let sent = &run.host_reports[0].sent;
        let sent_ns = sent.last_ns.saturating_sub(sent.first_ns);
        let interrupted_after_ns = self.interrupted.load(Ordering::Relaxed).then_some(sent_ns);
        Ok(SingleRun { run, interrupted_after_ns })
    }
}

fn end_campaign(error: PeerError) -> CampaignError {
    match error {
        PeerError::Interrupted => AgentError::Interrupted.into(),
        PeerError::Refused(_) => CampaignError::Unreachable(format!(
            "{error}: start a STAMP reflector there, or name its port with -p"
        )),
        PeerError::Engine(error) => CampaignError::Unreachable(error.to_string()),
    }
}
