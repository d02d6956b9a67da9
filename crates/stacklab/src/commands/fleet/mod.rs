//! `stacklab fleet`: one campaign over many machines.

mod run;
mod view;

use crate::failure::{Failure, INTERRUPTED, OTHER, RECORD, UNREACHABLE, interrupt_flag};
use clap::{Args, Subcommand};
use stacklab_campaign::lab::state::runtime_folder;
use stacklab_fleet::FleetError;
use stacklab_fleet::agent::FleetAgent;
use stacklab_fleet::pairs::label;
use stacklab_fleet::store::{AgentInfo, CampaignRow, Store};
use stacklab_fleet::wire::Wire;
use stacklab_fleet::wire::local::LocalWire;
use stacklab_fleet::wire::nats::NatsWire;
use stacklab_traffic::agent::Network;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

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
    Agent(AgentOptions),
}

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

pub(crate) fn fleet(command: FleetCommand) -> Result<(), Failure> {
    match command {
        FleetCommand::Run(options) => run::run(options),
        FleetCommand::Status(options) => view::status(&options),
        FleetCommand::Stop(options) => view::stop(&options),
        FleetCommand::Agents(options) => view::agents(&options),
        FleetCommand::Report(options) => view::report(&options),
        FleetCommand::Export(options) => view::export(&options),
        FleetCommand::Doctor(options) => view::doctor(&options),
        FleetCommand::Agent(options) => agent(&options),
    }
}

impl WireOptions {
    fn open(&self, agent: Option<&str>) -> Result<Arc<dyn Wire>, Failure> {
        if let Some(server) = &self.server {
            return Ok(Arc::new(NatsWire::connect(server, self.creds.as_deref(), agent)?));
        }
        Ok(Arc::new(LocalWire::new(&self.dir.clone().unwrap_or_else(|| folder().join("agents")))?))
    }
}

/// What belongs to this user's fleet on this machine.
fn folder() -> PathBuf {
    runtime_folder("stacklab-fleet")
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

#[derive(Debug, Args)]
pub(crate) struct AgentOptions {
    /// Its name, unique in the fleet; default: the name of this host
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// A label, by which --pairs selects it: site=a; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Its address of each family, as other agents reach it; default: the loopback addresses
    #[arg(long = "address", value_name = "ADDRESS")]
    pub addresses: Vec<IpAddr>,
    /// A link that it shares with other agents, by any name: one exclusive block at a time crosses it; may be repeated
    #[arg(long = "link", value_name = "NAME")]
    pub links: Vec<String>,
    /// Exchange traffic only with hosts of this network, such as 192.0.2.0/24; may be repeated. With --server it is
    /// required: whoever has the credentials could otherwise send to any host from here
    #[arg(long, value_name = "NETWORK")]
    pub allow_target: Vec<Network>,
    /// Folder that keeps results until they are committed; default: beside the folder of agents
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    #[command(flatten)]
    pub wire: WireOptions,
}

fn agent(options: &AgentOptions) -> Result<(), Failure> {
    if options.wire.server.is_some() && options.allow_target.is_empty() {
        return Err(Failure::usage(
            "--server needs --allow-target: name the networks of the fleet's hosts, such as 192.0.2.0/24 and 2001:db8::/32",
        ));
    }
    let name = options.name.clone().map_or_else(host_name, Ok)?;
    let info = AgentInfo::new(&name, &options.labels, &options.addresses, &options.links)?;
    let keep = options.keep.clone().unwrap_or_else(|| folder().join("kept").join(&name));
    let allowed = (!options.allow_target.is_empty()).then(|| options.allow_target.clone());
    let agent = FleetAgent::new(info, options.wire.open(Some(&name))?, &keep, allowed, interrupt_flag()?)?;
    Ok(agent.run(&|| eprintln!("stacklab: agent {name} is ready for `stacklab fleet run`"))?)
}

fn host_name() -> Result<String, Failure> {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = read.map_err(Failure::step("read this host's name: give one with --name"))?;
    Ok(name.trim().split('.').next().unwrap_or_default().to_owned())
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        match error {
            FleetError::Campaign(error) => error.into(),
            FleetError::Usage(_) => Failure::usage(error),
            FleetError::Store { .. } => Failure::new(RECORD, error),
            FleetError::Agent { .. } | FleetError::Wire { .. } => Failure::new(UNREACHABLE, error),
            FleetError::System { .. } => Failure::new(OTHER, error),
            FleetError::Interrupted => Failure::new(INTERRUPTED, error),
        }
    }
}
