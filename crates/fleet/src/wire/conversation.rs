//! A conversation of a coordinator with an agent.

use crate::FleetError;
use crate::message::{Answer, MAX_ANSWER_LENGTH, Request};
use crate::wire::Wire;
use stacklab_testbed::write_message;
use stacklab_traffic::protocol::Lines;
use std::fmt::Display;
use std::io::{BufReader, Read, Write};
use std::time::Duration;

/// A conversation with an agent: one request, then its answer. Fails after a silence of `limit`, or if the agent says
/// that it failed.
pub(crate) fn ask(
    wire: &dyn Wire,
    agent: &str,
    request: &Request,
    limit: Duration,
) -> Result<Answer, FleetError> {
    talk(wire, agent, request, limit).map(|(answer, ..)| answer)
}

/// As [`ask`]. Returns the rest of the stream, too.
pub(crate) fn talk(
    wire: &dyn Wire,
    agent: &str,
    request: &Request,
    limit: Duration,
) -> Result<(Answer, impl Read + Send + use<>, Box<dyn Write + Send>), FleetError> {
    let failed = |what: &str, error: &dyn Display| FleetError::agent(agent, format!("{what}: {error}"));
    let (reader, mut writer) = wire.open(agent, limit)?;
    write_message(&mut writer, request).map_err(|error| failed("it takes no request", &error))?;
    let mut reader = BufReader::new(reader);
    let line = Lines::new(&mut reader, MAX_ANSWER_LENGTH).next();
    let line = line.ok_or_else(|| FleetError::agent(agent, "it ended before it answered"))?;
    let line = line.map_err(|error| failed("it does not answer", &error))?;
    match Answer::read(&line).map_err(|error| failed("its answer is not one of this version", &error))? {
        Answer::Failed { agent, reason } => Err(FleetError::Agent { agent, reason }),
        answer => Ok((answer, reader, writer)),
    }
}

/// An answer that is none to the request.
pub(crate) fn other_answer(agent: &str) -> FleetError {
    FleetError::agent(agent, "its answer is to another question")
}
