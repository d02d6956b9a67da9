//! User-mode Linux as a host: a Linux kernel that runs as a process, with this program as its init process. Its
//! channel is its serial line. Its network interfaces are tap devices.

use crate::image::tree::{SEEDED, XSTATE};
use crate::inside::testbeds::write_role;
use crate::{Boot, GuestRole, Image, Running, WifiRole};
use nix::sys::personality::{self, Persona};
use stacklab_testbed::addressing::hardware_address_text;
use stacklab_testbed::host::workdir::ensure_space;
use stacklab_testbed::kernel::cpus;
use stacklab_testbed::link::tap_of;
use stacklab_testbed::{Attempt, Fault, GuestSpec, Interface, spawn_in_namespace};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Timeout for the boot, which takes about one second.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct Uml {
    pub image: Image,
    /// The initramfs with this program and its libraries.
    pub initramfs: PathBuf,
}

/// The wall clock of every guest in virtual time when it boots, nanoseconds since 1970: the beginning of 2026.
const START: u64 = 1_767_225_600_000_000_000;

/// The kernel's source of entropy by jitter of the clock tests itself as it starts. Virtual time has no jitter, and
/// the test never ends.
const WITHOUT_JITTER: &str = "initcall_blacklist=jent_mod_init";

impl Uml {
    /// Has the guest start in its own folder, where it finds its role. In virtual time it repeats for the same seed:
    /// its entropy is the seed's, and its command line, which its kernel also takes as entropy, is always the same:
    /// paths are relative.
    fn start_inside(
        &self,
        command: &mut Command,
        spec: &GuestSpec<'_>,
        role: &GuestRole,
        wifi: &WifiRole,
    ) -> Result<(), Fault> {
        write_role(spec.folder, role).attempt("write the guest's role")?;
        let name = self.initramfs.file_name().unwrap_or_default().display();
        command.current_dir(spec.folder).arg(format!("initrd=../{name}")).arg("uml_dir=.");
        if wifi.is_virtual() {
            command
                .arg("time-travel=inf-cpu")
                .arg(format!("time-travel-start={START}"))
                .arg(WITHOUT_JITTER)
                .env("STACKLAB_SEED", wifi.spec.settings.seed.to_string());
        }
        Ok(())
    }

    /// The libraries that the kernel has preloaded, as the loader reads them: one that answers its getrandom from a
    /// seed, in virtual time, and one for processors with more state than it knows, if the image has it.
    fn list_preloads(&self, role: &GuestRole) -> OsString {
        let [seeded, xstate] = [SEEDED, XSTATE].map(|library| self.image.file(library).into_os_string());
        let is_virtual = role.wifi().is_some_and(WifiRole::is_virtual);
        let libraries = [is_virtual.then_some(&*seeded), Path::new(&xstate).exists().then_some(&*xstate)];
        libraries.into_iter().flatten().collect::<Vec<_>>().join(OsStr::new(":"))
    }
}

/// What this thread starts is then at the same addresses in each run, for a guest in virtual time: its kernel has more
/// memory or less by where its own is. Returns what was before.
fn unchanged_addresses(role: &GuestRole) -> io::Result<Option<Persona>> {
    if !role.wifi().is_some_and(WifiRole::is_virtual) {
        return Ok(None);
    }
    let before = personality::get()?;
    personality::set(before | Persona::ADDR_NO_RANDOMIZE)?;
    Ok(Some(before))
}

impl Boot for Uml {
    fn version(&self) -> String {
        format!("user-mode Linux {}", self.image.version)
    }

    fn boot(&self, spec: &GuestSpec<'_>, role: GuestRole) -> Result<Running, Fault> {
        let memory = if role.hosts_testbeds() { "1024M" } else { "512M" };
        ensure_space(spec.folder, memory).attempt("start it")?;
        let (own, its) = UnixStream::pair().attempt("make a channel")?;
        let console = spec.folder.join("console");
        let log = File::create(&console).attempt(format!("write {}", console.display()))?;
        let errors = log.try_clone().attempt("write its console")?;
        let mut command = Command::new(self.image.file("kernel"));
        // The folder of a C library that is new enough for this kernel, with its loader.
        let libraries = self.image.file("lib");
        command.env_clear();
        // With seccomp, if this kernel allows it, the guest's system calls are caught faster than with ptrace.
        command.arg(format!("mem={memory}")).arg("seccomp=auto");
        match role.wifi() {
            Some(wifi) => self.start_inside(&mut command, spec, &role, wifi)?,
            None => {
                command
                    // The kernel file names its loader relative to this folder.
                    .current_dir(&libraries)
                    .arg(format!("initrd={}", self.initramfs.display()))
                    .arg(format!("uml_dir={}", spec.folder.display()));
            }
        }
        for (number, Interface { link, hardware, .. }) in role.interfaces().into_iter().enumerate() {
            let tap = tap_of(link);
            let mac = hardware_address_text(hardware);
            command.arg(format!("vec{number}:transport=tap,ifname={tap},mac={mac},gro=1"));
        }
        command
            .args(["con=null", "con0=null,fd:1", "ssl=null"])
            .arg("ssl0=fd:0,fd:0")
            // Radios are made when a testbed needs them. A kernel without mac80211_hwsim ignores this.
            .arg("mac80211_hwsim.radios=0")
            // The kernel passes unknown words to its init process. After a `--`, the kernel would add its own options
            // at the end.
            .args(["quiet", "loglevel=4", "panic=-1", "rdinit=/stacklab", "guest", "--channel", "/dev/ttyS0"])
            .env("LD_LIBRARY_PATH", &libraries)
            .env("LD_PRELOAD", self.list_preloads(&role))
            .env("TMPDIR", spec.folder)
            .stdin(OwnedFd::from(its))
            .stdout(log)
            .stderr(errors);
        // The guest has one processor. Its kernel and its processes are processes on this machine that wait for each
        // other.
        let processors = cpus::one(spec.processors);
        let places = unchanged_addresses(&role).attempt("give the guest the same memory in each run")?;
        let process = spawn_in_namespace(spec.namespace, &mut command, &processors);
        if let Some(places) = places {
            personality::set(places).attempt("take new addresses again")?;
        }
        Ok(Running { process: process?, channel: Some(own), role: Some((role, TIMEOUT)), console })
    }
}
