//! Parsers of the two files that an emulated machine leaves: the plugin's counts and the guest's report. Untrusted
//! input: the guest determines both.

use crate::exact::inside::{END, GuestReport};
use crate::sampling::symbols::Symbols;
use std::io::{BufRead, Read};

/// Longest line of either file, bytes; a report of ticks is the longest.
const LONGEST_LINE: u64 = 64 << 10;
/// Most instructions with a count in a phase, and most functions: a kernel has fewer.
const MOST_ADDRESSES: usize = 1 << 20;
const MOST_FUNCTIONS: usize = 1 << 20;

/// The error of a report that is missing or incomplete.
pub(super) const NONE: &str = "the guest ended without a report";

/// The counts of a phase: addresses, ascending, with executions.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Phase {
    pub(super) counts: Vec<(u64, u64)>,
    pub(super) total: u64,
}

/// The plugin's counts of this many phases. The error says what is wrong with the file.
pub(super) fn phases(mut file: impl BufRead, expected: usize) -> Result<Vec<Phase>, String> {
    let mut all: Vec<Phase> = Vec::new();
    loop {
        let line = line(&mut file)?.ok_or("the plugin's counts lack their end")?;
        if line == END {
            break;
        }
        if line == format!("phase {}", all.len()) && all.len() < expected {
            all.push(Phase::default());
            continue;
        }
        let count = || {
            let (address, count) = line.split_once(' ')?;
            Some((
                u64::from_str_radix(address, 16).ok()?,
                count.parse::<u64>().ok().filter(|count| *count > 0)?,
            ))
        };
        let added =
            count().zip(all.last_mut()).is_some_and(|((address, count), phase)| phase.add(address, count));
        if !added {
            return Err(format!("the plugin's counts have an unexpected line: {line:.80}"));
        }
    }
    match all.len() == expected {
        true => Ok(all),
        false => Err(format!("the plugin counted {} phases of {expected}", all.len())),
    }
}

impl Phase {
    /// Whether the count is in order and within the limits.
    fn add(&mut self, address: u64, count: u64) -> bool {
        let is_next = self.counts.last().is_none_or(|(before, _)| *before < address);
        // Sums over all phases stay below 2^64.
        let Some(total) = self.total.checked_add(count).filter(|total| *total < 1 << 53) else {
            return false;
        };
        if !is_next || self.counts.len() == MOST_ADDRESSES {
            return false;
        }
        self.total = total;
        self.counts.push((address, count));
        true
    }
}

/// A guest's report: the release of its kernel, the ticks of each phase and its functions. The error is the guest's, or
/// says what is wrong with the report.
pub(super) fn report(mut file: impl BufRead, phases: usize) -> Result<(String, Vec<u64>, Symbols), String> {
    let first = line(&mut file)?.ok_or(NONE)?;
    let (kernel, ticks) = match serde_json::from_str(&first) {
        Ok(GuestReport::Counted { kernel, ticks }) if ticks.len() == phases => (kernel, ticks),
        Ok(GuestReport::Failed { reason }) => return Err(reason),
        _ => return Err(format!("the guest's report is malformed: {first:.80}")),
    };
    let mut text = String::new();
    for _ in 0..MOST_FUNCTIONS {
        match line(&mut file)?.ok_or(NONE)? {
            line if line == END => {
                let symbols = Symbols::parse(&text);
                return match symbols.is_empty() {
                    false => Ok((kernel, ticks, symbols)),
                    true => Err(format!("Linux {kernel} hides the addresses of its functions")),
                };
            }
            line => {
                text += &line;
                text += "\n";
            }
        }
    }
    Err("the guest's report has too many functions".to_owned())
}

/// The next line without its end; `None` at the end of the file.
fn line(file: &mut impl BufRead) -> Result<Option<String>, String> {
    let mut bytes = Vec::new();
    let read = file.take(LONGEST_LINE).read_until(b'\n', &mut bytes);
    read.map_err(|reason| format!("cannot read what the emulated machine wrote: {reason}"))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.pop() != Some(b'\n') {
        return Err("the emulated machine wrote an incomplete line".to_owned());
    }
    String::from_utf8(bytes)
        .map(Some)
        .map_err(|_| "the emulated machine wrote bytes that are not text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_by_phase() {
        let text = "phase 0\nff 3\n101 1\nphase 1\nend\n";
        let expected = [Phase { counts: vec![(0xff, 3), (0x101, 1)], total: 4 }, Phase::default()];
        assert_eq!(phases(text.as_bytes(), 2).unwrap(), expected);
    }

    #[test]
    fn refuses_counts_that_the_plugin_would_not_write() {
        for (text, why) in [
            ("", "lack their end"),
            ("phase 0\n", "lack their end"),
            ("phase 0\nff 3", "incomplete"),
            ("end\n", "0 phases of 1"),
            ("ff 3\nend\n", "unexpected line"),
            ("phase 1\nend\n", "unexpected line"),
            ("phase 0\nphase 1\nend\n", "unexpected line"),
            ("phase 0\nff 3\nff 3\nend\n", "unexpected line"),
            ("phase 0\nff 3\nfe 3\nend\n", "unexpected line"),
            ("phase 0\nff 0\nend\n", "unexpected line"),
            ("phase 0\nff -1\nend\n", "unexpected line"),
            ("phase 0\nff 18446744073709551615\nend\n", "unexpected line"),
            ("phase 0\nfffffffffffffffff 1\nend\n", "unexpected line"),
            ("phase 0\n\u{0}\nend\n", "unexpected line"),
        ] {
            let error = phases(text.as_bytes(), 1).unwrap_err();
            assert!(error.contains(why), "{text:?}: {error}");
        }
        let long = vec![b'a'; LONGEST_LINE as usize + 1];
        assert!(phases(&long[..], 1).unwrap_err().contains("incomplete"));
        assert!(phases(&b"\xff\n"[..], 1).unwrap_err().contains("not text"));
    }

    #[test]
    fn report_has_the_kernel_and_its_functions() {
        let text = "{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\nffffffff81000000 T ip_rcv\nend\n";
        let (kernel, ticks, symbols) = report(text.as_bytes(), 2).unwrap();
        assert_eq!((kernel.as_str(), ticks), ("6.1", vec![5, 6]));
        assert_eq!(symbols.name_near(0xffff_ffff_8100_0001), Some("ip_rcv"));
        for (text, why) in [
            ("", "without a report"),
            ("x\n", "malformed"),
            ("{\"failed\":{\"reason\":\"no IPv6\"}}\nend\n", "no IPv6"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5]}}\nend\n", "malformed"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\n", "without a report"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\nend\n", "hides the addresses"),
            ("{\"counted\":{\"kernel\":\"6.1\",\"ticks\":[5,6]}}\n0000000000000000 T ip_rcv\nend\n", "hides"),
        ] {
            let error = report(text.as_bytes(), 2).err().unwrap();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
