//! Hosts: a process in a network namespace, and the guest whose network stack replaces the namespace's.

pub(crate) mod available;
pub(crate) mod console;
pub(crate) mod disk;
pub(crate) mod guest;
pub(crate) mod gvisor;
pub(crate) mod launch;
pub(crate) mod prepare;
pub(crate) mod program;
pub(crate) mod streams;
pub(crate) mod ticks;
pub(crate) mod tool;
pub(crate) mod uml;
pub(crate) mod vm;
pub(crate) mod workdir;
