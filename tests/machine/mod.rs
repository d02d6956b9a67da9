//! Tests that compare what the machine can do: nothing runs beside them.

mod connections;
mod directions;
mod explain;
mod interleaved;
mod memory;
mod search;
