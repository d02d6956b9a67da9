//! A trial as the coordinator runs it on two agents.

mod clock_sync;
pub(crate) mod execute;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod path;
mod run;
mod slots;
pub mod transfers;

pub use clock_sync::measure_offset;
pub use path::{NatPath, Path};
pub use run::{Collected, Figures, collect, collect_in_turns, figures, run_trial};
pub use slots::{PathLimits, SlotArm, SlotLengths, collect_in_slots};
