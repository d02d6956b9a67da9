//! The accelerator of a virtual machine, and whether KVM works here.
//!
//! The presence of /dev/kvm is not enough: on a machine that is itself virtual, /dev/kvm may exist and kernels may
//! hang on it. This module therefore boots a kernel once with KVM and keeps the result until this machine reboots.

use crate::Greeting;
use crate::image::installed::cache;
use crate::kind::vm::machine::{boot, machine};
use stacklab_testbed::spawn_in_namespace;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    Kvm,
    Tcg,
}

impl Accelerator {
    /// The arguments for QEMU. It emulates an old model: newer instructions cost more than they save.
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

/// Timeout for a boot with KVM, which takes one second.
const PATIENCE: Duration = Duration::from_secs(8);
const DEVICE: &str = "/dev/kvm";

/// KVM if this kernel has booted with it, else the emulator. Tries a boot if the result is not known yet.
pub(crate) fn that_works(qemu: &Path, kernel: &Path, initramfs: &Path) -> Accelerator {
    match known() {
        Some(known) => known,
        None => {
            let found = if boots(qemu, kernel, initramfs).unwrap_or(false) {
                Accelerator::Kvm
            } else {
                Accelerator::Tcg
            };
            if let Some(path) = answer() {
                // If the result cannot be stored, the next run tries again.
                let _ = fs::create_dir_all(cache()).and_then(|()| fs::write(path, found.to_string()));
            }
            found
        }
    }
}

/// The accelerator that works, if known without a trial.
pub(crate) fn known() -> Option<Accelerator> {
    if OpenOptions::new().read(true).write(true).open(DEVICE).is_err() {
        return Some(Accelerator::Tcg);
    }
    let kept = fs::read_to_string(answer()?).ok()?;
    [Accelerator::Kvm, Accelerator::Tcg].into_iter().find(|found| found.to_string() == kept)
}

/// The file that holds the result for this machine's current boot.
fn answer() -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(cache().join(format!("accelerator-{}", boot.trim())))
}

/// Whether the kernel boots with KVM and starts this program.
fn boots(qemu: &Path, kernel: &Path, initramfs: &Path) -> io::Result<bool> {
    let (own, its) = UnixStream::pair()?;
    own.set_read_timeout(Some(PATIENCE))?;
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
