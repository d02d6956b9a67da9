//! Virtual machines.

pub(crate) mod kvm;
pub(crate) mod machine;
