//! Kinds of guests: gVisor, user-mode Linux, virtual machines.

pub(crate) mod available;
mod gvisor;
pub(crate) mod prepare;
pub(crate) mod running;
mod uml;
pub(crate) mod vm;
