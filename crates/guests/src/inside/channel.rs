//! The guest's channel to this program on the machine outside.

use stacklab_testbed::kernel::sys::make_raw;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for devices to appear after the kernel has booted.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// The name of the virtual machine's port.
const NAME: &str = "stacklab";
/// The folder in which the kernel lists virtio ports.
const PORTS: &str = "/sys/class/virtio-ports";

/// Opens the device, or the virtual machine's port with that name. Waits until it exists.
pub(crate) fn open(device: Option<&Path>) -> io::Result<File> {
    let start = Instant::now();
    loop {
        let found = device.map(Path::to_owned).or_else(port).filter(|path| path.exists());
        if let Some(path) = found {
            let file = OpenOptions::new().read(true).write(true).open(&path);
            let file = file.map_err(|error| {
                io::Error::new(error.kind(), format!("could not open {}: {error}", path.display()))
            })?;
            // A serial line would echo its input and convert line ends.
            if file.is_terminal() {
                make_raw(&file)?;
            }
            return Ok(file);
        }
        if start.elapsed() > PATIENCE {
            let what =
                device.map_or(format!("port named {NAME} in {PORTS}"), |path| path.display().to_string());
            return Err(io::Error::new(io::ErrorKind::NotFound, format!("there is no {what}")));
        }
        std::thread::sleep(LOOK);
    }
}

fn port() -> Option<PathBuf> {
    let named = |port: &PathBuf| fs::read_to_string(port.join("name")).is_ok_and(|name| name.trim() == NAME);
    let port = fs::read_dir(PORTS).ok()?.flatten().map(|entry| entry.path()).find(named)?;
    Some(Path::new("/dev").join(port.file_name()?))
}
