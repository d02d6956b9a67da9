//! Receive packet steering (RPS): receive work on the receiving host's own processors.
//!
//! A veth pair delivers a packet on the processor that sent it. By default, the sender's processor therefore also
//! does the receiver's IP and transport work and limits both hosts. Two separate machines do not behave like this.
//! With RPS, each packet interrupts the receiver's processor instead. In a virtual machine this takes longer than the
//! work itself. Use RPS to fill a link, not to measure round-trip times.

use crate::{Attempt, Fault, INTERFACE, unshare_mounts};
use nix::mount::{MsFlags, mount};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// The RPS setting of one end of the link. It stays usable after the thread that opened it has changed namespaces.
#[derive(Debug)]
pub(crate) struct Rps {
    file: File,
    /// The processors of this end, in the format of the sysfs file.
    own: String,
}

impl Rps {
    /// Opens the RPS setting of this end in the calling thread's namespace. The calling thread gets a private mount
    /// namespace, which shows that namespace's /sys, and should end soon.
    /// The kernel requires CAP_NET_ADMIN in the initial user namespace.
    pub(crate) fn open(processors: &[usize]) -> Result<Self, Fault> {
        let sysfs = Some("sysfs");
        let own = unshare_mounts().and_then(|()| mount(sysfs, "/sys", sysfs, MsFlags::empty(), None::<&str>));
        own.attempt("mount the namespace's own /sys")?;
        let path = format!("/sys/class/net/{INTERFACE}/queues/rx-0/rps_cpus");
        let file = File::options().write(true).open(&path).attempt(format!("open {path}"))?;
        let rps = Rps { file, own: mask(processors) };
        // A successful open does not show whether writing is allowed.
        rps.switch(true).and_then(|()| rps.switch(false)).attempt(format!("write to {path}"))?;
        Ok(rps)
    }

    /// Moves the receive work to this end's processors (on), or leaves it on the sending processor (off).
    pub(crate) fn switch(&self, on: bool) -> io::Result<()> {
        self.file.write_all_at(if on { self.own.as_bytes() } else { b"0" }, 0)
    }
}

/// A set of processors in the format of sysfs: hexadecimal 32-bit words, highest first.
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
