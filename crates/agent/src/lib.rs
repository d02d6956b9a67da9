//! The agent's command line: `stacklab agent`, and the program `stacklab-agent` for systems on which the rest of
//! stacklab does not run (Windows, FreeBSD).

pub mod interrupt;
mod listen;
mod sys;

pub use listen::{ListenAddress, ListenError, PORT, listen, notice_a_dead_peer};

use std::io::{self, BufReader, stdin, stdout};

/// Options of the agent.
#[derive(Debug, clap::Args)]
pub struct AgentOptions {
    /// Take requests on standard input and answer on standard output, one JSON object a line
    #[arg(long, required_unless_present = "listen")]
    pub stdio: bool,
    /// Listen on TCP and serve one `stacklab measure` after another: on any address of either family and port 5202, or
    /// on this ADDRESS, :PORT, ADDRESS:PORT or IPv6 in brackets with :PORT
    #[arg(long, value_name = "PLACE", num_args = 0..=1, default_missing_value = "", conflicts_with = "stdio")]
    pub listen: Option<ListenAddress>,
    /// End when the first coordinator has gone
    #[arg(long, requires = "listen")]
    pub once: bool,
}

/// Why an agent ended early.
#[derive(Debug, thiserror::Error)]
pub enum AgentFailure {
    /// It cannot listen.
    #[error("{0}")]
    Listen(#[from] ListenError),
    /// Signal handlers cannot be installed.
    #[error("could not install signal handlers: {0}")]
    Signals(io::Error),
    /// Its answers cannot be written.
    #[error("could not write an answer: {0}")]
    Answer(io::Error),
}

/// Serves a coordinator on standard input and output until the input ends, or listens for coordinators. `stdio` is
/// the command line with which this program serves on standard input and output.
///
/// # Errors
/// When it cannot listen on the requested address, or an answer cannot be written.
pub fn run(options: &AgentOptions, stdio: &'static [&'static str]) -> Result<(), AgentFailure> {
    if let Some(place) = options.listen {
        let interrupted = interrupt::flag().map_err(AgentFailure::Signals)?;
        return Ok(listen(place, options.once, interrupted, stdio)?);
    }
    stacklab_traffic::agent::serve(BufReader::new(stdin()), stdout()).map_err(AgentFailure::Answer)
}
