//! `stacklab agent`.

use crate::cli::AgentOptions;
use crate::failure::Failure;
use crate::interrupt;
use crate::listen::listen;
use std::io::{BufReader, stdin, stdout};

/// Serves a coordinator on standard input and output until the input ends, or whoever connects.
pub fn agent(options: &AgentOptions) -> Result<(), Failure> {
    if let Some(place) = options.listen {
        let interrupted = interrupt::flag()
            .map_err(|reason| Failure::Output { what: "signal handlers".to_owned(), reason })?;
        return listen(place, options.once, interrupted);
    }
    if options.brief {
        stacklab_traffic::agent::brief();
    }
    stacklab_traffic::agent::serve(BufReader::new(stdin()), stdout())
        .map_err(|reason| Failure::Output { what: "an answer".to_owned(), reason })
}
