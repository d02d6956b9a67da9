//! Tests that compare what the machine can do: nothing runs beside them.

mod directions;
mod explain;
mod frugality;
mod interleaved;
mod known_truth;
mod metrics;
mod same_arm;
mod truth;
mod tuning;
