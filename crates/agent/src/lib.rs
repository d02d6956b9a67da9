//! The agent's command line: `stacklab agent`, and the program `stacklab-agent` for systems on which the rest of
//! stacklab does not run (Windows).

pub mod auth;
pub mod channel;
pub mod client;
mod connection;
mod hex;
pub mod key;
mod listen;
pub mod source;
mod sys;
pub mod target;
pub mod tls;

pub use auth::fuzzing;
pub use listen::{PORT, listen_advice};

use crate::listen::listen;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use key::Key;
#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};
use stacklab_model::say;
use stacklab_protocols::stamp;
use stacklab_traffic::agent::{DataPorts, Limits, Network, Peers, Permission};
use stacklab_traffic::host::files::WAITS_FOR_USER;
use stacklab_traffic::host::zone::{ListenAddress, ScopedAddr};
use std::io::{self, BufReader, stdin, stdout};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tls::Identity;

#[cfg(unix)]
const SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Options of the agent.
#[derive(Debug, clap::Args)]
pub struct AgentOptions {
    /// Listen on TCP for coordinators (`stacklab measure`) that know the key: on any address of either family
    /// and port 5202, or on ADDRESS, :PORT, ADDRESS:PORT (IPv6 in brackets); a link-local address with
    /// its interface, as in fe80::1%eth0
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "", conflicts_with = "stdio",
        required_unless_present_any = ["stdio", "stamp"])]
    pub listen: Option<ListenAddress>,
    /// Be a STAMP session-reflector (RFC 8762, RFC 8972; TWAMP-Light): on any address of either family and port 862,
    /// or on this address, as with --listen. It answers everyone, with as many bytes as the request has
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "", conflicts_with = "stdio", value_parser = stamp::place)]
    pub stamp: Option<ListenAddress>,
    /// Answer only authenticated STAMP packets, by the key in this file: 32 hexadecimal digits or more
    #[arg(long, value_name = "FILE", requires = "stamp")]
    pub stamp_key_file: Option<PathBuf>,
    /// Copy the sender's sequence numbers instead of counting the packets of each session; senders then cannot
    /// separate loss by direction
    #[arg(long, requires = "stamp")]
    pub stamp_stateless: bool,
    /// Maximum STAMP packets per second answered for each client: an IPv4 address, or an IPv6 /64
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "stamp", value_parser = clap::value_parser!(u32).range(1..))]
    pub stamp_pps: u32,
    /// Exit when the first coordinator disconnects
    #[arg(long, requires = "listen")]
    pub once: bool,
    /// File that keeps the key, readable by its owner only; created if missing. Default: STACKLAB_KEY in
    /// the environment, or a new key, which is printed
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub key_file: Option<PathBuf>,
    /// Serve everyone who reaches this port, without a key
    #[arg(long, requires = "listen", conflicts_with = "key_file")]
    pub no_auth: bool,
    /// Require TLS 1.3: requests and answers are encrypted, and coordinators check the fingerprint of
    /// the agent's TLS key, which is printed. Test traffic is not encrypted
    #[arg(long, requires = "listen")]
    pub tls: bool,
    /// File that keeps the TLS key; created if missing. Default: a new key at each start
    #[arg(long, value_name = "FILE", requires = "tls")]
    pub tls_key: Option<PathBuf>,
    /// Receive test traffic on this port (TCP and UDP), or on these ports, as in 5203-5206: a firewall has
    /// to admit them and the port of --listen. Each concurrent direction uses one. Default: any free port
    #[arg(long, value_name = "PORT")]
    pub data_port: Option<DataPorts>,
    /// Also send to this network, such as 192.0.2.0/24, not only to the coordinator's addresses
    #[arg(long, value_name = "NETWORK")]
    pub allow_target: Vec<Network>,
    /// Allow socket options that need privileges or change the host: buffers above 16 MiB, busy polling,
    /// any congestion control
    #[arg(long, value_name = "WHAT", value_parser = ["tuning"])]
    pub allow: Vec<String>,
    /// Maximum length of a trial in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    pub max_duration: u32,
    /// Idle timeout in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub idle_timeout: u32,
    /// Maximum rate of all streams to a coordinator together, Mbit/s of payload; floods and opening
    /// connections are then refused
    #[arg(long, value_name = "MBITS")]
    pub max_rate: Option<f64>,
    /// Read requests from standard input and answer on standard output, one JSON object per line; stacklab
    /// itself starts agents so
    #[arg(long)]
    pub stdio: bool,
    /// The coordinator's addresses; for the process of a coordinator
    #[arg(long, hide = true, requires = "stdio")]
    pub peer: Vec<ScopedAddr>,
    /// The addresses at which the coordinator reached the agent
    #[arg(long, hide = true, requires = "stdio")]
    pub own: Vec<ScopedAddr>,
    /// The end of a link, as JSON, for a TCP/IP stack whose sockets the agent has instead of the kernel's; stacklab
    /// itself starts such agents in a testbed
    #[arg(long, hide = true, requires = "stdio")]
    pub stack: Option<String>,
}

/// Names the present flag in the error of a command line that has an old one.
pub fn with_renamed_flag(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return error };
    let flag = flag.split('=').next().unwrap_or(flag);
    match stacklab_model::RENAMED_FLAGS.iter().find(|(old, _)| *old == flag) {
        Some((old, new)) if error.kind() == ErrorKind::UnknownArgument => {
            clap::Error::raw(ErrorKind::UnknownArgument, format!("`{old}` was renamed to `{new}`\n"))
        }
        _ => error,
    }
}

impl AgentOptions {
    /// What it may be asked. A coordinator that started it itself on standard input and output may ask anything.
    fn permission(&self) -> Permission {
        let limits = Limits {
            peers: Peers { addresses: self.peer.clone(), networks: self.allow_target.clone() },
            own: self.own.clone(),
            tuning: self.allow.iter().any(|what| what == "tuning"),
            longest: Duration::from_secs(self.max_duration.into()),
            most_bits_per_second: self.max_rate.map(|rate| rate * 1e6),
            idle: Duration::from_secs(self.idle_timeout.into()),
        };
        Permission {
            limits: (!self.peer.is_empty()).then_some(limits),
            data_ports: self.data_port.clone().unwrap_or_default(),
        }
    }

    /// The options of a coordinator's process that say what it may do.
    fn limits(&self) -> Vec<String> {
        let mut options = vec![
            format!("--max-duration={}", self.max_duration),
            format!("--idle-timeout={}", self.idle_timeout),
        ];
        options.extend(self.allow_target.iter().map(|network| format!("--allow-target={network}")));
        options.extend(self.allow.iter().map(|what| format!("--allow={what}")));
        options.extend(self.data_port.iter().map(|ports| format!("--data-port={ports}")));
        options.extend(self.max_rate.map(|rate| format!("--max-rate={rate}")));
        options
    }
}

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators. `stdio` is
/// the command line with which this program serves on standard input and output.
pub fn run(options: &AgentOptions, stdio: &'static [&'static str]) -> Result<(), String> {
    let reflectors = match &options.stamp {
        Some(place) => {
            let interrupted = interrupt_flag().map_err(no_handlers)?;
            let key = options.stamp_key_file.as_deref().map(stamp::key).transpose()?;
            let stateful = !options.stamp_stateless;
            let per_second = options.stamp_pps;
            Some(stamp::Reflectors::start(place, key, stateful, per_second, interrupted)?)
        }
        None => None,
    };
    if let Some(place) = &options.listen {
        let interrupted = interrupt_flag().map_err(no_handlers)?;
        let given = match &options.key_file {
            _ if options.no_auth => None,
            Some(path) => Some(Key::read_or_create(path)?),
            None => Key::find(None)?,
        };
        let key = given.or_else(|| {
            let key = (!options.no_auth).then(Key::generate)?;
            say!(
                "stacklab: key {} (`stacklab measure` reads it from --key-file, from {}, or prompts for it)",
                key.reveal(),
                key::VARIABLE
            );
            Some(key)
        });
        let identity = match (options.tls, &options.tls_key) {
            (true, Some(path)) => Some(Identity::read_or_create(path)?),
            (true, None) => Some(Identity::generate()),
            (false, _) => None,
        };
        if let Some(Identity { fingerprint, .. }) = &identity {
            say!("stacklab: TLS fingerprint {fingerprint} (for `stacklab measure --tls`)");
        }
        let command = stdio.iter().map(|word| (*word).to_owned()).chain(options.limits()).collect();
        let data_ports = options.data_port.clone().unwrap_or_default();
        return listen(place, options.once, interrupted, key, identity, command, &data_ports);
    }
    if let Some(reflectors) = reflectors {
        return reflectors.wait();
    }
    if let Some(stack) = &options.stack {
        attach_stack(stack).map_err(|reason| format!("could not attach a stack: {reason}"))?;
    }
    stacklab_traffic::agent::serve(BufReader::new(stdin()), stdout(), options.permission(), end_process)
        .map_err(|reason| format!("could not write an answer: {reason}"))
}

/// A coordinator that is idle, or a trial without end: the process holds what only its end sets free.
fn end_process(reason: &str) {
    say!("stacklab: ended: {reason}");
    std::process::exit(1);
}

#[cfg(target_os = "linux")]
fn attach_stack(stack: &str) -> io::Result<()> {
    stacklab_traffic::use_stack(&serde_json::from_str(stack)?)
}

#[cfg(not(target_os = "linux"))]
fn attach_stack(_: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has packet sockets"))
}

/// A flag that is set once the user has interrupted. A second Ctrl-C ends the program at once, as does the first one
/// while the program waits for its user ([`WAITS_FOR_USER`]). For one thread.
pub fn interrupt_flag() -> io::Result<&'static AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    // Handlers that are installed twice would take one signal for two.
    if let Some(flag) = FLAG.get() {
        return Ok(flag);
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, 130, &WAITS_FOR_USER)?;
        // In this order: the first signal finds the flag unset and sets it, the second one finds it set and exits.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))?;
        signal_hook::flag::register(signal, Arc::clone(&flag))?;
    }
    // A file that may not become longer is an error of its writing, and says which file it is.
    #[cfg(unix)]
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    Ok(FLAG.get_or_init(|| flag))
}

fn no_handlers(reason: io::Error) -> String {
    format!("could not install signal handlers: {reason}")
}
