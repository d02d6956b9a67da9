//! System calls without a safe function in the standard library. All unsafe code of the tests is here.
#![allow(unsafe_code)]
#![allow(dead_code, reason = "each test uses its own part")]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// The monotonic clock, nanoseconds, as hosts of a testbed report it.
pub(crate) fn monotonic_ns() -> u64 {
    // SAFETY: a structure of numbers, for which zeros are a value, and which the call fills.
    let mut now: libc::timespec = unsafe { zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }, 0);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The largest resident set of a child of this process that has ended, KiB.
pub(crate) fn children_peak_kib() -> i64 {
    // SAFETY: a structure of numbers, for which zeros are a value, and which the call fills.
    let mut usage: libc::rusage = unsafe { zeroed() };
    // SAFETY: as above.
    assert_eq!(unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) }, 0);
    usage.ru_maxrss
}

/// Creates a TUN device of this name in the calling thread's namespace; the device is removed when the file is
/// closed.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let path = "/dev/net/tun";
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
    // SAFETY: `ifreq` is plain C data (bytes, numbers, a pointer), for which all zeros is a valid value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    assert!(name.len() < request.ifr_name.len(), "{name} is too long for an interface's name");
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`, which outlives the call. Its name is zero-terminated, because
    // it is shorter than the zeroed array.
    let answer = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(file) }
}

/// Waits until a file is readable; `false` on timeout.
pub(crate) fn wait_readable(file: &File, limit: Duration) -> io::Result<bool> {
    let mut wanted = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one `pollfd` is passed and outlives the call.
    match unsafe { libc::poll(&mut wanted, 1, limit.as_millis() as libc::c_int) } {
        ..0 => Err(io::Error::last_os_error()),
        ready => Ok(ready > 0),
    }
}
