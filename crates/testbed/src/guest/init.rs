//! What the first process of a system has to do, there being nobody else.

use crate::kernel::tc::htb::ask_for_bursts;
use nix::errno::Errno;
use nix::kmod::init_module;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use std::fs;
use std::io;

/// Where the initramfs has modules, in the order of their names.
const MODULES: &str = "/modules";

/// Mounts what the kernel shows of itself and loads the modules.
pub(crate) fn prepare() -> io::Result<()> {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        fs::create_dir_all(place)?;
        let mounted = mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>);
        match mounted {
            // Some kernels mount /dev themselves.
            Ok(()) | Err(Errno::EBUSY) => {}
            Err(error) => {
                let kind = io::Error::from(error).kind();
                return Err(io::Error::new(kind, format!("could not mount {place}: {error}")));
            }
        }
    }
    load_modules();
    // Where a kernel has no htb, links are shaped by what it has.
    let _ = ask_for_bursts();
    Ok(())
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
pub(crate) fn power_off() {
    // Only a process that is not allowed to comes back from it, and then ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}
