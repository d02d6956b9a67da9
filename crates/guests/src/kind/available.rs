//! The kinds of hosts that can run on this machine.

use crate::Image;
use crate::image::installed::known;
use crate::kind::vm::kvm::{self, Accelerator};
use crate::kind::vm::machine::GET_QEMU;
use stacklab_model::System;
use stacklab_testbed::{Ability, program_in_path};

const GET: &str = if cfg!(target_arch = "x86_64") {
    "stacklab image get gvisor linux-6.1 .. (see: stacklab image list)"
} else {
    "an x86-64 machine"
};

/// Each system that a study can name, and whether it can run here. Starts nothing.
pub fn kinds() -> Vec<Ability> {
    let image = |name, what_for, system: &System| Ability {
        name,
        what_for,
        result: Image::find(system).map(drop).map_err(|error| error.to_string()),
        remedy: GET,
    };
    let program = |name, what_for, program: &str, remedy| Ability {
        name,
        what_for,
        result: program_in_path(program).map(drop).ok_or_else(|| format!("there is no program `{program}`")),
        remedy,
    };
    vec![
        image("gvisor", "gVisor's user-space stack", &System::Gvisor),
        machines(),
        image("uml", "a Linux kernel as a process", &System::Uml),
        program("ssh:HOST", "real machines", "ssh", "sudo apt-get install openssh-client"),
    ]
}

/// Whether virtual machines can run here: they need QEMU and a kernel.
fn machines() -> Ability {
    let kernels: Vec<String> = known()
        .iter()
        .filter(|s| matches!(s, System::Linux(_)))
        .filter_map(|s| Image::find(s).ok())
        .map(|i| i.version)
        .collect();
    let (result, remedy) = match (program_in_path("qemu-system-x86_64"), kernels.is_empty()) {
        (None, _) => (Err("there is no program `qemu-system-x86_64`".to_owned()), GET_QEMU),
        (_, true) => (Err("no kernel is here".to_owned()), GET),
        _ => (Ok(()), GET),
    };
    let what_for = match kvm::known() {
        Some(Accelerator::Kvm) => "Linux of other versions in virtual machines (KVM)",
        Some(Accelerator::Tcg) => "Linux of other versions in virtual machines (TCG, emulated)",
        None => "Linux of other versions in virtual machines (whether KVM works is tried at the first)",
    };
    Ability { name: "linux-SERIES", what_for, result, remedy }
}
