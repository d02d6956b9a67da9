//! The client: a command, which is started in the calling thread's namespaces and killed at the limit, or the built-in
//! reference.

use crate::progress::RunProgress;
use crate::reference;
use crate::run::observe::Exit;
use crate::{EyeballsError, MeasurementSettings};
use nix::unistd::gettid;
use stacklab_testbed::{Process, clear, spawn_in_namespace};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

/// What stands for the host's name in a command.
pub(crate) const HOST: &str = "{host}";
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// The part of a client's output that an error shows, bytes.
const MAX_SHOWN: u64 = 600;
/// They would send the client to a proxy of the machine, which it cannot reach.
const PROXY_VARIABLES: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// The file with the authorities that a program trusts: OpenSSL and Go, curl, Node.js, Python's requests, git.
const TRUST_VARIABLES: [&str; 5] =
    ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "GIT_SSL_CAINFO"];

/// Who connects.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Client<'a> {
    /// A command with its arguments, of which at least one has [`HOST`], and the file with the authority that it has to
    /// trust.
    Command { words: &'a [String], bundle: Option<&'static str> },
    /// The built-in client with this connection attempt delay.
    Reference(Duration),
}

/// How a client ended, and its last words.
pub(crate) struct EndedClient {
    pub exit: Exit,
    pub output: String,
}

impl Client<'_> {
    /// Runs it until it ends, or the limit.
    pub(crate) fn run(
        &self,
        host: &str,
        settings: &MeasurementSettings<'_>,
        progress: &mut RunProgress,
    ) -> Result<EndedClient, EyeballsError> {
        let began = Instant::now();
        match self {
            Client::Reference(delay) => {
                let fetched = reference::fetch(host, *delay, settings.limit);
                let exit_code = Some(i32::from(fetched.is_err()));
                let exit = Exit { exit_code, signal: None, is_killed: false, took: began.elapsed() };
                let output = fetched.err().map(|reason| reason.to_string()).unwrap_or_default();
                Ok(EndedClient { exit, output })
            }
            Client::Command { words, bundle } => {
                let command = build_command(words, host, *bundle);
                run_command(command, settings, progress)
            }
        }
    }
}

fn build_command(words: &[String], host: &str, bundle: Option<&str>) -> Command {
    let mut command = Command::new(words[0].replace(HOST, host));
    for word in &words[1..] {
        command.arg(word.replace(HOST, host));
    }
    for variable in PROXY_VARIABLES {
        command.env_remove(variable);
    }
    if let Some(bundle) = bundle {
        for variable in TRUST_VARIABLES {
            command.env(variable, bundle);
        }
    }
    command
}

fn run_command(
    mut command: Command,
    settings: &MeasurementSettings<'_>,
    progress: &mut RunProgress,
) -> Result<EndedClient, EyeballsError> {
    let step = "create a file for the command's output";
    let mut output = tempfile::tempfile().map_err(|reason| EyeballsError::Step { step, reason })?;
    let errors = output.try_clone().map_err(|reason| EyeballsError::Step { step, reason })?;
    let written = output.try_clone().map_err(|reason| EyeballsError::Step { step, reason })?;
    command.stdin(Stdio::null()).stdout(written).stderr(errors);
    let began = Instant::now();
    let mut process = spawn_in_namespace(std::process::id(), &mut command, &[])
        .map_err(|fault| EyeballsError::Client(format!("{fault}; check the command after `--`")))?;
    let status = wait(&mut process, began, settings, progress);
    let took = began.elapsed();
    drop(process);
    // What has left the group of the command ends with it, too.
    clear(&[gettid().as_raw().unsigned_abs()]);
    let status = status?;
    let exit = Exit {
        exit_code: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        is_killed: status.is_none(),
        took,
    };
    Ok(EndedClient { exit, output: read_end(&mut output) })
}

/// Waits until the command has ended; `None` if it had to be killed at the limit.
fn wait(
    process: &mut Process,
    began: Instant,
    settings: &MeasurementSettings<'_>,
    progress: &mut RunProgress,
) -> Result<Option<ExitStatus>, EyeballsError> {
    loop {
        let status = process.status();
        let status = status.map_err(|reason| EyeballsError::Step { step: "wait for the command", reason })?;
        if status.is_some() {
            return Ok(status);
        }
        if settings.interrupted.load(Ordering::Relaxed) {
            return Err(EyeballsError::Interrupted);
        }
        if began.elapsed() >= settings.limit {
            return Ok(None);
        }
        progress.show();
        thread::sleep(POLL_INTERVAL);
    }
}

fn read_end(output: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let is_read = output.seek(SeekFrom::Start(length.saturating_sub(MAX_SHOWN))).is_ok()
        && output.take(MAX_SHOWN).read_to_end(&mut bytes).is_ok();
    if is_read { String::from_utf8_lossy(&bytes).trim().to_owned() } else { String::new() }
}
