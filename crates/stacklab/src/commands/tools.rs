//! Texts generated from the program (`schema`, `completions`, `man`), `guest` and `ssh-clean`.

use crate::cli::Cli;
use crate::failure::Failure;
use crate::output::print_text;
use clap::{Args, CommandFactory};
use stacklab_campaign::rig::agent_copy::remove;
use stacklab_explain::send_counted;
use stacklab_guests::inside;
use stacklab_model::System;
use stacklab_traffic::agent::{Permission, alone, serve};
use std::io::{self, BufReader};
use std::path::PathBuf;

/// Options of `guest`.
#[derive(Debug, Args)]
pub(crate) struct GuestOptions {
    /// The device of the coordinator's channel; default: the virtual machine's port named stacklab
    #[arg(long, value_name = "DEVICE")]
    pub channel: Option<PathBuf>,
    /// Send these messages over loopback for `explain --exact`, instead of taking a role
    #[arg(long, value_name = "PLAN", hide = true)]
    pub count: Option<String>,
}

/// Options of `ssh-clean`.
#[derive(Debug, Args)]
pub(crate) struct SshCleanOptions {
    /// The machines, as ssh or a study names them (USER@HOST, ssh:USER@HOST)
    #[arg(value_name = "HOST", required = true)]
    pub hosts: Vec<String>,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// The folder, which must exist
    pub folder: PathBuf,
}

/// Prints the JSON Schema of study files.
pub(crate) fn schema() -> Result<(), Failure> {
    print_text(&stacklab_study::json_schema())
}

/// Prints a shell's completion script.
pub(crate) fn completions(options: &CompletionsOptions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "stacklab", &mut script);
    print_text(&String::from_utf8_lossy(&script))
}

/// Writes the manual pages into a folder, which is made if it is missing.
pub(crate) fn man(options: &ManOptions) -> Result<(), Failure> {
    let written = std::fs::create_dir_all(&options.folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), &options.folder));
    written.map_err(Failure::step(format!("write the manual pages into {}", options.folder.display())))
}

/// Runs one host of the outer testbed inside a guest, as its agent until the coordinator is gone; or holds testbeds
/// inside the guest until then; or sends the messages of `explain --exact`.
pub(crate) fn guest(options: &GuestOptions) -> Result<(), Failure> {
    let served = match &options.count {
        Some(_) if !inside::is_first() => {
            return Err(Failure::usage("--count is for the init process of a guest"));
        }
        Some(plan) => inside::prepare_alone().and_then(|()| send_counted(plan, inside::open_channel)),
        None => serve_coordinator(options),
    };
    if let Err(error) = &served {
        // Printed before the system shuts down, so that it appears on the console.
        eprintln!("stacklab: {error}");
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

/// Removes this program's copies from machines.
pub(crate) fn ssh_clean(options: &SshCleanOptions) -> Result<(), Failure> {
    let machine = |host: &String| {
        let name = host.strip_prefix("ssh:").unwrap_or(host);
        let system: Option<System> = format!("ssh:{name}").parse().ok();
        system.ok_or_else(|| Failure::usage(format!("{host:?} names no machine that ssh reaches")))
    };
    let machines: Vec<System> = options.hosts.iter().map(machine).collect::<Result<_, _>>()?;
    for system in machines {
        let removed = remove(&system)?;
        if removed.is_empty() {
            print_text(&format!("{system}: no copy of stacklab found\n"))?;
        }
        for name in removed {
            print_text(&format!("{system}: removed {name}\n"))?;
        }
    }
    Ok(())
}
