//! A virtual machine as a host: QEMU with a kernel of Debian's and this program as its first process, or with a disk image
//! of the user's own. It is spoken to over virtio-serial; its network interfaces are tap devices.

use crate::error::{Attempt, Fault};
use crate::guest::protocol::Interface;
use crate::host::guest::{Guest, GuestSpec, Running};
use crate::host::vm::accelerator::Accelerator;
use crate::host::vm::qemu::{boot, machine};
use crate::link::addressing::hardware_address_text;
use crate::link::bridge::tap_of;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a kernel of Debian's may take to boot. Emulated it takes 4 s where nothing else runs.
const KERNEL_PATIENCE: Duration = Duration::from_secs(60);
/// How long a whole system may.
const DISK_PATIENCE: Duration = Duration::from_secs(300);
/// Memory of a machine, MiB.
const KERNEL_MIB: u32 = 512;
const DISK_MIB: u32 = 1024;

/// A virtual machine.
#[derive(Debug)]
pub(crate) struct Vm {
    /// The program of QEMU's.
    pub qemu: PathBuf,
    /// What runs its code.
    pub accelerator: Accelerator,
    /// What it boots.
    pub boots: Boots,
}

/// What a virtual machine boots.
#[derive(Debug)]
pub(crate) enum Boots {
    /// A kernel with this program as its first process.
    Kernel {
        /// The kernel.
        kernel: PathBuf,
        /// Its modules, this program and what it needs.
        initramfs: PathBuf,
        /// Its release.
        release: String,
    },
    /// A disk image, which is not written to.
    Disk(PathBuf),
}

impl Guest for Vm {
    fn wants_a_tap(&self) -> bool {
        true
    }

    fn start(&self, spec: &GuestSpec<'_>) -> Result<Running, Fault> {
        let (own, its) = UnixStream::pair().attempt("make a channel")?;
        let console = spec.folder.join("console");
        let mut command = machine(&self.qemu, self.accelerator, &its);
        let on = if spec.offloads { "on" } else { "off" };
        command.args(["-device", "virtio-rng-pci"]);
        for Interface { link, hardware, mtu } in spec.role.interfaces() {
            let (tap, mac) = (tap_of(link), hardware_address_text(hardware));
            command
            .args(["-netdev", &format!("tap,id={link},ifname={tap},script=no,downscript=no")])
            // What joins or splits packets; what is left computes checksums.
            .args(["-device", &format!(
                "virtio-net-pci,netdev={link},mac={mac},romfile=,host_mtu={mtu},gso={on},guest_tso4={on},guest_tso6={on},guest_ecn={on},guest_ufo={on},host_tso4={on},host_tso6={on},host_ecn={on},host_ufo={on}",
            )]);
        }
        command
            .arg("-chardev")
            .arg(format!("file,id=console,path={}", console.display()))
            .args(["-device", "isa-serial,chardev=console"]);
        let patience = match &self.boots {
            Boots::Kernel { kernel, initramfs, .. } => {
                let mebibytes = if spec.hosts_testbeds() { 2 * KERNEL_MIB } else { KERNEL_MIB };
                boot(&mut command, kernel, initramfs, mebibytes, "console=ttyS0 loglevel=4 net.ifnames=0");
                KERNEL_PATIENCE
            }
            Boots::Disk(disk) => {
                command.args(["-m", &DISK_MIB.to_string(), "-snapshot", "-drive"]);
                command.arg(format!("file={},if=virtio", disk.display()));
                DISK_PATIENCE
            }
        };
        command.stderr(File::create(spec.folder.join("qemu.log")).attempt("write qemu.log")?);
        let child = spec.spawn(&mut command)?;
        drop(its);
        Ok(Running::on_socket(child, console, own, spec.role.clone(), patience))
    }

    fn version(&self) -> String {
        let what = match &self.boots {
            Boots::Kernel { release, .. } => format!("Linux {release}"),
            Boots::Disk(disk) => disk.display().to_string(),
        };
        format!("{what} in QEMU ({})", self.accelerator)
    }
}
