//! `stacklab schema`, `completions` and `man`: texts generated from the program itself.

use crate::cli::Cli;
use crate::cli::tools::{CompletionsOptions, ManOptions};
use crate::commands::output::print_text;
use crate::failure::Failure;
use clap::CommandFactory;

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
    written.map_err(|reason| Failure::Output {
        what: format!("the manual pages into {}", options.folder.display()),
        reason,
    })
}
