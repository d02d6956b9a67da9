//! The kernel's functions by address, and the stages of the network stack to which they belong.
//!
//! The map of stages is a table, `stages.csv`, one for both families: stage, kind, functions. A function that ends with
//! `*` stands for all whose names begin so; a whole name comes before the longest beginning.

use crate::sampling::profile::{StageKind, StageName};
use std::collections::HashMap;
use std::{fs, io};

/// The longest function, bytes.
const MAX_LENGTH: u64 = 64 << 10;

/// The functions of the running kernel and its modules, by address.
pub(crate) struct Symbols {
    /// Addresses, ascending, with names.
    all: Vec<(u64, String)>,
}

impl Symbols {
    pub(crate) fn of_kernel() -> io::Result<Self> {
        let symbols = Symbols::parse(&fs::read_to_string("/proc/kallsyms")?);
        if symbols.all.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the addresses in /proc/kallsyms are hidden (kernel.kptr_restrict must be below 2)",
            ));
        }
        Ok(symbols)
    }

    /// Lines as /proc/kallsyms has them: address, type, name, module. Hidden addresses are zero, and left out.
    pub(crate) fn parse(text: &str) -> Self {
        let mut all: Vec<(u64, String)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split_ascii_whitespace();
                let address = words.next()?;
                let kind = words.next()?;
                let name = words.next()?;
                let address = u64::from_str_radix(address, 16).ok().filter(|address| *address > 0)?;
                matches!(kind, "t" | "T" | "w" | "W").then(|| (address, plain(name).to_owned()))
            })
            .collect();
        all.sort();
        Symbols { all }
    }

    /// The number of the function that holds this address, for [`Symbols::name`]; `None` below the first one.
    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let after = self.all.partition_point(|(start, _)| *start <= address);
        after.checked_sub(1).map(|place| place as u32)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The function that holds this address, unless it begins further away than a function is long: code without a
    /// symbol may lie between the kernel and its modules.
    pub(crate) fn name_near(&self, address: u64) -> Option<&str> {
        let (start, name) = &self.all[self.find(address)? as usize];
        (address - start < MAX_LENGTH).then_some(name)
    }

    /// The name of a function, without what the compiler adds to parts of it.
    pub(crate) fn name(&self, function: u32) -> &str {
        self.all.get(function as usize).map_or("?", |(_, name)| name)
    }
}

/// A name without the compiler's endings (`.isra.0`, `.cold`) and beginnings (`__pfx_`).
fn plain(name: &str) -> &str {
    let name = name.strip_prefix("__pfx_").unwrap_or(name);
    match name.find('.') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

const TABLE: &str = include_str!("stages.csv");

pub(crate) struct StageMap {
    /// In the table's order, which is a packet's way. Shared: all programs have it, and only that of the study's
    /// processes counts.
    pub stages: Vec<(StageName, bool)>,
    whole: HashMap<String, u32>,
    /// Beginnings, the longest first.
    beginnings: Vec<(String, u32)>,
}

impl StageMap {
    pub(crate) fn new() -> Self {
        StageMap::parse(TABLE)
    }

    fn parse(table: &str) -> Self {
        let mut stages = Vec::new();
        let mut whole = HashMap::new();
        let mut beginnings = Vec::new();
        for line in table.lines().skip(1) {
            let mut fields = line.split(',');
            let mut field = || fields.next().expect("each line of the table has three fields");
            let stage = field();
            let kind = field();
            let functions = field();
            let (kind, is_shared) = match kind {
                "network" => (StageKind::Stack, false),
                "idle" => (StageKind::Idle, false),
                "shared" => (StageKind::Stack, true),
                other => panic!("{stage}: no kind of stage is called {other}"),
            };
            let number = stages.len() as u32;
            stages.push((StageName { name: stage.to_owned(), kind }, is_shared));
            for function in functions.split(' ').filter(|function| !function.is_empty()) {
                match function.strip_suffix('*') {
                    Some(beginning) => beginnings.push((beginning.to_owned(), number)),
                    None => drop(whole.insert(function.to_owned(), number)),
                }
            }
        }
        beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        StageMap { stages, whole, beginnings }
    }

    /// The stage of a function, by number; `None` for one that many call (a list, a lock): its caller decides.
    pub(crate) fn stage(&self, function: &str) -> Option<u32> {
        if let Some(stage) = self.whole.get(function) {
            return Some(*stage);
        }
        let (_, stage) = self.beginnings.iter().find(|(beginning, _)| function.starts_with(beginning))?;
        Some(*stage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn an_address_is_of_the_function_before_it() {
        let text = "ffffffff81000100 T ip_output\nffffffff81000000 t __pfx_ip_rcv.isra.0\n\
                    ffffffff81000200 D data\n0000000000000000 T hidden\nffffffffc0000000 t sit_init\t[sit]\n";
        let symbols = Symbols::parse(text);
        for (address, name) in [
            (0xffff_ffff_8100_00ff, "ip_rcv"),
            (0xffff_ffff_8100_0100, "ip_output"),
            (0xffff_ffff_c000_0010, "sit_init"),
        ] {
            let function = symbols.find(address).unwrap();
            assert_eq!(symbols.name(function), name);
        }
        assert_eq!(symbols.find(5), None);
        assert_eq!(symbols.name_near(0xffff_ffff_8100_01ff), Some("ip_output"));
        assert_eq!(symbols.name_near(0xffff_ffff_a000_0000), None);
    }

    fn name_stage<'a>(map: &'a StageMap, function: &str) -> Option<&'a str> {
        map.stage(function).map(|stage| map.stages[stage as usize].0.name.as_str())
    }

    #[test]
    fn each_function_has_one_stage_same_for_both_families() {
        let map = StageMap::new();
        for (v4, v6, stage) in [
            ("udp_sendmsg", "udpv6_sendmsg", "transport transmit"),
            ("ip_route_output_flow", "ip6_route_output_flags", "route lookup"),
            ("ip_finish_output2", "ip6_finish_output2", "ip output"),
            ("ip_rcv_core", "ip6_rcv_core", "ip input"),
            ("__udp4_lib_rcv", "__udp6_lib_rcv", "transport receive"),
            ("tcp_v4_rcv", "tcp_v6_rcv", "transport receive"),
            ("ip_forward", "ip6_forward", "forward"),
        ] {
            assert_eq!((name_stage(&map, v4), name_stage(&map, v6)), (Some(stage), Some(stage)));
        }
        assert_eq!(name_stage(&map, "memcpy"), None);
        let names: BTreeSet<&str> = map.stages.iter().map(|(stage, _)| stage.name.as_str()).collect();
        assert_eq!(names.len(), map.stages.len());
        let functions: Vec<&str> =
            TABLE.lines().skip(1).flat_map(|line| line.rsplit(',').next().unwrap().split(' ')).collect();
        let once: BTreeSet<&&str> = functions.iter().collect();
        assert_eq!(once.len(), functions.len(), "a function is twice in the table");
    }
}
