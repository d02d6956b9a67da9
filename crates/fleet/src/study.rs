//! The study of a fleet: it is measured on the paths that pairs of agents have.

use crate::FleetError;
use crate::store::CampaignRow;
use serde::{Deserialize, Serialize};
use stacklab_campaign::sources::StudySource;
use stacklab_model::{Factor, Topology};
use stacklab_study::{Plan, Study};
use std::time::Duration;

/// Factors that settings of sockets and messages decide. All others are of testbeds, which a fleet does not build.
const FACTORS: [Factor; 16] = [
    Factor::Family,
    Factor::Transport,
    Factor::SizeOf,
    Factor::Size,
    Factor::Replica,
    Factor::Io,
    Factor::Flows,
    Factor::Direction,
    Factor::Socket,
    Factor::SendBuffer,
    Factor::ReceiveBuffer,
    Factor::Mss,
    Factor::Nodelay,
    Factor::CongestionControl,
    Factor::Dscp,
    Factor::FlowLabel,
];
/// Added to every study: packets on paths of a fleet are those of its hosts' adapters.
const OFFLOADS: &str = "testbed.offloads=true";
/// The longest budget: it ends no pair of hosts.
const NO_BUDGET: &str = "blocks.budget=720h";
/// The time that a block is leased for: a fixed part, and this multiple of its estimated duration.
const MIN_LEASE: Duration = Duration::from_secs(60);
const LEASE_TIMES: u32 = 4;

/// A study with its changes: what an agent needs to measure any block of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetStudy {
    /// Name of the study's file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The scale, if one was chosen.
    pub scale: Option<String>,
    /// Settings that change it.
    pub settings: Vec<String>,
    /// The seed of its plan.
    pub seed: u64,
}

impl FleetStudy {
    /// A study for `blocks` blocks of each pair.
    pub fn new(
        source: StudySource,
        scale: Option<String>,
        mut settings: Vec<String>,
        seed: u64,
        blocks: u32,
    ) -> Result<Self, FleetError> {
        // Before what is set here: other topologies refuse that.
        if source.check(scale.as_deref(), &settings)?.topology != Topology::Link {
            return Err(refuse_testbed_setting("routers or a Wi-Fi network"));
        }
        // All blocks are measured, in whatever time: what each pair shows is looked at once, when it has all of them.
        settings.extend([
            OFFLOADS.to_owned(),
            format!("blocks.min={blocks}"),
            format!("blocks.max={blocks}"),
            NO_BUDGET.to_owned(),
        ]);
        let StudySource { name, text } = source;
        let study = FleetStudy { name, text, scale, settings, seed };
        study.check()?;
        Ok(study)
    }

    /// The checked study and its plan.
    pub fn check(&self) -> Result<(Study, Plan), FleetError> {
        let source = StudySource { name: self.name.clone(), text: self.text.clone() };
        let study = source.check(self.scale.as_deref(), &self.settings)?;
        if study.link_config.rate.is_some() {
            return Err(refuse_testbed_setting("testbed.rate"));
        }
        for factor in Factor::ALL.iter().filter(|factor| !FACTORS.contains(factor)) {
            let level = study.cells.iter().find_map(|cell| cell.settings.get(*factor));
            if let Some(level) = level {
                return Err(refuse_testbed_setting(&format!("factors.{factor} = {level}")));
            }
        }
        let plan = Plan::new(&study, self.seed);
        Ok((study, plan))
    }

    /// How long a block may take before it is leased again.
    pub fn lease(&self) -> Result<Duration, FleetError> {
        let (study, plan) = self.check()?;
        Ok(MIN_LEASE + LEASE_TIMES * Duration::from_nanos(plan.estimate(&study).block_ns))
    }
}

/// The study of a campaign.
pub fn study_of(campaign: &CampaignRow) -> Result<FleetStudy, FleetError> {
    serde_json::from_str(&campaign.request).map_err(|error| {
        FleetError::Usage(format!(
            "the campaign {} was not made by this version of stacklab: {error}",
            campaign.id
        ))
    })
}

fn refuse_testbed_setting(what: &str) -> FleetError {
    FleetError::Usage(format!(
        "a fleet measures the paths between its agents and builds no testbed, but the study has {what}: leave it out with --set or --without"
    ))
}
