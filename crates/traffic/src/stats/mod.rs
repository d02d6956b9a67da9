//! Statistics with bounded memory: delays, sequence numbers, interval series, slices, clock offset and skew.

pub mod clock;
pub mod delay;
pub(crate) mod held;
pub(crate) mod sequence;
pub(crate) mod series;
pub(crate) mod slices;
