//! `stacklab path`.

use crate::cli::path::PathOptions;
use crate::commands::output::write_stdout;
use crate::failure::Failure;
use stacklab_agent::interrupt;
use stacklab_path::{Outcome, PathError, Settings, Target, named, pairs, system_resolvers};
use stacklab_traffic::protocol::AgentError;

/// Looks at hosts over each family and prints what differs.
///
/// # Errors
/// When a name has no address, a family does not work, the families drift apart, or the user interrupts before the
/// first round's end.
pub(crate) fn path(options: &PathOptions) -> Result<(), Failure> {
    let interrupted = interrupt::flag()
        .map_err(|reason| Failure::System { attempted: "install signal handlers", reason })?;
    let targets = targets(options)?;
    let resolvers = if options.resolver.is_empty() { system_resolvers() } else { options.resolver.clone() };
    let settings = Settings {
        resolvers: &resolvers,
        rounds: options.rounds,
        watch: options.watch,
        metrics: options.metrics,
        pps: options.pps,
        most_bytes: options.max_bytes,
        margin: f64::from(options.margin) / 100.0,
        format: options.format,
        interrupted,
    };
    let print = |text: &str| write_stdout(text.as_bytes());
    let Outcome { broken, drifts } = stacklab_path::measure(&settings, targets, print).map_err(failure)?;
    match (broken.is_empty(), drifts) {
        (false, _) => Err(Failure::FamilyFails(broken.join("; "))),
        (true, 0) => Ok(()),
        (true, _) => Err(Failure::Drifted(drifts)),
    }
}

fn targets(options: &PathOptions) -> Result<Vec<Target>, Failure> {
    match &options.pairs {
        Some(file) => {
            let name = file.display().to_string();
            let text = std::fs::read_to_string(file)
                .map_err(|reason| Failure::Usage(format!("could not read {name}: {reason}")))?;
            pairs(&text, &name).map_err(failure)
        }
        None => options.names.iter().map(|name| named(name, &options.resolver).map_err(failure)).collect(),
    }
}

fn failure(error: PathError) -> Failure {
    match error {
        PathError::Unreadable(text) => Failure::Usage(text),
        PathError::NoAddress(text) => Failure::Unreachable(text),
        PathError::Interrupted => Failure::from(AgentError::Interrupted),
        PathError::Listen(reason) => {
            Failure::System { attempted: "listen on the address of --metrics", reason }
        }
        PathError::Output(reason) => Failure::Output { what: "to standard output".to_owned(), reason },
    }
}
