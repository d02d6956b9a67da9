//! Virtual machines.

pub(crate) mod accelerator;
pub(crate) mod kvm;
pub(crate) mod machine;
pub(crate) mod qemu;
