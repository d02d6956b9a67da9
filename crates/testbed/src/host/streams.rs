//! The byte streams of an agent.

use std::io::{Read, Write};
use std::process::Child;

/// What an agent writes, and what it reads.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// What a process writes and reads whose standard input and output are pipes; `None` once taken.
pub(crate) fn streams_of(child: &mut Child) -> Option<Streams> {
    let (output, input) = child.stdout.take().zip(child.stdin.take())?;
    Some((Box::new(output), Box::new(input)))
}
