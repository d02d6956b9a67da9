//! Hosts: a process in a network namespace, and the guest whose network stack replaces the namespace's.

pub mod console;
pub mod disk;
pub mod guest;
pub mod launch;
pub mod path_role;
pub mod program;
pub mod streams;
pub mod ticks;
pub(crate) mod tool;
pub mod workdir;
