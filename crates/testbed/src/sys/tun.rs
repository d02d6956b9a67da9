//! TUN devices, which are made by opening a file and not by netlink.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

/// Makes a TUN device in the calling thread's namespace; it vanishes when the file is closed.
pub(crate) fn create_tun() -> io::Result<File> {
    let path = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call. Its name is empty, so the kernel
    // chooses one.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}
