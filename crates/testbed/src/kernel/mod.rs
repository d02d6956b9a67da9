//! Access to the kernel: namespaces, netlink, sysctl, processors, queueing disciplines.

pub mod capability;
pub mod cpus;
pub mod genl;
pub mod namespace;
pub mod netlink;
pub(crate) mod privilege;
pub(crate) mod rps;
pub(crate) mod running_process;
pub mod sys;
pub mod sysctl;
pub mod tc;
