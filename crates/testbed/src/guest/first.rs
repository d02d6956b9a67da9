//! What the first process of a system has to do, there being nobody else.

use nix::kmod::init_module;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use std::fs;
use std::io;

/// Where the initramfs has modules, in the order of their names.
const MODULES: &str = "/modules";

/// Mounts what the kernel shows of itself and loads the modules.
pub(super) fn prepare() -> io::Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(place)?;
        let mounted = mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>);
        // Some kernels mount /dev themselves.
        if let Err(error) = mounted.filter_busy() {
            return Err(io::Error::new(error.kind(), format!("could not mount {place}: {error}")));
        }
    }
    load_modules();
    Ok(())
}

trait FilterBusy {
    fn filter_busy(self) -> io::Result<()>;
}

impl FilterBusy for nix::Result<()> {
    fn filter_busy(self) -> io::Result<()> {
        match self {
            Err(nix::errno::Errno::EBUSY) => Ok(()),
            other => other.map_err(io::Error::from),
        }
    }
}

/// A module that this kernel does not take is told on the console: what needs it fails by itself.
fn load_modules() {
    let mut files: Vec<_> =
        fs::read_dir(MODULES).into_iter().flatten().flatten().map(|file| file.path()).collect();
    files.sort();
    for file in files {
        let loaded = fs::read(&file).and_then(|module| Ok(init_module(&module, c"")?));
        if let Err(error) = loaded {
            eprintln!("stacklab: could not load {}: {error}", file.display());
        }
    }
}

/// Ends the system.
pub(super) fn power_off() {
    // Only a process that is not allowed to comes back from it, and then ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}
