//! `stacklab lab`: a manual testbed.
//!
//! One background process, the holder, keeps the testbed alive, as the campaign does for a campaign's testbed. When
//! the holder ends, for whatever reason, the whole testbed is removed.

use crate::commands::study::{PlacementOptions, StudyOptions};
use crate::failure::{Failure, INTERRUPTED, OTHER, interrupt_flag};
use crate::output::show_seconds;
use clap::{Args, Subcommand};
use stacklab_campaign::lab::state::{
    HostLocation, POLL_INTERVAL, RunningTestbed, StateFileClaim, describe_failure, known, remove_folder,
    socket, state,
};
use stacklab_campaign::lab::{hold, testbed_of};
use stacklab_guests::shell;
use stacklab_model::{Mechanism, RoutedKind};
use stacklab_study::Study;
use stacklab_testbed::RunningProcess;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::slice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Build a study's testbed and leave it up
    Up(LabUpOptions),
    /// Run a command, or a shell, on a host of the running testbed: sender, receiver, and router1, router2 between
    /// them
    Enter {
        /// The host
        #[arg(value_name = "HOST")]
        host: String,
        /// The command with its arguments; without one, your shell
        #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Remove the running testbed
    Down,
    /// Hold a testbed (used by stacklab itself)
    #[command(hide = true)]
    Hold(LabUpOptions),
    /// Become a command on a host, inside a guest (used by stacklab itself)
    #[command(hide = true)]
    Inside {
        /// A process in the host's network namespace
        host: u32,
        /// Where the command starts
        folder: PathBuf,
        /// The command with its arguments
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct LabUpOptions {
    #[command(flatten)]
    pub study: StudyOptions,
    /// The mechanism between the routers; default: the study's first
    #[arg(long, value_name = "NAME")]
    pub mechanism: Option<Mechanism>,
    #[command(flatten)]
    pub placement: PlacementOptions,
}

impl LabUpOptions {
    /// The study, and which of its routed testbeds is built if it has routers.
    fn choose_testbed_row(&self) -> Result<(Study, Option<RoutedKind>), Failure> {
        let (_, study) = self.study.check()?;
        let row = testbed_of(&study, self.mechanism, &self.placement.in_vm)?;
        Ok((study, row))
    }
}

/// Time limit for removing a testbed.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The environment variable with the name of the host that a command runs on.
const HOST: &str = "STACKLAB_HOST";

pub(crate) fn lab(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Up(options) => up(options),
        LabCommand::Enter { host, command } => enter_host(host, command),
        LabCommand::Down => down(),
        LabCommand::Hold(options) => {
            let (study, row) = options.choose_testbed_row()?;
            let ended = interrupt_flag()?;
            Ok(hold(&study, row, &options.placement.in_vm, ended)?)
        }
        LabCommand::Inside { host, folder, command } => {
            let name = std::env::var(HOST).unwrap_or_default();
            let reason = shell::become_command(*host, folder, command);
            // `exec` returns only on failure.
            let program = command.first().map_or("", String::as_str);
            let place = if shell::shows_files() { MACHINES_FILES } else { GUESTS_FILES };
            Err(cannot_run(program, &name, place, reason))
        }
    }
}

fn up(options: &LabUpOptions) -> Result<(), Failure> {
    if let Some(up) = known() {
        return Err(Failure::usage(format!("a testbed is up already ({}): stacklab lab down", up.testbed)));
    }
    // Errors in the study are reported here, not by the holder.
    options.choose_testbed_row()?;
    let claim = StateFileClaim::new()?;
    let program = std::env::current_exe().map_err(describe_failure("find this program's own file"))?;
    let mut command = Command::new(program);
    command.args(["lab", "hold"]).args(&options.study.study).stdin(Stdio::null());
    // The holder must not keep this program's output open: a caller that waits for the output to end must not wait
    // for the testbed to end.
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let settings = options.study.all_settings();
    for (name, values) in [("--scale", options.study.scale.as_slice()), ("--set", settings.as_slice())] {
        for value in values {
            command.args([name, value]);
        }
    }
    if let Some(mechanism) = options.mechanism {
        command.args(["--mechanism", mechanism.name()]);
    }
    command.arg(format!("--in-vm={}", options.placement.in_vm));
    // The holder does not end with the terminal.
    let mut holder = command
        .process_group(0)
        .spawn()
        .map_err(describe_failure("start the process that holds the testbed"))?;
    let interrupted = interrupt_flag()?;
    let line = show_seconds("building the testbed", || read_announcement(&mut holder, interrupted))
        .map_err(describe_failure("hear of the testbed"))?;
    if interrupted.load(Ordering::Relaxed) {
        let _ = holder.wait();
        return Err(Failure::new(INTERRUPTED, "interrupted: no testbed is up"));
    }
    let Ok(up) = serde_json::from_str::<RunningTestbed>(&line) else {
        let said = holder.wait_with_output().map(|done| done.stderr).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().trim_start_matches("stacklab: ").to_owned();
        return Err(describe_failure("build the testbed")(io::Error::other(said)).into());
    };
    if let Err(failure) = claim.write(&line) {
        let _ = stacklab_testbed::end(up.holder.pid);
        let _ = holder.wait();
        return Err(failure.into());
    }
    crate::output::print_lines(&describe(&up))
}

/// The testbed, its hosts with their addresses, and commands to begin with.
fn describe(up: &RunningTestbed) -> String {
    let mut text = format!("{}\n\n", up.testbed);
    for host in &up.hosts {
        let mut parts = host.addresses.clone();
        for interface in &host.interfaces {
            parts.push([slice::from_ref(&interface.name), &interface.addresses].concat().join(" "));
        }
        text += &format!("{:<10} {}\n", host.name, parts.join("  "));
    }
    text.push('\n');
    if let Some(address) = &up.destination {
        text += &format!("stacklab lab enter sender ping -c 3 {address}\n");
    }
    text + "stacklab lab down\n"
}

/// The line with which a holder announces its testbed; empty if it ends before. An interruption ends the holder.
fn read_announcement(holder: &mut Child, interrupted: &AtomicBool) -> io::Result<String> {
    let output = holder.stdout.take().expect("its output is a pipe");
    thread::scope(|scope| {
        let reading = scope.spawn(move || {
            let mut line = String::new();
            BufReader::new(output).read_line(&mut line).map(|_| line)
        });
        while !reading.is_finished() && !interrupted.load(Ordering::Relaxed) {
            thread::sleep(POLL_INTERVAL);
        }
        if interrupted.load(Ordering::Relaxed) {
            stacklab_testbed::end(holder.id())?;
        }
        reading.join().unwrap_or_else(|_| Err(io::Error::other("its output was not read")))
    })
}

fn enter_host(name: &str, command: &[String]) -> Result<(), Failure> {
    let up = known().ok_or_else(|| Failure::usage("no testbed is up: stacklab lab up STUDY"))?;
    let host = up.hosts.iter().find(|host| host.name == name).ok_or_else(|| {
        let names: Vec<&str> = up.hosts.iter().map(|host| host.name.as_str()).collect();
        Failure::usage(format!("there is no host `{name}`: expected one of {}", names.join(", ")))
    })?;
    let own_shell = std::env::var("SHELL").ok().filter(|_| up.files);
    let command = match command {
        [] => vec![own_shell.unwrap_or_else(|| "sh".to_owned())],
        command => command.to_vec(),
    };
    let attempted = format!("run {} on {name}", command[0]);
    match host.location {
        HostLocation::Process(process) => {
            process.enter().map_err(describe_failure(&format!("enter {name}")))?;
            // `exec` returns only on failure.
            let reason = Command::new(&command[0]).args(&command[1..]).env(HOST, name).exec();
            Err(cannot_run(&command[0], name, MACHINES_FILES, reason))
        }
        HostLocation::Guest(host) => {
            let ended = socket()
                .and_then(|socket| shell::enter_guest(&socket, host, command, (HOST, name)))
                .map_err(describe_failure(&attempted))?;
            // Exits with the command's exit code.
            std::process::exit(ended)
        }
    }
}

/// Where the programs of hosts are from.
const MACHINES_FILES: &str = "its programs are this machine's: install it here";
const GUESTS_FILES: &str = "a virtual machine has only the programs that stacklab packs for it; a guest of user-mode Linux \
                            (--in-vm=uml-full) has this machine's";

/// The program of a command on a host did not start. If it is missing, the error says where its programs are from.
fn cannot_run(program: &str, host: &str, place: &str, reason: io::Error) -> Failure {
    if reason.kind() == io::ErrorKind::NotFound {
        return Failure::new(OTHER, format!("there is no program `{program}` on {host}: {place}"));
    }
    describe_failure(&format!("run {program} on {host}"))(reason).into()
}

fn down() -> Result<(), Failure> {
    let path = match state() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(refuse_without_testbed()),
        path => path.map_err(describe_failure("find the testbed's state"))?,
    };
    let Some(up) = known() else {
        let _ = std::fs::remove_file(&path);
        remove_folder();
        return Err(refuse_without_testbed());
    };
    stacklab_testbed::end(up.holder.pid).map_err(describe_failure("end the testbed"))?;
    let start = Instant::now();
    while up.processes().any(RunningProcess::runs) {
        if start.elapsed() > TIMEOUT {
            let reason = io::Error::new(io::ErrorKind::TimedOut, "its hosts are still there");
            return Err(describe_failure("end the testbed")(reason).into());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    std::fs::remove_file(&path).map_err(describe_failure(&format!("remove {}", path.display())))?;
    remove_folder();
    Ok(())
}

fn refuse_without_testbed() -> Failure {
    Failure::usage("no testbed is up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn testbed_has_its_addresses_and_a_ping_to_type() {
        let up = serde_json::json!({
            "holder": RunningProcess::of(std::process::id()).unwrap(),
            "testbed": "6in4",
            "hosts": [
                { "name": "sender", "place": { "guest": 0 }, "addresses": ["2001:2:0:1::1"] },
                { "name": "router1", "place": { "guest": 1 }, "addresses": [], "interfaces": [
                    { "name": "st1", "addresses": ["198.18.0.1"] },
                    { "name": "tunnel", "addresses": [] },
                ] },
            ],
            "files": true,
            "destination": "2001:2:0:2::1",
        });
        let expected = "6in4\n\nsender     2001:2:0:1::1\nrouter1    st1 198.18.0.1  tunnel\n\n\
                        stacklab lab enter sender ping -c 3 2001:2:0:2::1\nstacklab lab down\n";
        assert_eq!(describe(&serde_json::from_value(up).unwrap()), expected);
    }

    #[test]
    fn missing_program_is_named_with_its_origin() {
        let error =
            cannot_run("timeout", "router1", GUESTS_FILES, io::ErrorKind::NotFound.into()).printable_reason();
        assert!(
            error.starts_with("there is no program `timeout` on router1: a virtual machine has"),
            "{error}"
        );
        let error = cannot_run("tcpdump", "sender", MACHINES_FILES, io::ErrorKind::NotFound.into())
            .printable_reason();
        assert!(error.ends_with("install it here"), "{error}");
        let denied = cannot_run("a", "sender", MACHINES_FILES, io::ErrorKind::PermissionDenied.into())
            .printable_reason();
        assert!(denied.contains("run a on sender") && !denied.contains("no program"), "{denied}");
    }
}
