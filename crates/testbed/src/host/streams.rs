//! The byte streams of an agent.

use std::io::{Read, Write};
use std::process::Child;

/// An agent's output and input, in this order.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// The output and input of a process with piped standard streams. `None` once taken.
pub(crate) fn streams_of(child: &mut Child) -> Option<Streams> {
    let (output, input) = child.stdout.take().zip(child.stdin.take())?;
    Some((Box::new(output), Box::new(input)))
}
