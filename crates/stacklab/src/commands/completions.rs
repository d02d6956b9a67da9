//! `stacklab completions`: a shell's script, with the names of studies, levels, metrics and other closed sets.

mod values;

use crate::commands::completions::values::{Offers, takes_files};
use crate::failure::Failure;
use crate::output::print_text;
use clap::builder::PossibleValuesParser;
use clap_complete::Shell;

pub(crate) fn completions(shell: Shell, line: clap::Command) -> Result<(), Failure> {
    print_text(&write_script(shell, line))
}

fn write_script(shell: Shell, line: clap::Command) -> String {
    let mut lists = Vec::new();
    let mut line = name_values(line, "", &Offers::read(), &mut lists);
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut line, "stacklab", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Zsh => with_files(script, &lists),
        // The generator leaves out what has no option.
        Shell::Fish => script + &list_for_fish(&line, &[]),
        _ => script,
    }
}

/// The command line whose arguments offer names, of a command below `above`. It is for scripts: it parses nothing.
/// Lists of names that do not exclude files are added to `lists`.
fn name_values(
    command: clap::Command,
    above: &str,
    offers: &Offers,
    lists: &mut Vec<String>,
) -> clap::Command {
    let name = format!("{above} {}", command.get_name());
    let named = command.mut_args(|argument| {
        let names = offers.list(&name, &argument);
        if names.is_empty() {
            return argument;
        }
        if takes_files(&name, &argument) {
            lists.push(names.join(" "));
        }
        // clap keeps static names alone; the program ends when the script is written.
        let names = names.into_iter().map(|name| &*name.leak());
        argument.value_parser(PossibleValuesParser::new(names))
    });
    named.mut_subcommands(|inner| name_values(inner, &name, offers, lists))
}

/// The script for zsh, in which a list of names would exclude files.
fn with_files(mut script: String, lists: &[String]) -> String {
    for list in lists {
        script = script.replace(&format!(":({list})'"), &format!(":{{compadd -- {list}; _files}}'"));
    }
    script
}

/// Lines for fish: the names for arguments without an option, of a command and those below it.
fn list_for_fish(command: &clap::Command, above: &[&str]) -> String {
    let mut lines = String::new();
    for argument in command.get_positionals() {
        let names: Vec<String> =
            argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if !names.is_empty() && !above.is_empty() {
            let seen: Vec<String> =
                above.iter().map(|name| format!("__fish_seen_subcommand_from {name}")).collect();
            lines +=
                &format!("complete -c stacklab -n \"{}\" -a \"{}\"\n", seen.join("; and "), names.join(" "));
        }
    }
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        lines += &list_for_fish(inner, &[above, &[inner.get_name()]].concat());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    fn write(shell: Shell) -> String {
        write_script(shell, Cli::command())
    }

    /// The names that bash offers behind an option of a command.
    fn list_in_bash<'a>(script: &'a str, command: &str, option: &str) -> Vec<&'a str> {
        let of_command = script.split(&format!("        stacklab__subcmd__{command})\n")).nth(1).unwrap();
        let of_option = of_command.split(&format!("                --{option})\n")).nth(1).unwrap();
        let names = of_option.split("compgen -W \"").nth(1).unwrap();
        names.split('"').next().unwrap().split(' ').collect()
    }

    #[test]
    fn scripts_offer_the_built_in_studies_and_files() {
        let [bash, zsh, fish] = [Shell::Bash, Shell::Zsh, Shell::Fish].map(write);
        let of_run = bash.split("stacklab__subcmd__run)\n").nth(1).unwrap().lines().next().unwrap();
        assert!(of_run.contains("quickstart") && of_run.contains("mechanisms"), "{of_run}");
        assert!(bash.contains("-o default"), "files stay");
        for begin in ["quickstart", "udp tcp echo connect quickstart", "gvisor"] {
            assert!(zsh.contains(&format!(":{{compadd -- {begin} ")), "{begin} in {zsh}");
        }
        assert!(zsh.contains("; _files}'"));
        assert!(fish.contains("-n \"__fish_seen_subcommand_from run\" -a \"quickstart "));
        let of_reference = fish.lines().find(|line| line.contains("from reference; and")).unwrap();
        assert!(of_reference.contains("kolahi2011wlan") && !of_reference.contains("quickstart"));
        assert!(fish.contains(
            "-n \"__fish_seen_subcommand_from image; and __fish_seen_subcommand_from get\" -a \"gvisor "
        ));
    }

    #[test]
    fn options_offer_their_closed_sets() {
        let bash = write(Shell::Bash);
        for (command, option, some) in [
            ("run", "without", &["linux-6.12", "iperf3", "ipv6", "464xlat"][..]),
            ("run", "scale", &["quick", "standard", "paper"]),
            ("compare", "metric", &["throughput", "rtt", "sender_cpu_per_message"]),
            ("explain", "factor", &["family", "mechanism", "wifi.channel_width"]),
            ("report", "format", &["text", "html", "latex"]),
            ("regress", "baseline", &["linux-6.1"]),
        ] {
            let names = list_in_bash(&bash, command, option);
            for name in some {
                assert!(names.contains(name), "{command} --{option} has no {name}: {names:?}");
            }
        }
        // What the command line refuses is not offered.
        assert_eq!(list_in_bash(&bash, "export", "format"), ["csv", "raw-csv", "parquet"]);
        assert!(!list_in_bash(&bash, "compare", "metric").contains(&"generator_tx_error"));
        let [zsh, fish] = [Shell::Zsh, Shell::Fish].map(write);
        assert!(zsh.contains(":(csv raw-csv parquet)'") && fish.contains("raw-csv\\t''"), "{fish}");
    }
}
