//! What the kernel has of this machine's memory for itself, and what sockets take of it.

use super::slabs::read_slabs;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use std::{fs, io, thread};

const MEMINFO: &str = "/proc/meminfo";
/// What each processor has of a variable, and what the kernel maps page by page.
const PARTS: [&str; 2] = ["Percpu:", "VmallocUsed:"];

/// Reading it lets the kernel add up what its processors count apart. Only root may.
const ADD_UP: &str = "/proc/sys/vm/stat_refresh";
/// The time between two readings: the kernel adds up by itself once a second (vm.stat_interval).
const ROOT_INTERVAL: Duration = Duration::from_millis(200);
const USER_INTERVAL: Duration = Duration::from_millis(1200);
/// How often it is read at most: the kernel may free a large table for seconds.
const MAX_READINGS: usize = 50;
/// Memory of others is still being freed if there is that much less at the next reading.
const FREED_BYTES: i64 = 256 << 10;

/// The most pairs of sockets that an agent holds.
pub const MAX_PAIRS: u32 = 20_000;

/// What sockets of a host, which it connected to each other over its loopback interface, took of its kernel's memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HeldSockets {
    /// Pairs of sockets that were held idle, without those that came before the kernel's memory was read.
    pub pairs: u32,
    /// What the kernel's own memory grew by; below zero if others gave back more. `None` if it could not be read in the
    /// same way before and after.
    pub idle_bytes: Option<i64>,
    /// Pairs that had full queues in both directions.
    pub full_pairs: u32,
    /// What the kernel charged to the queues of these; `None` if it does not report that.
    pub full_bytes: Option<u64>,
}

/// What of the kernel's memory is weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weighed {
    /// Entries of tables. The memory that the kernel takes back from others when it needs some is left out: it changes
    /// with each file that any program opens.
    Entries,
    /// Sockets, to which files and inodes of that memory belong.
    Sockets,
}

impl Weighed {
    fn slabs(self) -> &'static str {
        match self {
            Weighed::Entries => "SUnreclaim:",
            Weighed::Sockets => "Slab:",
        }
    }
}

/// What the kernel has for itself, by one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelMemory {
    pub bytes: u64,
    /// Whether the allocator's caches are weighed by their objects; otherwise by the pages that they have.
    pub is_of_objects: bool,
}

impl KernelMemory {
    /// The bytes that it has grown by since another reading, below zero if there are fewer. `None` if one of the two
    /// weighs objects and the other pages: the room that the caches keep would be in the difference.
    pub fn growth_since(self, before: Self) -> Option<i64> {
        if self.is_of_objects != before.is_of_objects {
            return None;
        }
        Some(self.bytes as i64 - before.bytes as i64)
    }
}

/// How many of some entries or sockets to add before the kernel's memory is read. They use up the room that it has kept
/// of others which are gone: without them, whoever comes first would seem to take less.
pub fn count_first_third(all: u32) -> u32 {
    (all / 3).max(1).min(all)
}

/// The bytes that the kernel has for itself, once what others had has been freed.
///
/// # Errors
/// If `/proc/meminfo` cannot be read, or does not have these figures.
pub fn kernel_memory_at_rest(weighed: Weighed) -> io::Result<KernelMemory> {
    let interval = if fs::read(ADD_UP).is_ok() { ROOT_INTERVAL } else { USER_INTERVAL };
    let mut before = read_kernel_memory(weighed)?;
    for _ in 0..MAX_READINGS {
        thread::sleep(interval);
        let now = read_kernel_memory(weighed)?;
        if now.growth_since(before).is_some_and(|growth| growth > -FREED_BYTES) {
            return Ok(now);
        }
        before = now;
    }
    Ok(before)
}

/// The bytes that the kernel has for itself at this moment: without the room that its allocator keeps for further
/// objects, where the program may read how much that is.
///
/// # Errors
/// If `/proc/meminfo` cannot be read, or does not have these figures.
pub fn read_kernel_memory(weighed: Weighed) -> io::Result<KernelMemory> {
    // Where it is not allowed, the longer interval is waited for.
    let _ = fs::read(ADD_UP);
    let objects = read_slabs(weighed == Weighed::Sockets);
    let slabs = objects.unwrap_or_default();
    let text = fs::read_to_string(MEMINFO)?;
    // Large objects have pages without a cache.
    let without_caches = find_bytes(&text, weighed.slabs())?.saturating_sub(slabs.page_bytes);
    let mut sum = without_caches.saturating_add(slabs.object_bytes);
    for part in PARTS {
        sum = sum.saturating_add(find_bytes(&text, part)?);
    }
    Ok(KernelMemory { bytes: sum, is_of_objects: objects.is_some() })
}

fn find_bytes(meminfo: &str, part: &str) -> io::Result<u64> {
    parse_bytes(meminfo, part)
        .ok_or_else(|| io::Error::new(io::ErrorKind::Unsupported, format!("{MEMINFO} has no {part}")))
}

/// The memory that programs could have, bytes; `None` if the kernel does not say.
pub fn available_memory() -> Option<u64> {
    parse_bytes(&fs::read_to_string(MEMINFO).ok()?, "MemAvailable:")
}

fn parse_bytes(meminfo: &str, name: &str) -> Option<u64> {
    let (_, rest) = meminfo.split_once(name)?;
    let kilobytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    kilobytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_weighed() {
        for (all, unweighed) in [(0, 0), (1, 1), (2, 1), (100, 33)] {
            assert_eq!(count_first_third(all), unweighed);
        }
    }

    #[test]
    fn readings_of_different_things_have_no_growth() {
        let before = KernelMemory { bytes: 1000, is_of_objects: true };
        assert_eq!(KernelMemory { bytes: 1600, ..before }.growth_since(before), Some(600));
        assert_eq!(KernelMemory { bytes: 400, ..before }.growth_since(before), Some(-600));
        let of_pages = KernelMemory { bytes: 1600, is_of_objects: false };
        assert_eq!(of_pages.growth_since(before), None);
        assert_eq!(before.growth_since(of_pages), None);
        assert_eq!(of_pages.growth_since(of_pages), Some(0));
    }

    #[test]
    fn reads_a_number_of_meminfo() {
        let text = "MemTotal:       24576 kB\nSlab:             100 kB\n";
        assert_eq!(parse_bytes(text, "Slab:"), Some(102_400));
        assert_eq!(parse_bytes(text, "Percpu:"), None);
    }
}
