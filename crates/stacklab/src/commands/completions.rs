//! `stacklab completions`: a shell's script, with the names of the built-in studies.

use crate::failure::Failure;
use crate::output::print_text;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;
use stacklab_campaign::sources::preset_names;
use stacklab_published::STUDIES;

/// The value name of arguments that take a study.
const STUDY: &str = "STUDY";
/// Commands whose studies are published ones only.
const OF_PUBLISHED: [&str; 2] = ["replicate", "reference"];

pub(crate) fn completions(shell: Shell, line: clap::Command) -> Result<(), Failure> {
    print_text(&write_script(shell, line))
}

fn write_script(shell: Shell, line: clap::Command) -> String {
    let mut line = name_studies(line, &preset_names());
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut line, "stacklab", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        // A list of values would exclude study files.
        Shell::Zsh => {
            let list = format!("({})'", preset_names().join(" "));
            script = script.replace(&list, &format!("{{compadd -- {}; _files}}'", preset_names().join(" ")));
        }
        // The generator leaves out what has no option.
        Shell::Fish => script += &list_for_fish(),
        _ => {}
    }
    script
}

/// The command line whose arguments for a study offer these names. It is for scripts: it parses nothing.
fn name_studies(command: clap::Command, names: &[&'static str]) -> clap::Command {
    let names = match command.get_name() {
        name if OF_PUBLISHED.contains(&name) => STUDIES.iter().map(|study| study.name).collect(),
        "explain" => [&["udp", "tcp", "echo", "connect"], names].concat(),
        _ => names.to_vec(),
    };
    command
        .mut_args(|argument| {
            let is_study = argument.get_value_names().is_some_and(|all| all.iter().any(|name| name == STUDY));
            match is_study {
                true => argument.value_parser(PossibleValuesParser::new(names.iter().copied())),
                false => argument,
            }
        })
        .mut_subcommands(|inner| name_studies(inner, &names))
}

fn list_for_fish() -> String {
    let published: Vec<&str> = STUDIES.iter().map(|study| study.name).collect();
    format!(
        "complete -c stacklab -n \"__fish_seen_subcommand_from run plan explain show\" -a \"{}\"\n\
         complete -c stacklab -n \"__fish_seen_subcommand_from replicate\" -a \"{}\"\n",
        preset_names().join(" "),
        published.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    #[test]
    fn scripts_offer_the_built_in_studies_and_files() {
        let [bash, zsh, fish] =
            [Shell::Bash, Shell::Zsh, Shell::Fish].map(|shell| write_script(shell, Cli::command()));
        let of_run = bash.split("stacklab__subcmd__run)").nth(1).or(bash.split("stacklab__run)").nth(1));
        let of_run = of_run.and_then(|text| text.lines().nth(1)).unwrap();
        assert!(of_run.contains("quickstart") && of_run.contains("mechanisms"), "{of_run}");
        assert!(bash.contains("-o default"), "files stay");
        assert!(zsh.contains("{compadd -- quickstart") && zsh.contains("; _files}'"), "{zsh}");
        assert!(fish.contains("-a \"quickstart "));
    }
}
