//! What a dual-stack host looks like from here over each family, with no agent anywhere.

mod boundary;
mod deadline;
pub(crate) mod dns;
pub(crate) mod export;
pub(crate) mod findings;
pub(crate) mod http;
pub(crate) mod metric;
pub(crate) mod pace;
pub(crate) mod print;
pub(crate) mod probes;
pub(crate) mod target;
