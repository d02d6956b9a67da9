//! What runs a virtual machine's code: the processor, where a kernel boots with it here, else an emulator.
//!
//! That /dev/kvm is there says little: a machine that is virtual itself may have it, and kernels hang on it. So a kernel is
//! booted once, and the answer kept until this machine is booted again.

use crate::image::cache;
use crate::part::Greeting;
use crate::qemu::{boot, machine};
use crate::sys::die_with_parent_in;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a kernel may take to boot on the processor: it takes a second.
const PATIENCE: Duration = Duration::from_secs(8);
const DEVICE: &str = "/dev/kvm";

/// What runs a virtual machine's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// The processor (KVM).
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

impl Accelerator {
    /// The processor where this kernel has booted with it, tried where that is not known yet; else the emulator.
    pub fn that_works(qemu: &Path, kernel: &Path, initramfs: &Path) -> Self {
        match Self::known() {
            Some(known) => known,
            None => {
                let found =
                    if boots(qemu, kernel, initramfs).unwrap_or(false) { Self::Kvm } else { Self::Tcg };
                if let Some(path) = answer() {
                    // Where it cannot be kept it is tried again.
                    let _ = fs::create_dir_all(cache()).and_then(|()| fs::write(path, found.to_string()));
                }
                found
            }
        }
    }

    /// What is known without trying.
    pub fn known() -> Option<Self> {
        if OpenOptions::new().read(true).write(true).open(DEVICE).is_err() {
            return Some(Self::Tcg);
        }
        let kept = fs::read_to_string(answer()?).ok()?;
        [Self::Kvm, Self::Tcg].into_iter().find(|found| found.to_string() == kept)
    }

    /// The arguments for QEMU. The emulated processor is an old one: what newer ones can do costs an emulator more than it
    /// gains.
    pub fn arguments(self) -> [&'static str; 4] {
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

/// Where the answer of this boot is kept.
fn answer() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(cache().join(format!("accelerator-{}", boot.trim())))
}

/// Whether the kernel comes as far as this program on the processor.
fn boots(qemu: &Path, kernel: &Path, initramfs: &Path) -> io::Result<bool> {
    let (own, its) = UnixStream::pair()?;
    own.set_read_timeout(Some(PATIENCE))?;
    let mut command = machine(qemu, Accelerator::Kvm, &its);
    boot(&mut command, kernel, initramfs, 512, "");
    die_with_parent_in(&mut command, File::open("/proc/self/ns/net")?, &[]);
    let mut running = command.spawn()?;
    drop(its);
    let mut line = String::new();
    let heard = BufReader::new(own).read_line(&mut line);
    let waits =
        heard.is_ok() && serde_json::from_str(&line).is_ok_and(|said: Greeting| said == Greeting::Waiting);
    running.kill()?;
    running.wait()?;
    Ok(waits)
}
