//! User-mode Linux as a host: a Linux kernel that runs as a process, with this program as its init process. Its
//! channel is its serial line. Its network interfaces are tap devices.

use crate::error::{Attempt, Fault};
use crate::guest::protocol::Interface;
use crate::host::guest::{Guest, GuestSpec, Running};
use crate::kernel::cpus;
use crate::kernel::namespace::spawn_in_namespace;
use crate::kernel::sys::keep_open;
use crate::link::addressing::hardware_address_text;
use crate::link::bridge::tap_of;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Timeout for the boot, which takes about one second.
const PATIENCE: Duration = Duration::from_secs(30);

/// A user-mode Linux guest.
#[derive(Debug)]
pub(crate) struct Uml {
    /// The folder of a C library that is new enough for this kernel, with its loader.
    pub libraries: PathBuf,
    /// The kernel.
    pub kernel: PathBuf,
    /// The initramfs with this program and its libraries.
    pub initramfs: PathBuf,
    /// The kernel's release.
    pub release: String,
}

impl Guest for Uml {
    fn wants_a_tap(&self) -> bool {
        true
    }

    fn start(&self, spec: &GuestSpec<'_>) -> Result<Running, Fault> {
        let (own, its) = UnixStream::pair().attempt("make a channel")?;
        let console = spec.folder.join("console");
        let log = File::create(&console).attempt(format!("write {}", console.display()))?;
        let errors = log.try_clone().attempt("write its console")?;
        let mut command = Command::new(&self.kernel);
        command
            // The kernel file names its loader relative to this folder.
            .current_dir(&self.libraries)
            // With seccomp, if this kernel allows it, the guest's system calls are caught faster than with ptrace.
            .args([if spec.hosts_testbeds() { "mem=1024M" } else { "mem=512M" }, "seccomp=auto"])
            .arg(format!("initrd={}", self.initramfs.display()))
            .arg(format!("uml_dir={}", spec.folder.display()));
        for (number, Interface { link, hardware, .. }) in spec.role.interfaces().into_iter().enumerate() {
            let (tap, mac) = (tap_of(link), hardware_address_text(hardware));
            command.arg(format!("vec{number}:transport=tap,ifname={tap},mac={mac},gro=1"));
        }
        command
            .args(["con=null", "con0=null,fd:1", "ssl=null"])
            .arg(format!("ssl0=fd:{0},fd:{0}", its.as_raw_fd()))
            // Radios are made when a testbed needs them. A kernel without mac80211_hwsim ignores this.
            .arg("mac80211_hwsim.radios=0")
            // The kernel passes unknown words to its init process. After a `--`, the kernel would add its own options
            // at the end.
            .args(["quiet", "loglevel=4", "panic=-1", "rdinit=/stacklab", "guest", "--channel", "/dev/ttyS0"])
            .env_clear()
            .env("LD_LIBRARY_PATH", &self.libraries)
            .env("TMPDIR", spec.folder)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        keep_open(&mut command, its.as_raw_fd());
        // The guest has one processor. Its kernel and its processes are processes on this machine that wait for each
        // other.
        let processors = cpus::one(spec.processors);
        let child = spawn_in_namespace(spec.namespace, &mut command, &processors)?;
        drop(its);
        Ok(Running::on_socket(child, console, own, spec.role.clone(), PATIENCE))
    }

    fn version(&self) -> String {
        format!("user-mode Linux {}", self.release)
    }
}
