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
    mount_all()?;
    load_modules(|_| true);
    // Without htb, links use another shaper.
    let _ = ask_for_bursts();
    Ok(())
}

/// Mounts the kernel's virtual file systems.
pub(super) fn mount_all() -> io::Result<()> {
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
    Ok(())
}

/// Loads the modules with such names. A module that fails to load is reported on the console; whatever needs it then
/// reports its own error.
pub(super) fn load_modules(is_wanted: impl Fn(&str) -> bool) {
    let entries = fs::read_dir(MODULES).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries
        .filter(|file| is_wanted(&file.file_name().to_string_lossy()))
        .map(|file| file.path())
        .collect();
    files.sort();
    for file in files {
        let loaded = fs::read(&file).and_then(|module| Ok(init_module(&module, c"")?));
        if let Err(error) = loaded {
            eprintln!("stacklab: could not load {}: {error}", file.display());
        }
    }
}

pub(crate) fn reset() {
    // Without the permission the process ends, as below.
    let _ = reboot(RebootMode::RB_AUTOBOOT);
}

pub(crate) fn power_off() {
    // This call returns only without the permission to power off. The process then ends.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}
