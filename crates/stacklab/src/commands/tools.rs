//! `agent`, `guest` and `ssh-clean`, and the manual pages (`man`).

use crate::failure::{Failure, OTHER, interrupt_flag};
use crate::output::print_lines;
use clap::Args;
use stacklab_agent::{AgentOptions, listen_advice};
use stacklab_campaign::notice::note;
use stacklab_campaign::rig::remove_copies;
use stacklab_explain::send_plan;
use stacklab_guests::inside;
use stacklab_model::System;
use stacklab_protocols::iperf3::server::{self, ServerError, ServerLimits};
use stacklab_testbed::AGENT;
use stacklab_traffic::agent::{Permission, alone, serve};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct AgentCommand {
    #[command(flatten)]
    pub options: AgentOptions,
    /// With --listen: serve unmodified iperf3 clients instead, on port 5201. It is open to everyone who reaches
    /// it. A test takes at most --max-duration seconds; to each client it sends at most --max-rate [default: 10000]
    #[arg(
        long,
        requires = "listen",
        conflicts_with_all = ["key_file", "no_auth", "tls", "allow_target", "allow"]
    )]
    pub iperf3: bool,
    /// Maximum number of concurrent iperf3 clients
    #[arg(long, value_name = "N", default_value_t = 32, requires = "iperf3", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub clients: u32,
}

/// Highest rate to one client of an iperf3 server, Mbit/s, unless the operator says another.
const MAX_RATE: f64 = 10_000.0;

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators, or for clients
/// of iperf3.
pub(crate) fn agent(command: &AgentCommand) -> Result<(), Failure> {
    let options = &command.options;
    match &options.listen {
        Some(place) if command.iperf3 => {
            let interrupted = interrupt_flag()?;
            let limits = ServerLimits {
                clients: command.clients as usize,
                longest: Duration::from_secs(options.max_duration.into()),
                most_bits_per_second: options.max_rate.unwrap_or(MAX_RATE) * 1e6,
            };
            server::listen(place, limits, options.once, interrupted).map_err(|ServerError { at, reason }| {
                let advice = listen_advice(&reason, "another server", "--listen :7000");
                Failure::new(OTHER, format!("could not listen on {at}: {reason}{advice}"))
            })
        }
        _ => stacklab_agent::run(options, &AGENT).map_err(|reason| Failure::new(OTHER, reason)),
    }
}

/// Ends the programs in the namespaces of these hosts once the stacklab that has started this one is gone.
pub(crate) fn watch_hosts(hosts: &[u32]) -> Result<(), Failure> {
    stacklab_testbed::watch(hosts).map_err(Failure::step("watch the hosts of a testbed"))
}

#[derive(Debug, Args)]
pub(crate) struct GuestOptions {
    /// The device of the coordinator's channel; default: the virtual machine's port named stacklab
    #[arg(long, value_name = "DEVICE")]
    pub channel: Option<PathBuf>,
    /// Send these messages over loopback for `explain --exact`, instead of taking a role
    #[arg(long, value_name = "PLAN", hide = true)]
    pub count: Option<String>,
}

/// Writes the manual pages of this command line into a folder, which is made if it is missing.
pub(crate) fn man(folder: &Path, line: clap::Command) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(line, folder));
    written.map_err(Failure::step(format!("write the manual pages into {}", folder.display())))
}

/// Runs one host of the outer testbed inside a guest, as its agent until the coordinator is gone; or holds testbeds
/// inside the guest until then; or sends the messages of `explain --exact`.
pub(crate) fn guest(options: &GuestOptions) -> Result<(), Failure> {
    let served = match &options.count {
        Some(_) if !inside::is_first() => {
            return Err(Failure::usage("--count is for the init process of a guest"));
        }
        Some(plan) => inside::prepare_alone()
            .and_then(|()| inside::check_channel())
            .and_then(|()| send_plan(plan, inside::open_channel)),
        None => serve_coordinator(options),
    };
    if let Err(error) = &served {
        // Printed before the system shuts down, so that it appears on the console.
        note(&format!("stacklab: {error}"));
    }
    if options.count.is_some() {
        inside::reset();
    }
    inside::leave();
    served.map_err(Failure::step("write to whoever started this guest"))
}

fn serve_coordinator(options: &GuestOptions) -> io::Result<()> {
    inside::take_role(options.channel.as_deref()).and_then(|stream| {
        // A guest that held whole testbeds is done.
        let Some(stream) = stream else { return Ok(()) };
        // No other host shares this kernel.
        alone();
        serve(BufReader::new(stream.try_clone()?), stream, Permission::default(), |_| {})
    })
}

pub(crate) fn ssh_clean(hosts: &[String]) -> Result<(), Failure> {
    let mut machines = Vec::new();
    for host in hosts {
        let name = host.strip_prefix("ssh:").unwrap_or(host);
        let Ok(system) = format!("ssh:{name}").parse::<System>() else {
            return Err(Failure::usage(format!("{host:?} names no machine that ssh reaches")));
        };
        machines.push(system);
    }
    for system in machines {
        let removed = remove_copies(&system)?;
        if removed.is_empty() {
            print_lines(&format!("{system}: no copy of stacklab found\n"))?;
        }
        for name in removed {
            print_lines(&format!("{system}: removed {name}\n"))?;
        }
    }
    Ok(())
}
