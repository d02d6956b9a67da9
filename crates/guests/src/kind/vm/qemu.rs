//! QEMU, and the arguments that all virtual machines share.

use crate::kind::vm::accelerator::Accelerator;
use stacklab_testbed::error::TestbedError;
use stacklab_testbed::host::program::find;
use stacklab_testbed::kernel::sys::keep_open;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) const GET_QEMU: &str = "sudo apt-get install --no-install-recommends qemu-system-x86";

/// The path of the QEMU program. The error says how to get it.
pub(crate) fn emulator() -> Result<PathBuf, TestbedError> {
    find("qemu-system-x86_64", GET_QEMU)
}

/// A machine with one processor and a channel as its only device. The agent in it uses this socket. The socket may be
/// closed in this process once the machine runs.
pub(crate) fn machine(qemu: &Path, accelerator: Accelerator, channel: &UnixStream) -> Command {
    let mut command = Command::new(qemu);
    command
        // What a guest makes of it can start no programs and gain no privileges.
        .args(["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"])
        .args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"])
        .args(["-M", "q35", "-smp", "1"])
        .args(accelerator.arguments())
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
pub(crate) fn value(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// Makes the machine boot a kernel with this much memory and with this program as the init process.
pub(crate) fn boot(command: &mut Command, kernel: &Path, initramfs: &Path, mebibytes: u32, words: &str) {
    command.args(["-m", &mebibytes.to_string(), "-kernel"]).arg(kernel).arg("-initrd").arg(initramfs);
    command.arg("-append").arg(format!("{words} quiet panic=-1 mitigations=off rdinit=/stacklab -- guest"));
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
