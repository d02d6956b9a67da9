//! A single measurement by hand: from options to a plan, to two agents, to what is printed.

pub mod ends;
pub mod options;
pub mod plan;
mod quantities;
#[cfg(test)]
pub(crate) mod tests;
