//! Statistics with bounded memory.

pub mod clock;
pub(crate) mod flow;
pub(crate) mod ipdv;
pub(crate) mod series;
pub(crate) mod slices;
pub(crate) mod waiting;

pub use flow::delays;
