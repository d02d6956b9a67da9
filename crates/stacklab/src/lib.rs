//! stacklab: what IPv6, another network stack or a transition mechanism costs or gains, and how sure that is.
//!
//! Each step is a crate (`stacklab-*`). This program reads the command line and prints the results.

mod cli;
mod commands;
mod failure;
mod output;
mod quantities;

use clap::Parser;
use cli::{Cli, Command};
use commands::regress::STOP;
use failure::USAGE;
use std::process::ExitCode;

/// Whether the command's exit code is for git, to which that of a panic, 101, or of a wrong command line, 2, would mean
/// a bad commit.
fn is_for_git() -> bool {
    std::env::args_os().nth(1).is_some_and(|command| command == "regress")
}

/// The program: does what its command line says, and gives the exit code.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let error = stacklab_agent::with_renamed_flag(error);
            if !error.use_stderr() {
                error.exit();
            }
            let code = if is_for_git() { STOP } else { USAGE };
            output::print_error_for_programs(&error.to_string(), code);
            // Where standard error is closed, the exit code says enough.
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    if is_for_git() {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            std::process::exit(STOP.into());
        }));
    }
    let done = match cli.command {
        Command::Run(options) => commands::run::run(options),
        Command::Study(command) => commands::study::study(&command),
        Command::Plan(options) => commands::plan::plan(&options),
        Command::Report(options) => commands::report::report(&options),
        Command::Export(options) => commands::report::export(&options),
        Command::Import(options) => commands::import::import(&options),
        Command::Compare(options) => commands::compare::compare(&options),
        Command::Explain(options) => commands::explain::explain(&options),
        Command::Regress(options) => commands::regress::regress(&options),
        Command::Bisect(options) => commands::regress::bisect(&options),
        Command::Replicate(options) => commands::replicate::replicate(options),
        Command::Reference(command) => commands::reference::reference(&command),
        Command::Measure(options) => commands::measure::measure(&options),
        Command::Path(options) => commands::path::path(&options),
        Command::Serve(options) => commands::serve::serve(options),
        Command::Doctor => commands::doctor::doctor(),
        Command::Image(command) => commands::image::image(&command),
        Command::Lab(command) => commands::lab::lab(&command),
        Command::Guest(options) => commands::tools::guest(&options),
        Command::Fleet(command) => commands::fleet::fleet(command),
        Command::Agent(options) => commands::agent::agent(&options),
        Command::SshClean(options) => commands::tools::ssh_clean(&options),
        Command::Schema => commands::tools::schema(),
        Command::Completions(options) => commands::tools::completions(&options),
        Command::Man(options) => commands::tools::man(&options),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("stacklab: {}", failure.printed());
            output::print_error_for_programs(&failure.printed(), failure.code);
            ExitCode::from(failure.code)
        }
    }
}
