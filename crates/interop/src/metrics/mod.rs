//! Figures for monitoring systems.

mod gauge;
mod prometheus;

pub use gauge::{Gauge, Labels};
pub use prometheus::{CONTENT_TYPE, exposition};
