//! The memory into which the kernel writes samples.

use super::counter::Counter;
use perf_event_open_sys::bindings;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Pages of a ring's data: 1 MiB.
const PAGES: usize = 256;
const PAGE: usize = 4096;
/// Bytes of a record's header: type, flags, length.
const HEADER: usize = 8;

pub(crate) struct Ring {
    base: *mut u8,
}

// SAFETY: the memory is this value's alone, and the kernel's, which orders its accesses by the head.
unsafe impl Send for Ring {}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record {
    Sample {
        /// Process; 0 if the processor is idle.
        pid: u32,
        /// Nanoseconds of the monotonic clock.
        time_ns: u64,
        cpu: u32,
        /// Whether it was a program's own code.
        is_user: bool,
        /// Addresses in the kernel: what ran, then return addresses of its callers.
        chain: Vec<u64>,
    },
    /// This many samples found no room.
    Lost(u64),
    /// The kernel left samples out, for they took too much time.
    Throttled,
}

impl Ring {
    pub(crate) fn of(counter: &Counter) -> io::Result<Self> {
        // SAFETY: the kernel chooses the place, and nothing else is there.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                (PAGES + 1) * PAGE,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                counter.file().as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { base: base.cast() })
    }

    /// Takes what was written since the last call.
    pub(crate) fn drain(&mut self, mut take: impl FnMut(Record)) {
        let page = self.base.cast::<bindings::perf_event_mmap_page>();
        // SAFETY: the first page is this structure, both fields are eight bytes and aligned, and the kernel reads and
        // writes them as atomics.
        let (head, tail) = unsafe {
            (AtomicU64::from_ptr(&raw mut (*page).data_head), AtomicU64::from_ptr(&raw mut (*page).data_tail))
        };
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        let mut bytes = Vec::new();
        while at + (HEADER as u64) <= end {
            self.copy(at, HEADER, &mut bytes);
            let length = usize::from(u16::from_ne_bytes([bytes[6], bytes[7]]));
            if length < HEADER || at + length as u64 > end {
                break;
            }
            self.copy(at, length, &mut bytes);
            if let Some(record) = parse(&bytes) {
                take(record);
            }
            at += length as u64;
        }
        tail.store(at, Ordering::Release);
    }

    /// Copies bytes of the data from this place on, which wraps.
    fn copy(&self, at: u64, length: usize, bytes: &mut Vec<u8>) {
        const DATA: usize = PAGES * PAGE;
        bytes.clear();
        let start = at as usize % DATA;
        let first = length.min(DATA - start);
        // SAFETY: both parts are within the data, and the kernel does not write there before the tail is moved.
        unsafe {
            let data = self.base.add(PAGE);
            bytes.extend_from_slice(std::slice::from_raw_parts(data.add(start), first));
            bytes.extend_from_slice(std::slice::from_raw_parts(data, length - first));
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory was mapped with this size, and nobody has it after this.
        unsafe { libc::munmap(self.base.cast(), (PAGES + 1) * PAGE) };
    }
}

/// A record with its header; `None` if it is of another kind, or shorter than it says.
fn parse(bytes: &[u8]) -> Option<Record> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let flags = u16::from_ne_bytes([bytes[4], bytes[5]]);
    match word(0)? {
        bindings::PERF_RECORD_LOST => Some(Record::Lost(long(HEADER + 8)?)),
        bindings::PERF_RECORD_THROTTLE => Some(Record::Throttled),
        bindings::PERF_RECORD_SAMPLE => {
            let count = usize::try_from(long(40)?).ok()?;
            let all = bytes.get(48..)?.chunks_exact(8).take(count);
            // Marks of where the kernel's part begins are no addresses.
            let is_address = |value: &u64| *value < bindings::PERF_CONTEXT_MAX;
            let chain = all.map(|each| u64::from_ne_bytes(each.try_into().expect("eight bytes")));
            Some(Record::Sample {
                pid: word(16)?,
                time_ns: long(24)?,
                cpu: word(32)?,
                is_user: u32::from(flags) & bindings::PERF_RECORD_MISC_CPUMODE_MASK
                    == bindings::PERF_RECORD_MISC_USER,
                chain: chain.filter(is_address).collect(),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_read_and_a_short_one_is_not() {
        let mut bytes = Vec::new();
        for value in [bindings::PERF_RECORD_SAMPLE, 1 | 64 << 16] {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(0xffff_ffff_8100_0000_u64.to_ne_bytes());
        for value in [7_u32, 8] {
            bytes.extend(value.to_ne_bytes());
        }
        bytes.extend(1_000_u64.to_ne_bytes());
        for value in [1_u32, 0] {
            bytes.extend(value.to_ne_bytes());
        }
        for value in [2, bindings::PERF_CONTEXT_KERNEL, 0xffff_ffff_8100_0000] {
            bytes.extend(value.to_ne_bytes());
        }
        let chain = vec![0xffff_ffff_8100_0000];
        let sample = Record::Sample { pid: 7, time_ns: 1_000, cpu: 1, is_user: false, chain };
        assert_eq!(parse(&bytes), Some(sample));
        assert_eq!(parse(&bytes[..46]), None);
    }
}
