//! The accelerator of a virtual machine: the processor (KVM) or QEMU's emulator (TCG).

use std::fmt;

/// The accelerator of a virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The processor (KVM).
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

impl Accelerator {
    /// The arguments for QEMU. The emulated processor is an old model: emulating newer instructions costs more time
    /// than they save.
    pub(crate) fn arguments(self) -> [&'static str; 4] {
        match self {
            Accelerator::Kvm => ["-accel", "kvm", "-cpu", "host"],
            Accelerator::Tcg => ["-accel", "tcg,thread=multi", "-cpu", "Nehalem"],
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Accelerator::Kvm => "KVM",
            Accelerator::Tcg => "TCG, emulated",
        })
    }
}
