//! From a system's name to a guest that can be started.

use crate::error::TestbedError;
use crate::host::guest::Guest;
use crate::host::gvisor::Gvisor;
use crate::host::uml::Uml;
use crate::host::vm::accelerator::Accelerator;
use crate::host::vm::kvm;
use crate::host::vm::machine::{Boots, Vm};
use crate::host::vm::qemu::emulator;
use crate::host::workdir::Workdir;
use crate::image::initramfs;
use crate::image::installed::Image;
use stacklab_model::System;
use std::path::{Path, PathBuf};

/// What runs on a host of this system; `None` for a plain namespace. What the guest boots from is put into the folder, with
/// these other programs in it.
///
/// # Errors
/// When the system has no image here, or QEMU is missing; both say how to get it.
pub(crate) fn prepare(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
) -> Result<Option<Box<dyn Guest>>, TestbedError> {
    Ok(Some(match system {
        System::Namespace => return Ok(None),
        System::Gvisor => {
            let image = Image::find(system)?;
            Box::new(Gvisor { runsc: image.file("runsc"), version: image.version })
        }
        System::Linux(_) => {
            let image = Image::find(system)?;
            let initramfs = ramdisk(system, program, others, folder, &[image.file("modules.cpio")])?;
            let boots = Boots::Kernel { kernel: image.file("kernel"), initramfs, release: image.version };
            machine(boots)?
        }
        System::Disk(path) => {
            let disk = PathBuf::from(path);
            if let Err(reason) = std::fs::File::open(&disk) {
                return Err(TestbedError::File { path: disk, reason });
            }
            machine(Boots::Disk(disk))?
        }
        System::Uml | System::OwnUml(_) => {
            let image = Image::find(system)?;
            // One that was built here has all in its kernel.
            let modules: Vec<PathBuf> =
                [image.file("modules.cpio")].into_iter().filter(|path| path.exists()).collect();
            Box::new(Uml {
                libraries: image.file("lib"),
                kernel: image.file("kernel"),
                initramfs: ramdisk(system, program, others, folder, &modules)?,
                release: image.version,
            })
        }
        System::Here | System::Ssh(_) => return Err(TestbedError::NotBuilt(system.clone())),
    }))
}

fn machine(boots: Boots) -> Result<Box<dyn Guest>, TestbedError> {
    let qemu = emulator()?;
    let accelerator = match &boots {
        Boots::Kernel { kernel, initramfs, .. } => kvm::that_works(&qemu, kernel, initramfs),
        // Nothing is known of what is on it: what a kernel of Debian's has told, where one was booted.
        Boots::Disk(_) => kvm::known().unwrap_or(Accelerator::Tcg),
    };
    Ok(Box::new(Vm { qemu, accelerator, boots }))
}

/// The files that a kernel unpacks when it boots: its modules, and this program. Made once for both hosts.
fn ramdisk(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
    before: &[PathBuf],
) -> Result<PathBuf, TestbedError> {
    let path = folder.path().join(format!("{system}.cpio"));
    if !path.exists() {
        initramfs::write(&path, before, program, others)
            .map_err(|reason| TestbedError::File { path: path.clone(), reason })?;
    }
    Ok(path)
}
