//! When a thread gets its processor.

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use std::fs;
use std::io;
use std::path::Path;

/// Where the kernel has the settings of its scheduler.
const DEBUGFS: &str = "/sys/kernel/debug";
const FAIR_SERVERS: &str = "sched/fair_server";

/// Runs the calling thread before all without a priority (SCHED_FIFO, the least of its priorities).
pub fn run_first() -> io::Result<()> {
    // The kernel's `sched_param` is an integer. musl has the call in name only: it fails with ENOSYS.
    let least: libc::c_int = 1;
    // SAFETY: the call reads the parameter, which lives until it returns.
    let set = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const least) };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has no processor time reserved for threads without a priority (the fair server of Linux 6.12 and newer), which would
/// run before one that [`run_first`]. Of the whole system: call it in a guest. `false` if this kernel has no such
/// setting.
pub fn reserve_nothing() -> io::Result<bool> {
    match mount(Some("debugfs"), DEBUGFS, Some("debugfs"), MsFlags::empty(), None::<&str>) {
        Ok(()) | Err(Errno::EBUSY) => {}
        Err(Errno::ENODEV | Errno::ENOENT) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let servers = match fs::read_dir(Path::new(DEBUGFS).join(FAIR_SERVERS)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        servers => servers?,
    };
    for server in servers {
        fs::write(server?.path().join("runtime"), "0")?;
    }
    Ok(true)
}
