//! Whether KVM works here.
//!
//! That /dev/kvm is there says little: a machine that is virtual itself may have it, and kernels hang on it. So a kernel is
//! booted once, and the answer kept until this machine is booted again.

use crate::guest::protocol::Greeting;
use crate::host::vm::accelerator::Accelerator;
use crate::host::vm::qemu::{boot, machine};
use crate::image::cache::cache;
use crate::kernel::namespace::spawn_in_namespace;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a kernel may take to boot on the processor: it takes a second.
const PATIENCE: Duration = Duration::from_secs(8);
const DEVICE: &str = "/dev/kvm";

/// The processor where this kernel has booted with it, tried where that is not known yet; else the emulator.
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
                // Where it cannot be kept it is tried again.
                let _ = fs::create_dir_all(cache()).and_then(|()| fs::write(path, found.to_string()));
            }
            found
        }
    }
}

/// What works, where that is known without a trial.
pub(crate) fn known() -> Option<Accelerator> {
    if OpenOptions::new().read(true).write(true).open(DEVICE).is_err() {
        return Some(Accelerator::Tcg);
    }
    let kept = fs::read_to_string(answer()?).ok()?;
    [Accelerator::Kvm, Accelerator::Tcg].into_iter().find(|found| found.to_string() == kept)
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
    let started = spawn_in_namespace(std::process::id(), &mut command, &[]);
    let mut running = started.map_err(io::Error::other)?;
    drop(its);
    let mut line = String::new();
    let heard = BufReader::new(own).read_line(&mut line);
    let waits =
        heard.is_ok() && serde_json::from_str(&line).is_ok_and(|said: Greeting| said == Greeting::Waiting);
    running.kill()?;
    running.wait()?;
    Ok(waits)
}
