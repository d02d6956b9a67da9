//! `stacklab fleet agent`.

use crate::commands::fleet::{WireOptions, folder};
use crate::failure::{Failure, interrupt_flag};
use clap::Args;
use stacklab_fleet::agent::FleetAgent;
use stacklab_fleet::pairs::label;
use stacklab_fleet::store::AgentInfo;
use stacklab_traffic::agent::Network;
use std::net::IpAddr;
use std::path::PathBuf;

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

/// Serves the fleet until it is interrupted.
pub(crate) fn agent(options: &AgentOptions) -> Result<(), Failure> {
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

/// The first part of this host's name.
fn host_name() -> Result<String, Failure> {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = read.map_err(Failure::step("read this host's name: give one with --name"))?;
    Ok(name.trim().split('.').next().unwrap_or_default().to_owned())
}
