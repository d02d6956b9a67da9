//! What a misspelt word of the command line may mean. clap compares whole words and finds nothing for short ones, such
//! as `rnu`.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use stacklab_model::nearest;

/// The error with the nearest command, option or value, in the place of what clap has named. `words` are those of the
/// command line, without the program.
pub(crate) fn with_suggestion(mut error: clap::Error, line: &clap::Command, words: &[String]) -> clap::Error {
    let kinds = match error.kind() {
        ErrorKind::InvalidSubcommand => [ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand],
        ErrorKind::UnknownArgument => [ContextKind::InvalidArg, ContextKind::SuggestedArg],
        ErrorKind::InvalidValue => [ContextKind::InvalidValue, ContextKind::SuggestedValue],
        _ => return error,
    };
    let Some(ContextValue::String(found)) = error.get(kinds[0]).cloned() else { return error };
    let names = match error.kind() {
        ErrorKind::InvalidSubcommand => subcommands_of(find_command(line, words)),
        ErrorKind::UnknownArgument => options_of(find_command(line, words)),
        _ => match error.get(ContextKind::ValidValue) {
            Some(ContextValue::Strings(values)) => values.clone(),
            _ => Vec::new(),
        },
    };
    let found = found.split('=').next().unwrap_or_default();
    let Some(near) = nearest(found, names.iter().map(String::as_str)) else { return error };
    let near = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextValue::Strings(vec![near.to_owned()]),
        _ => ContextValue::String(near.to_owned()),
    };
    error.insert(kinds[1], near);
    error
}

/// The innermost command that the words name.
fn find_command<'a>(line: &'a clap::Command, words: &[String]) -> &'a clap::Command {
    let mut command = line;
    for word in words {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
        }
    }
    command
}

fn subcommands_of(command: &clap::Command) -> Vec<String> {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.map(|inner| inner.get_name().to_owned()).collect()
}

fn options_of(command: &clap::Command) -> Vec<String> {
    let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
    shown.filter_map(|argument| Some(format!("--{}", argument.get_long()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};

    fn print_error(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&words).unwrap_err();
        with_suggestion(error, &Cli::command(), &words[1..]).to_string()
    }

    #[test]
    fn a_misspelt_word_has_the_nearest_one() {
        for (line, near) in [
            ("stacklab rnu", "'run'"),
            ("stacklab plna", "'plan'"),
            ("stacklab lba up", "'lab'"),
            ("stacklab lab pu", "'up'"),
            ("stacklab image gte uml", "'get'"),
            ("stacklab measure tpc a", "'tcp'"),
            ("stacklab fleet rnu", "'run'"),
            ("stacklab run --sede 1", "'--seed'"),
            ("stacklab report a --otu=b", "'--out'"),
            ("stacklab completions fihs", "'fish'"),
            ("stacklab repotr", "'report'"),
        ] {
            let error = print_error(line);
            assert!(error.contains(near) && error.contains("similar"), "{line}: {error}");
        }
        assert!(!print_error("stacklab banana").contains("similar"));
    }

    #[test]
    fn what_is_missing_is_named_as_it_is_typed() {
        let shells = print_error("stacklab completions");
        for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
            assert!(shells.contains(shell), "{shells}");
        }
        let agent = print_error("stacklab agent");
        assert!(agent.contains("not provided:\n  --listen [<ADDRESS>]"), "{agent}");
    }
}
