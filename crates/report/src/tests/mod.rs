//! Examples that the tests of this crate share, and the reports of them.

mod columns;
mod control;
mod counted;
mod counted_programs;
pub(crate) mod fixtures;
mod golden;
mod levels;
pub(crate) mod rows;
mod searched;
mod types;
