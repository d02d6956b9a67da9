//! The guest's side: the steps from a freshly booted kernel, or from a system that has started this program, to a
//! host on the link.

pub(crate) mod agent;
pub(crate) mod channel;
pub(crate) mod hosted;
pub(crate) mod init;
pub(crate) mod outside;
pub(crate) mod protocol;
pub(crate) mod wifi;

pub use agent::{is_first, leave, open_channel, prepare_alone, prepare_testbeds, reset, take_role};
