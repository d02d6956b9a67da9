//! The byte streams of an agent, and the lines of JSON on them.

use serde::Serialize;
use std::io::{self, Read, Write};

/// An agent's output and input, in this order.
pub type Streams = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// Writes a message as one line of JSON, and flushes it.
pub fn write_message(out: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    out.write_all(&line)?;
    out.flush()
}
