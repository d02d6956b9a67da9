//! A virtual machine as a host: QEMU with a Debian kernel and this program as its init process, or with the user's
//! disk image. Its channel is virtio-serial. Its network interfaces are tap devices.
//!
//! The presence of /dev/kvm does not mean that KVM works: on a machine that is itself virtual, kernels may hang on it.
//! Therefore a kernel is booted once with KVM, and the result is kept until this machine reboots.

use crate::image::cache;
use crate::kind::running::EMULATOR_LOG;
use crate::{Boot, Greeting, GuestRole, Image, Running};
use stacklab_testbed::addressing::hardware_address_text;
use stacklab_testbed::kernel::sys::keep_open;
use stacklab_testbed::link::tap_of;
use stacklab_testbed::{Attempt, Fault, GuestSpec, Interface, spawn_in_namespace};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout for a Debian kernel to boot. Emulated, it takes 4 s on an idle machine.
const KERNEL_TIMEOUT: Duration = Duration::from_secs(60);
const DISK_TIMEOUT: Duration = Duration::from_secs(300);
const KERNEL_MIB: u32 = 512;
const DISK_MIB: u32 = 1024;

#[derive(Debug)]
pub(crate) struct Vm {
    pub qemu: PathBuf,
    pub accelerator: Accelerator,
    pub boots: Boots,
}

#[derive(Debug)]
pub(crate) enum Boots {
    /// The kernel of an image, and an initramfs: its modules, this program and the libraries that it needs.
    Kernel(Image, PathBuf),
    /// A disk image, which is not written to.
    Disk(PathBuf),
}

impl Boot for Vm {
    fn version(&self) -> String {
        let what = match &self.boots {
            Boots::Kernel(image, _) => format!("Linux {}", image.version),
            Boots::Disk(disk) => disk.display().to_string(),
        };
        format!("{what} in QEMU ({})", self.accelerator.words().0)
    }

    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault> {
        let (own, its) = UnixStream::pair().attempt("make a channel")?;
        let console = spec.folder.join("console");
        let mut command = machine(&self.qemu, self.accelerator, &its);
        let on = if spec.offloads { "on" } else { "off" };
        command.args(["-device", "virtio-rng-pci"]);
        for Interface { link, hardware, mtu } in role.interfaces() {
            let tap = tap_of(link);
            let mac = hardware_address_text(hardware);
            command
            .args(["-netdev", &format!("tap,id={link},ifname={tap},script=no,downscript=no")])
            // These are the segmentation and coalescing offloads. The other offloads compute checksums.
            .args(["-device", &format!(
                "virtio-net-pci,netdev={link},mac={mac},romfile=,host_mtu={mtu},gso={on},guest_tso4={on},guest_tso6={on},guest_ecn={on},guest_ufo={on},host_tso4={on},host_tso6={on},host_ecn={on},host_ufo={on}",
            )]);
        }
        command
            .arg("-chardev")
            .arg(format!("file,id=console,path={}", value(&console)))
            .args(["-device", "isa-serial,chardev=console"]);
        let patience = match &self.boots {
            Boots::Kernel(image, initramfs) => {
                let mebibytes = if role.hosts_testbeds() { 2 * KERNEL_MIB } else { KERNEL_MIB };
                boot(
                    &mut command,
                    &image.file("kernel"),
                    initramfs,
                    mebibytes,
                    "console=ttyS0 loglevel=4 net.ifnames=0",
                );
                KERNEL_TIMEOUT
            }
            Boots::Disk(disk) => {
                command.args(["-m", &DISK_MIB.to_string(), "-snapshot", "-drive"]);
                command.arg(format!("file={},if=virtio", value(disk)));
                DISK_TIMEOUT
            }
        };
        let log = File::create(spec.folder.join(EMULATOR_LOG));
        command.stderr(log.attempt(format!("write {EMULATOR_LOG}"))?);
        let process = spec.spawn(&mut command)?;
        drop(its);
        Ok(Running { process, channel: Some(own), role: Some((role, patience)), console })
    }
}

/// A machine with one processor and a channel as its only device. The agent in it uses this socket, which may be closed
/// in this process once the machine runs.
fn machine(qemu: &Path, accelerator: Accelerator, channel: &UnixStream) -> Command {
    let mut command = Command::new(qemu);
    command
        // What a guest makes of it can start no programs and gain no privileges.
        .args(["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-M", "q35", "-smp", "1"])
        .args(accelerator.words().1)
        .args(["-device", "virtio-serial-pci"])
        .args(["-chardev", &format!("socket,id=agent,fd={}", channel.as_raw_fd())])
        .args(["-device", "virtserialport,chardev=agent,name=stacklab"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    keep_open(&mut command, channel.as_raw_fd());
    command
}

/// A path as the value of an option of QEMU, where a comma ends a value unless it stands twice.
fn value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

fn boot(command: &mut Command, kernel: &Path, initramfs: &Path, mebibytes: u32, words: &str) {
    command.args(["-m", &mebibytes.to_string(), "-kernel"]).arg(kernel).arg("-initrd").arg(initramfs);
    command.arg("-append").arg(format!("{words} quiet panic=-1 mitigations=off rdinit=/stacklab -- guest"));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    Kvm,
    Tcg,
}

impl Accelerator {
    /// Its name, and the arguments for QEMU, which emulates an old model: newer instructions cost more than they save.
    fn words(self) -> (&'static str, [&'static str; 4]) {
        match self {
            Accelerator::Kvm => ("KVM", ["-accel", "kvm", "-cpu", "host"]),
            Accelerator::Tcg => ("TCG, emulated", ["-accel", "tcg,thread=multi", "-cpu", "Nehalem"]),
        }
    }
}

/// Timeout for a boot with KVM, which takes one second.
const KVM_TIMEOUT: Duration = Duration::from_secs(8);
pub(crate) const DEVICE: &str = "/dev/kvm";

/// KVM if this kernel has booted with it, else the emulator. Tries a boot if the result is not known yet.
pub(crate) fn accelerator_that_works(qemu: &Path, kernel: &Path, initramfs: &Path) -> Accelerator {
    if let Some(known) = known_accelerator() {
        return known;
    }
    let works = boots_with_kvm(qemu, kernel, initramfs).unwrap_or(false);
    let found = if works { Accelerator::Kvm } else { Accelerator::Tcg };
    if let Some(path) = known_file() {
        let _ = fs::create_dir_all(cache()).and_then(|()| fs::write(path, found.words().0));
    }
    found
}

/// The accelerator that works, if known without a trial.
pub(crate) fn known_accelerator() -> Option<Accelerator> {
    if OpenOptions::new().read(true).write(true).open(DEVICE).is_err() {
        return Some(Accelerator::Tcg);
    }
    let kept = fs::read_to_string(known_file()?).ok()?;
    [Accelerator::Kvm, Accelerator::Tcg].into_iter().find(|found| found.words().0 == kept)
}

fn known_file() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(cache().join(format!("accelerator-{}", boot.trim())))
}

/// Whether the kernel boots with KVM and starts this program.
fn boots_with_kvm(qemu: &Path, kernel: &Path, initramfs: &Path) -> io::Result<bool> {
    let (own, its) = UnixStream::pair()?;
    own.set_read_timeout(Some(KVM_TIMEOUT))?;
    let mut command = machine(qemu, Accelerator::Kvm, &its);
    boot(&mut command, kernel, initramfs, 512, "");
    let started = spawn_in_namespace(std::process::id(), &mut command, &[]);
    let mut running = started.map_err(io::Error::other)?;
    drop(its);
    let mut line = String::new();
    let heard = BufReader::new(own).read_line(&mut line);
    let waits =
        heard.is_ok() && serde_json::from_str(&line).is_ok_and(|said: Greeting| said == Greeting::Waiting);
    running.kill()?;
    Ok(waits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_makes_of_qemu_starts_no_program() {
        let (channel, _its) = UnixStream::pair().unwrap();
        let command = machine(Path::new("qemu"), Accelerator::Tcg, &channel);
        let words: Vec<&str> = command.get_args().map(|word| word.to_str().unwrap()).collect();
        let sandbox = words.windows(2).find(|pair| pair[0] == "-sandbox").expect("it has a sandbox")[1];
        for part in ["on", "obsolete=deny", "elevateprivileges=deny", "spawn=deny", "resourcecontrol=deny"] {
            assert!(sandbox.split(',').any(|word| word == part), "{part}: {sandbox}");
        }
    }

    #[test]
    fn a_path_with_commas_is_one_value() {
        assert_eq!(
            value(Path::new("/a,b/format=raw,readonly=off.img")),
            "/a,,b/format=raw,,readonly=off.img"
        );
    }
}
