//! stacklab: what IPv6, another network stack or a transition mechanism costs or gains, and how sure that is.
//!
//! Each step is a crate (`stacklab-*`). This program reads the command line and prints the results.

mod cli;
mod colour;
mod commands;
mod environment;
mod failure;
mod images;
mod missing_programs;
mod output;
mod quantities;
mod suggestions;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use commands::regress::STOP;
use commands::{
    completions, doctor, explain, eyeballs, fleet, image, import, lab, measure, path, plan, published,
    regress, report, run, serve, study, tools,
};
use failure::{Failure, USAGE};
use stacklab_campaign::notice::note;
use std::process::ExitCode;

/// Whether the command's exit code is for git, to which that of a panic, 101, or of a wrong command line, 2, would mean
/// a bad commit.
fn is_for_git() -> bool {
    std::env::args_os().nth(1).is_some_and(|command| command == "regress")
}

fn main() -> ExitCode {
    let cli = match parse_command_line() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    if is_for_git() {
        stop_git_on_panic();
    }
    match dispatch(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            note(&format!("stacklab: {}", failure.printable_reason()));
            output::print_error_for_programs(&failure.printable_reason(), failure.code);
            ExitCode::from(failure.code)
        }
    }
}

/// Prints what is wrong with the command line; the exit code is then the error.
fn parse_command_line() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        let words: Vec<String> =
            std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let error = stacklab_agent::with_renamed_flag(error);
        let error = suggestions::with_suggestion(error, &Cli::command(), &words);
        if !error.use_stderr() {
            error.exit();
        }
        let code = if is_for_git() { STOP } else { USAGE };
        output::print_error_for_programs(&error.to_string(), code);
        // Where standard error is closed, the exit code says enough.
        let _ = error.print();
        ExitCode::from(code)
    })
}

fn stop_git_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        print(panic);
        std::process::exit(STOP.into());
    }));
}

fn dispatch(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(options),
        Command::Study(command) => study::study(&command),
        Command::Plan(options) => plan::plan(&options),
        Command::Report(options) => report::report(&options),
        Command::Export(options) => report::export(&options),
        Command::Import(options) => import::import(&options),
        Command::Compare(options) => report::compare(&options),
        Command::Explain(options) => explain::explain(&options),
        Command::Regress(options) => regress::regress(&options),
        Command::Bisect(options) => regress::bisect(&options),
        Command::Replicate(options) => published::replicate(options),
        Command::Reference(command) => published::reference(&command),
        Command::Measure(options) => measure::measure(&options),
        Command::Path(options) => path::path(&options),
        Command::Eyeballs(options) => eyeballs::eyeballs(&options),
        Command::Serve(options) => serve::serve(options),
        Command::Doctor(options) => doctor::doctor(&options),
        Command::Image(command) => image::image(&command),
        Command::Lab(command) => lab::lab(&command),
        Command::Guest(options) => tools::guest(&options),
        Command::Fleet(command) => fleet::fleet(command),
        Command::Agent(options) => tools::agent(&options),
        Command::Watch { hosts } => tools::watch_hosts(&hosts),
        Command::SshClean { hosts } => tools::ssh_clean(&hosts),
        Command::Schema => output::print_text(&stacklab_study::json_schema()),
        Command::Completions { shell } => completions::completions(shell, Cli::command()),
        Command::Man { folder } => tools::man(&folder, Cli::command()),
    }
}
