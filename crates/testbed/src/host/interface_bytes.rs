//! The bytes that a host's interface has carried so far, read as often as one likes.

use crate::{Host, INTERFACE};
use std::fs::File;
use std::io::{self, Read, Seek};

/// The kernel's counts of a host's interface on the path.
#[derive(Debug)]
pub struct InterfaceBytes {
    table: File,
    text: String,
}

impl InterfaceBytes {
    /// Those of a host whose stack is this kernel's.
    pub fn of(host: &Host) -> io::Result<Self> {
        Self::of_process(host.pid())
    }

    /// Those of the namespace of a process.
    pub(crate) fn of_process(process: u32) -> io::Result<Self> {
        let table = File::open(format!("/proc/{process}/net/dev"))?;
        Ok(InterfaceBytes { table, text: String::new() })
    }

    /// Bytes received and sent so far, with the headers of Ethernet.
    pub fn now(&mut self) -> io::Result<[u64; 2]> {
        self.table.rewind()?;
        self.text.clear();
        self.table.read_to_string(&mut self.text)?;
        find_bytes(&self.text, INTERFACE)
            .ok_or_else(|| io::Error::other(format!("/proc/net/dev has no counts of {INTERFACE}")))
    }
}

/// Received bytes are the first of eight columns, sent bytes that of the next eight.
fn find_bytes(table: &str, interface: &str) -> Option<[u64; 2]> {
    let mut lines = table.lines().filter_map(|line| line.split_once(':'));
    let (_, counts) = lines.find(|(name, _)| name.trim() == interface)?;
    let counts: Vec<u64> = counts.split_whitespace().map_while(|count| count.parse().ok()).collect();
    Some([*counts.first()?, *counts.get(8)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_by_the_name_of_the_interface() {
        let table = "Inter-|   Receive                            |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n    \
            lo: 1 2 0 0 0 0 0 0 1 2 0 0 0 0 0 0\n   \
            st0:123456 78 0 0 0 0 0 0 654321 87 0 0 0 0 0 0\n";
        assert_eq!(find_bytes(table, "st0"), Some([123_456, 654_321]));
        assert_eq!(find_bytes(table, "st"), None);
        assert_eq!(find_bytes("st0: 1 2 3", "st0"), None);
    }
}
