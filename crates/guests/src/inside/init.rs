//! The tasks of a system's init process.

use nix::errno::Errno;
use nix::kmod::init_module;
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use stacklab_testbed::kernel::tc::htb::ask_for_bursts;
use std::fs;
use std::io;

/// The folder of modules in the initramfs. Their names give their order.
const MODULES: &str = "/modules";

/// Mounts the kernel's virtual file systems, and loads the modules.
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
    // Without htb, links use another shaper.
    let _ = ask_for_bursts();
    Ok(())
}

/// Loads the modules. One that fails is reported on the console; whatever needs it reports its own error.
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

pub(crate) fn power_off() {
    // This call returns only without the permission to power off. The process then ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}
