//! Prepares a guest from a system's name, and says which kinds of hosts can run on this machine.

use crate::image::archive::write_initramfs;
use crate::image::gvisor::refuse_old;
use crate::image::programs::WIFI_ARCHIVE;
use crate::image::tree::SEEDED;
use crate::image::{GET_QEMU, QUICKEST_IMAGE, emulator, known};
use crate::kernel::{Kernel, open_at_once};
use crate::kind::gvisor::Gvisor;
use crate::kind::smoltcp::Smoltcp;
use crate::kind::uml::Uml;
use crate::kind::vm::{Accelerator, Boots, DEVICE, Vm, accelerator_that_works, known_accelerator};
use crate::{Boot, Image, no_image};
use stacklab_model::System;
use stacklab_model::wifi::WifiClock;
use stacklab_testbed::{Ability, Guest, TestbedError, Workdir, check_tun, not_built, program_in_path};
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
    Ok(prepare_for_any_role(system, program, others, folder)?.map(|guest| Box::new(guest) as Box<dyn Guest>))
}

/// As [`prepare`]: a guest that takes any role.
pub(crate) fn prepare_for_any_role(
    system: &System,
    program: &Path,
    others: &[PathBuf],
    folder: &Workdir,
) -> Result<Option<Box<dyn Boot>>, TestbedError> {
    Ok(Some(match system {
        System::Namespace => return Ok(None),
        System::Gvisor => Box::new(Gvisor(Image::to_boot(system)?)),
        System::Smoltcp => Box::new(Smoltcp),
        System::Linux(_) => {
            let image = Image::to_boot(system)?;
            let initramfs = ramdisk(system, program, others, folder, &[image.file("modules.cpio")])?;
            machine(Boots::Kernel(image, initramfs))?
        }
        System::Disk(path) => {
            let disk = PathBuf::from(path);
            open_at_once(&disk).map_err(TestbedError::file(&disk))?;
            machine(Boots::Disk(disk))?
        }
        System::Uml | System::OwnUml(_) => {
            let image = Image::to_boot(system)?;
            let modules = modules_of(&image);
            let initramfs = ramdisk(system, program, others, folder, &modules)?;
            Box::new(Uml { image, initramfs })
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
    let programs = image.file(WIFI_ARCHIVE);
    if !programs.exists() || image.lacks_options(&[RADIOS]) {
        return Err(no_image(system, "its image was built without Wi-Fi".to_owned()));
    }
    if time == WifiClock::Virtual && (!takes_requests(&image.file(SEEDED)) || image.lacks_options(&[TIME])) {
        return Err(no_image(system, "its image was built without virtual time as it is now".to_owned()));
    }
    let mut archives = modules_of(&image);
    archives.push(programs);
    let initramfs = ramdisk(system, program, &[], folder, &archives)?;
    Ok(Box::new(Uml { image, initramfs }))
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

fn machine(boots: Boots) -> Result<Box<dyn Boot>, TestbedError> {
    let qemu = emulator()?;
    let accelerator = match &boots {
        Boots::Kernel(image, initramfs) => accelerator_that_works(&qemu, &image.file("kernel"), initramfs),
        // The system on the disk is unknown: use what was found earlier with a Debian kernel, if one was booted.
        Boots::Disk(_) => known_accelerator().unwrap_or(Accelerator::Tcg),
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
pub fn boot_files(
    kernel: &Kernel,
    program: &Path,
    others: &[PathBuf],
    folder: &Path,
) -> Result<BootFiles, TestbedError> {
    let qemu = emulator()?;
    let initramfs = folder.join("initramfs");
    write_initramfs(&initramfs, kernel.modules.as_slice(), program, others)
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
        write_initramfs(&path, before, program, others).map_err(TestbedError::file(&path))?;
    }
    Ok(path)
}

/// How to get a guest, on a machine that can run it.
const fn advise(way: &'static str) -> &'static str {
    if cfg!(target_arch = "x86_64") { way } else { "an x86-64 machine" }
}

/// Each system that a study can name, and whether it can run here. Starts no guest.
pub fn kinds() -> Vec<Ability> {
    vec![
        refuse_old_gvisor(check_image(
            "gvisor",
            "gVisor's user-space stack",
            &System::Gvisor,
            "stacklab image get gvisor (some minutes)",
        )),
        Ability {
            name: "smoltcp",
            what_for: "the stack of that library, within the agent",
            result: Ok(()),
            remedy: "",
        },
        needs_tap(machines()),
        needs_tap(check_image(
            "uml",
            "a Linux kernel as a process",
            &System::Uml,
            "stacklab image get uml (under a minute); linux-6.1 has more mechanisms",
        )),
        Ability {
            name: "ssh:HOST",
            what_for: "real machines",
            result: program_in_path("ssh").map(drop).ok_or_else(|| "there is no program `ssh`".to_owned()),
            remedy: "sudo apt-get install openssh-client",
        },
    ]
}

fn check_image(name: &'static str, what_for: &'static str, system: &System, way: &'static str) -> Ability {
    let result = Image::find(system).map(drop).map_err(|error| error.to_string());
    Ability { name, what_for, result, remedy: advise(way) }
}

/// An image that was made of an old `runsc` boots no guest.
fn refuse_old_gvisor(ability: Ability) -> Ability {
    let Ok(image) = Image::find(&System::Gvisor) else { return ability };
    match refuse_old(&image.file("runsc")) {
        Err(reason) => Ability { result: Err(format!("its runsc is too old: {reason}")), ..ability },
        Ok(()) => ability,
    }
}

/// A guest is a host of this kernel's testbeds by its tap device.
fn needs_tap(ability: Ability) -> Ability {
    match check_tun() {
        Err((reason, remedy)) if ability.result.is_ok() => Ability { result: Err(reason), remedy, ..ability },
        _ => ability,
    }
}

fn machines() -> Ability {
    let kernels: Vec<String> = known()
        .iter()
        .filter(|s| matches!(s, System::Linux(_)))
        .filter_map(|s| Image::find(s).ok())
        .map(|i| i.version)
        .collect();
    let (result, remedy) = match (program_in_path("qemu-system-x86_64"), kernels.is_empty()) {
        (None, _) => (Err("there is no program `qemu-system-x86_64`".to_owned()), GET_QEMU),
        (_, true) => (Err("no kernel is here".to_owned()), advise(QUICKEST_IMAGE)),
        _ => (Ok(()), ""),
    };
    let what_for = match known_accelerator() {
        Some(Accelerator::Kvm) => "Linux of other versions in virtual machines (KVM)",
        Some(Accelerator::Tcg) if Path::new(DEVICE).exists() => {
            "Linux of other versions in virtual machines (TCG, emulated: /dev/kvm cannot be opened, or no kernel boots \
             with it)"
        }
        Some(Accelerator::Tcg) => {
            "Linux of other versions in virtual machines (TCG, emulated: there is no /dev/kvm)"
        }
        None => "Linux of other versions in virtual machines (whether KVM works is tried at the first)",
    };
    Ability { name: "linux-SERIES", what_for, result, remedy }
}
