//! The kernel's sampling interface. All `unsafe` of this crate is here.

mod counter;
mod processors;
mod ring;

pub use counter::{Counter, Rate};
pub use processors::{cpus, now_ns};
pub use ring::{Record, Ring};
