//! Examples that the tests of this crate share, and the reports of them.

pub mod fixtures;
mod golden;
