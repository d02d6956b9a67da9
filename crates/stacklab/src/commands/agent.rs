//! `stacklab agent`.

use crate::cli::AgentOptions;
use crate::failure::Failure;
use std::io::{BufReader, stdin, stdout};

/// Serves a coordinator on standard input and output until the input ends.
pub fn agent(_options: &AgentOptions) -> Result<(), Failure> {
    stacklab_traffic::agent::serve(BufReader::new(stdin()), stdout())
        .map_err(|reason| Failure::Output { what: "an answer".to_owned(), reason })
}
