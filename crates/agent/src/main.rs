//! stacklab's agent: does on its host what a coordinator, such as `stacklab measure` on another machine, asks of it.

use clap::Parser;
use stacklab_agent::AgentOptions;
use stacklab_model::say;
use std::process::ExitCode;

/// An agent of stacklab: measures with whoever asks, for example `stacklab measure udp HOST` on a Linux machine
#[derive(Debug, Parser)]
#[command(name = "stacklab-agent", version)]
struct Cli {
    #[command(flatten)]
    options: AgentOptions,
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| stacklab_agent::with_renamed_flag(error).exit());
    match stacklab_agent::run(&cli.options, &["--stdio"]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say!("stacklab-agent: {failure}");
            ExitCode::FAILURE
        }
    }
}
