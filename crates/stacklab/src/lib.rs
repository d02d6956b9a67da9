//! stacklab: what IPv6, another network stack or a transition mechanism costs or gains, and how sure that is.
//!
//! Each step is a crate (`stacklab-*`). This program reads the command line and prints the results.

mod cli;
mod commands;
mod failure;
pub mod fuzzing;

use clap::Parser;
use cli::{Cli, Command};
use std::process::ExitCode;

/// Exit code of a wrong command line.
const USAGE: u8 = 2;

/// The program: does what its command line says, and gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let error = stacklab_agent::with_renamed_flag(error);
            if error.use_stderr() {
                commands::output::print_error_for_programs(&error.to_string(), USAGE);
            }
            error.exit()
        }
    };
    let done = match cli.command {
        Command::Run(options) => commands::run::run(options),
        Command::Study(command) => commands::study::study(&command),
        Command::Plan(options) => commands::plan::plan(&options),
        Command::Report(options) => commands::report::report(&options),
        Command::Export(options) => commands::export::export(&options),
        Command::Import(options) => commands::import::import(&options),
        Command::Compare(options) => commands::compare::compare(&options),
        Command::Explain(options) => commands::explain::explain(&options),
        Command::Replicate(options) => commands::replicate::replicate(options),
        Command::Reference(command) => commands::reference::reference(&command),
        Command::Measure(options) => commands::measure::measure(&options),
        Command::Path(options) => commands::path::path(&options),
        Command::Serve(options) => commands::serve::serve(options),
        Command::Doctor => commands::doctor::doctor(),
        Command::Image(command) => commands::image::image(&command),
        Command::Lab(command) => commands::lab::lab(&command),
        Command::Guest(options) => commands::guest::guest(&options),
        Command::Agent(options) => commands::agent::agent(&options),
        Command::SshClean(options) => commands::ssh_clean::ssh_clean(&options),
        Command::Schema => commands::generate::schema(),
        Command::Completions(options) => commands::generate::completions(&options),
        Command::Man(options) => commands::generate::man(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("stacklab: {}", failure.printed());
            commands::output::print_error_for_programs(&failure.printed(), failure.code());
            failure.exit_code()
        }
    }
}
