//! TUN and TAP devices. They are created by opening a file, not over netlink.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

const PATH: &str = "/dev/net/tun";

/// Creates a TUN device in the calling thread's namespace. It vanishes when the file is closed.
pub(crate) fn create_tun() -> io::Result<File> {
    // Without a name, the kernel chooses one.
    create("", libc::IFF_TUN)
}

/// Creates a device of this kind (`IFF_TUN`, `IFF_TAP`) and name, which exists as long as the thread's namespace.
pub(crate) fn create_lasting(name: &str, kind: libc::c_int) -> io::Result<()> {
    let file = create(name, kind)?;
    // SAFETY: TUNSETPERSIST takes a number.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETPERSIST as _, 1) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn create(name: &str, kind: libc::c_int) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(PATH);
    let file = file.map_err(|error| io::Error::new(error.kind(), format!("{PATH}: {error}")))?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // Its last byte stays zero.
    for (place, byte) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (kind | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}
