//! `stacklab fleet`: one campaign over many machines.

mod agent;
mod run;
mod view;

use crate::failure::{Failure, INTERRUPTED, OTHER, RECORD, UNREACHABLE};
use clap::{Args, Subcommand};
use stacklab_fleet::FleetError;
use stacklab_fleet::store::{CampaignRow, Store};
use stacklab_fleet::wire::Wire;
use stacklab_fleet::wire::local::LocalWire;
use stacklab_fleet::wire::nats::NatsWire;
use std::path::PathBuf;
use std::sync::Arc;

/// The commands of a fleet.
#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    /// Run a study on pairs of agents, or continue a campaign, and print the verdicts
    Run(run::RunOptions),
    /// Print how far a campaign is: pairs, blocks and failures
    Status(view::CampaignOptions),
    /// Hand out no more blocks of a campaign
    Stop(view::CampaignOptions),
    /// List the agents that answer
    Agents(WireOptions),
    /// Print the verdicts of each pair and over all pairs, or write the record of one pair
    Report(view::ReportOptions),
    /// Write the runs of all pairs as Parquet files, partitioned by campaign and day
    Export(view::ExportOptions),
    /// Check store, NATS and agents, and say what is unsafe
    Doctor(view::DoctorOptions),
    /// Run an agent, which measures what the coordinator of its fleet hands out
    Agent(agent::AgentOptions),
}

/// How the agents are reached.
#[derive(Debug, Args)]
pub(crate) struct WireOptions {
    /// The folder of this machine's agents; default: stacklab-fleet in XDG_RUNTIME_DIR, or in the cache
    #[arg(long, value_name = "DIR", conflicts_with = "server")]
    pub dir: Option<PathBuf>,
    /// Servers of NATS, over which agents on other hosts are reached: nats://HOST:4222 or tls://HOST, several with
    /// commas
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The credentials for NATS, as nsc writes them
    #[arg(long, value_name = "FILE", requires = "server")]
    pub creds: Option<PathBuf>,
}

/// Which store.
#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Where campaigns and results are: a SQLite file, created if missing, or postgres://USER@HOST/DATABASE
    #[arg(long, value_name = "PLACE", default_value = "fleet.db")]
    pub store: String,
}

impl StoreOptions {
    /// The option, for a command that uses the same store.
    fn option(&self) -> String {
        format!(" --store {}", self.store)
    }
}

/// Does what a command of a fleet says.
pub(crate) fn fleet(command: FleetCommand) -> Result<(), Failure> {
    match command {
        FleetCommand::Run(options) => run::run(options),
        FleetCommand::Status(options) => view::status(&options),
        FleetCommand::Stop(options) => view::stop(&options),
        FleetCommand::Agents(options) => view::agents(&options),
        FleetCommand::Report(options) => view::report(&options),
        FleetCommand::Export(options) => view::export(&options),
        FleetCommand::Doctor(options) => view::doctor(&options),
        FleetCommand::Agent(options) => agent::agent(&options),
    }
}

impl WireOptions {
    /// The way of a coordinator, or of the agent with this name.
    fn open(&self, agent: Option<&str>) -> Result<Arc<dyn Wire>, Failure> {
        if let Some(server) = &self.server {
            return Ok(Arc::new(NatsWire::connect(server, self.creds.as_deref(), agent)?));
        }
        Ok(Arc::new(LocalWire::new(&self.dir.clone().unwrap_or_else(|| folder().join("agents")))?))
    }
}

/// What belongs to this user's fleet on this machine.
fn folder() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    runtime.unwrap_or_else(stacklab_guests::image::cache).join("stacklab-fleet")
}

/// A campaign by name, or the newest one.
fn campaign(store: &mut Store, name: Option<&str>) -> Result<CampaignRow, Failure> {
    store.campaign(name)?.ok_or_else(|| {
        Failure::usage(match name {
            Some(name) => format!("{} has no campaign `{name}`", store.place()),
            None => format!("{} has no campaign: begin one with `stacklab fleet run`", store.place()),
        })
    })
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::Campaign(error) => error.into(),
            FleetError::Usage(_) => Failure::usage(error),
            FleetError::Store { .. } => Failure::new(RECORD, error),
            FleetError::Agent { .. } | FleetError::Wire { .. } => Failure::new(UNREACHABLE, error),
            FleetError::File { .. } | FleetError::System { .. } => Failure::new(OTHER, error),
            FleetError::Interrupted => Failure::new(INTERRUPTED, error),
        }
    }
}
