//! Figures for monitoring systems.

mod gauge;
mod otlp;
mod prometheus;

pub use gauge::{Gauge, Labels};
pub use otlp::{OTLP_CONTENT_TYPE, OTLP_METRICS_PATH, Resource, refused_points, requests};
pub use prometheus::{CONTENT_TYPE, exposition};
