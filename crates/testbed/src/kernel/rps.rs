//! Receive work on the receiving host's own processors (receive packet steering, RPS).
//!
//! A veth pair hands a packet over on the processor that sent it: unless told otherwise, the sender's processor also
//! does the receiver's IP and transport work, as no two machines do, and becomes the limit of both. Steered, every
//! packet interrupts the other processor instead, which in a virtual machine takes longer than the work itself: it is
//! for filling a link, not for measuring a round trip.

use crate::error::{Attempt, Fault};
use crate::link::addressing::INTERFACE;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The RPS setting of one end of the link. It stays usable wherever the thread that opened it went.
#[derive(Debug)]
pub(crate) struct Rps {
    file: File,
    /// The end's own processors, as the file takes them.
    own: String,
}

impl Rps {
    /// Opens the switch of the end in the calling thread's namespace. The calling thread gets a mount namespace of its
    /// own, in which alone that namespace's /sys is seen, and should end soon.
    ///
    /// # Errors
    /// The kernel's; without root it refuses (it wants CAP_NET_ADMIN outside of any user namespace).
    pub(crate) fn open(processors: &[usize]) -> Result<Self, Fault> {
        let private = || {
            unshare(CloneFlags::CLONE_NEWNS)?;
            mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
            mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>)
        };
        private().map_err(io::Error::from).attempt("mount the namespace's own /sys")?;
        let path = format!("/sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus");
        let file = File::options().write(true).open(&path).attempt(format!("open {path}"))?;
        let rps = Rps { file, own: mask(processors) };
        // Opening is not enough to know whether it may be used.
        rps.switch(true).and_then(|()| rps.switch(false)).attempt(format!("write to {path}"))?;
        Ok(rps)
    }

    /// Gives the receive work to the end's own processors, or leaves it where packets come from.
    pub(crate) fn switch(&self, on: bool) -> io::Result<()> {
        self.file.write_all_at(if on { self.own.as_bytes() } else { b"0" }, 0)
    }
}

/// A set of processors as sysfs takes it: hexadecimal words of 32, the highest first.
fn mask(processors: &[usize]) -> String {
    let words = processors.iter().max().map_or(1, |most| most / 32 + 1);
    let word = |word: usize| -> u32 {
        processors.iter().filter(|cpu| **cpu / 32 == word).map(|cpu| 1 << (cpu % 32)).sum()
    };
    (0..words).rev().map(|place| format!("{:08x}", word(place))).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_become_a_mask() {
        assert_eq!(mask(&[0]), "00000001");
        assert_eq!(mask(&[1, 3, 33]), "00000002,0000000a");
    }
}
