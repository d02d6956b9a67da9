//! `stacklab fleet`: one campaign over many machines.

mod run;
mod view;

use crate::environment::read_variable;
use crate::failure::{Failure, INTERRUPTED, OTHER, RECORD, UNREACHABLE, interrupt_flag};
use clap::{Args, Subcommand};
use stacklab_campaign::lab::state::runtime_folder;
use stacklab_fleet::FleetError;
use stacklab_fleet::agent::FleetAgent;
use stacklab_fleet::pairs::label;
use stacklab_fleet::store::{AgentInfo, CampaignRow, Store, has_password};
use stacklab_fleet::wire::Wire;
use stacklab_fleet::wire::local::LocalWire;
use stacklab_fleet::wire::nats::{NatsWire, has_account};
use stacklab_model::{quote_file, say};
use stacklab_traffic::agent::Network;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Variables of the environment.
const STORE: &str = "STACKLAB_STORE";
const SERVER: &str = "STACKLAB_SERVER";

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
    /// commas; default: STACKLAB_SERVER in the environment, which all users cannot read, as they can arguments
    #[arg(long, value_name = "URL")]
    pub server: Option<String>,
    /// The credentials for NATS, as nsc writes them
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    pub creds: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct StoreOptions {
    /// Where campaigns and results are: a SQLite file, created if missing, or postgres://USER@HOST/DATABASE; default:
    /// STACKLAB_STORE in the environment, or fleet.db. An address with a password goes there: all users can read
    /// arguments
    #[arg(long, value_name = "PLACE")]
    pub store: Option<String>,
}

impl StoreOptions {
    /// The address of the store.
    fn place(&self) -> Result<String, Failure> {
        if let Some(store) = &self.store {
            refuse_password(store, "--store")?;
            return Ok(store.clone());
        }
        Ok(read_variable(STORE)?.unwrap_or_else(|| "fleet.db".to_owned()))
    }

    /// The option, for a command that uses the same store.
    fn option(&self) -> String {
        self.store.as_ref().map_or_else(String::new, |store| format!(" --store {}", quote_file(store)))
    }
}

/// The store that `serve --fleet` shows.
pub(crate) fn served_store(given: Option<Option<String>>) -> Result<Option<String>, Failure> {
    match given {
        None => Ok(None),
        Some(Some(store)) => refuse_password(&store, "--fleet").map(|()| Some(store)),
        Some(None) => match read_variable(STORE)? {
            Some(store) => Ok(Some(store)),
            None => Err(Failure::usage(format!("--fleet needs a store, or {STORE} in the environment"))),
        },
    }
}

/// Refuses an argument with a store's password.
fn refuse_password(store: &str, option: &str) -> Result<(), Failure> {
    if !has_password(store) {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{option} has a password, which all users of this machine can read in the list of processes: change it, and put the \
         address into {STORE} in the environment"
    )))
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
        if let Some(server) = self.server()? {
            if self.server.as_deref().is_some_and(has_account) {
                say!(
                    "stacklab: warning: all users of this machine can read the account in --server in the list of \
                     processes: use --creds, or {SERVER} in the environment"
                );
            }
            return Ok(Arc::new(NatsWire::connect(&server, self.creds.as_deref(), agent)?));
        }
        if self.creds.is_some() {
            return Err(Failure::usage("--creds needs --server, or STACKLAB_SERVER in the environment"));
        }
        Ok(Arc::new(LocalWire::new(&self.dir.clone().unwrap_or_else(|| folder().join("agents")))?))
    }
}

impl WireOptions {
    /// The servers of NATS, if agents are reached over it.
    fn server(&self) -> Result<Option<String>, Failure> {
        if let Some(server) = &self.server {
            return Ok(Some(server.clone()));
        }
        if self.dir.is_some() { Ok(None) } else { read_variable(SERVER) }
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
    if options.wire.server()?.is_some() && options.allow_target.is_empty() {
        return Err(Failure::usage(
            "--server needs --allow-target: name the networks of the fleet's hosts, such as 192.0.2.0/24 and 2001:db8::/32",
        ));
    }
    let name = options.name.clone().map_or_else(host_name, Ok)?;
    let info = AgentInfo::new(&name, &options.labels, &options.addresses, &options.links)?;
    let keep = options.keep.clone().unwrap_or_else(|| folder().join("kept").join(&name));
    let allowed = (!options.allow_target.is_empty()).then(|| options.allow_target.clone());
    let agent = FleetAgent::new(info, options.wire.open(Some(&name))?, &keep, allowed, interrupt_flag()?)?;
    Ok(agent.run(&|| say!("stacklab: agent {name} is ready for `stacklab fleet run`"))?)
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
