//! Prepares a guest from a system's name.

use crate::image::tree::{SEEDED, XSTATE};
use crate::image::{initramfs, wifi};
use crate::kernel::Kernel;
use crate::kind::gvisor::Gvisor;
use crate::kind::uml::Uml;
use crate::kind::vm::kvm::{self, Accelerator};
use crate::kind::vm::machine::{Boots, Vm, emulator};
use crate::{Boot, Image, no_image};
use stacklab_model::System;
use stacklab_model::wifi::WifiClock;
use stacklab_testbed::{Guest, TestbedError, Workdir, not_built};
use std::fs;
use std::path::{Path, PathBuf};

/// The guest for a host of this system. `None` for a plain namespace. Writes the files that the guest boots from to
/// the folder, including the given other programs.
pub fn prepare(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
) -> Result<Option<Box<dyn Guest>>, TestbedError> {
    Ok(prepared(system, program, others, folder)?.map(|guest| guest as Box<dyn Guest>))
}

/// As [`prepare`]: a guest that takes any role.
pub(crate) fn prepared(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
) -> Result<Option<Box<dyn Boot>>, TestbedError> {
    Ok(Some(match system {
        System::Namespace => return Ok(None),
        System::Gvisor => {
            let image = Image::to_boot(system)?;
            Box::new(Gvisor { runsc: image.file("runsc"), version: image.version })
        }
        System::Linux(_) => {
            let image = Image::to_boot(system)?;
            let initramfs = ramdisk(system, program, others, folder, &[image.file("modules.cpio")])?;
            let boots = Boots::Kernel { kernel: image.file("kernel"), initramfs, release: image.version };
            machine(boots)?
        }
        System::Disk(path) => {
            let disk = PathBuf::from(path);
            fs::File::open(&disk).map_err(TestbedError::file(&disk))?;
            machine(Boots::Disk(disk))?
        }
        System::Uml | System::OwnUml(_) => {
            let image = Image::to_boot(system)?;
            let modules = modules_of(&image);
            let initramfs = ramdisk(system, program, others, folder, &modules)?;
            Box::new(uml(image, initramfs))
        }
        System::Localhost | System::Ssh(_) => return Err(not_built(system)),
    }))
}

/// The guest for a Wi-Fi testbed: user-mode Linux with simulated radios, and the programs of a network.
pub(crate) fn prepare_wifi(
    system: &System,
    program: &Path,
    folder: &Workdir,
    time: WifiClock,
) -> Result<Box<dyn Boot>, TestbedError> {
    if !matches!(system, System::OwnUml(_)) {
        return Err(no_image(&System::OwnUml("full".to_owned()), format!("{system} has no Wi-Fi")));
    }
    let image = Image::to_boot(system)?;
    let programs = image.file(wifi::ARCHIVE);
    if !programs.exists() || image.lacks_options(&[RADIOS]) {
        return Err(no_image(system, "its image was built without Wi-Fi".to_owned()));
    }
    if time == WifiClock::Virtual && (!takes_requests(&image.file(SEEDED)) || image.lacks_options(&[TIME])) {
        return Err(no_image(system, "its image was built without virtual time as it is now".to_owned()));
    }
    let mut archives = modules_of(&image);
    archives.push(programs);
    let initramfs = ramdisk(system, program, &[], folder, &archives)?;
    Ok(Box::new(uml(image, initramfs)))
}

/// The kernel options of simulated radios and of virtual time.
const RADIOS: &str = "CONFIG_MAC80211_HWSIM=y";
const TIME: &str = "CONFIG_UML_TIME_TRAVEL_SUPPORT=y";

/// Whether an image's library gives a guest its requests: images were built without that, too.
fn takes_requests(library: &Path) -> bool {
    const NAME: &[u8] = b"%s.pipe";
    fs::read(library).is_ok_and(|bytes| bytes.windows(NAME.len()).any(|part| part == NAME))
}

/// The modules of an image. A kernel that was built here has everything built in.
fn modules_of(image: &Image) -> Vec<PathBuf> {
    [image.file("modules.cpio")].into_iter().filter(|path| path.exists()).collect()
}

fn uml(image: Image, initramfs: PathBuf) -> Uml {
    let [libraries, kernel, seeded, xstate] = ["lib", "kernel", SEEDED, XSTATE].map(|name| image.file(name));
    let xstate = Some(xstate).filter(|library| library.exists());
    Uml { libraries, kernel, seeded, xstate, initramfs, release: image.version }
}

fn machine(boots: Boots) -> Result<Box<dyn Boot>, TestbedError> {
    let qemu = emulator()?;
    let accelerator = match &boots {
        Boots::Kernel { kernel, initramfs, .. } => kvm::that_works(&qemu, kernel, initramfs),
        // The system on the disk image is unknown. Use the accelerator that was found earlier with a Debian kernel,
        // if one was booted.
        Boots::Disk(_) => kvm::known().unwrap_or(Accelerator::Tcg),
    };
    Ok(Box::new(Vm { qemu, accelerator, boots }))
}

/// The files that a virtual machine boots from, and QEMU, for a caller that starts it.
#[derive(Debug)]
pub struct BootFiles {
    /// The QEMU program.
    pub qemu: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs: its modules and the program as `/stacklab`.
    pub initramfs: PathBuf,
}

/// The files for a machine with this kernel, this program and others; writes the initramfs to the folder.
///
/// # Errors
/// QEMU is missing; the error says how to get it. Or the initramfs cannot be written.
pub fn boot_files(
    kernel: &Kernel,
    program: &Path,
    others: &[PathBuf],
    folder: &Path,
) -> Result<BootFiles, TestbedError> {
    let qemu = emulator()?;
    let initramfs = folder.join("initramfs");
    initramfs::write(&initramfs, kernel.modules.as_slice(), program, others)
        .map_err(TestbedError::file(&initramfs))?;
    Ok(BootFiles { qemu, kernel: kernel.file.clone(), initramfs })
}

/// The initramfs with the modules and this program. Made once and used for both hosts.
fn ramdisk(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
    before: &[PathBuf],
) -> Result<PathBuf, TestbedError> {
    let path = folder.path().join(format!("{system}.cpio"));
    if !path.exists() {
        initramfs::write(&path, before, program, others).map_err(TestbedError::file(&path))?;
    }
    Ok(path)
}
