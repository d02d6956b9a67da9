//! What a dual-stack host looks like from here over each family, with no agent anywhere.

mod deadline;
pub mod dns;
pub mod export;
pub mod findings;
pub mod http;
pub mod metric;
pub mod pace;
pub mod print;
pub mod probes;
pub mod target;
