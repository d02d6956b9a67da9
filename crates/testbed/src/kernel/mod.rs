//! Access to the kernel: namespaces, netlink, sysctl, processors, queueing disciplines.

pub(crate) mod capability;
pub(crate) mod cpus;
pub(crate) mod namespace;
pub(crate) mod netlink;
pub(crate) mod privilege;
pub(crate) mod rps;
pub(crate) mod sys;
pub(crate) mod sysctl;
pub(crate) mod tc;
