//! Stages of the network stack, and the kernel functions that belong to each.
//!
//! The map is a table, `stages.csv`, one for both families: stage, kind, functions. A function that ends with `*`
//! stands for all whose names begin so; a whole name comes before the longest beginning.

use stacklab_model::{StageKind, StageName};
use std::collections::HashMap;

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
        let (mut stages, mut whole, mut beginnings) = (Vec::new(), HashMap::new(), Vec::new());
        for line in table.lines().skip(1) {
            let mut fields = line.split(',');
            let mut field = || fields.next().expect("each line of the table has three fields");
            let (stage, kind, functions) = (field(), field(), field());
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

    /// The stage of a function, by number; `None` for one that is called from many (a list, a lock): its caller tells.
    pub(crate) fn stage(&self, function: &str) -> Option<u32> {
        let by_beginning = || self.beginnings.iter().find(|(beginning, _)| function.starts_with(beginning));
        self.whole.get(function).copied().or_else(|| by_beginning().map(|(_, stage)| *stage))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_function_is_of_one_stage_and_both_families_have_the_same_ones() {
        let map = StageMap::new();
        let of = |function| map.stage(function).map(|stage| map.stages[stage as usize].0.name.as_str());
        for (v4, v6, stage) in [
            ("udp_sendmsg", "udpv6_sendmsg", "transport transmit"),
            ("ip_route_output_flow", "ip6_route_output_flags", "route lookup"),
            ("ip_finish_output2", "ip6_finish_output2", "ip output"),
            ("ip_rcv_core", "ip6_rcv_core", "ip input"),
            ("__udp4_lib_rcv", "__udp6_lib_rcv", "transport receive"),
            ("tcp_v4_rcv", "tcp_v6_rcv", "transport receive"),
            ("ip_forward", "ip6_forward", "forward"),
        ] {
            assert_eq!((of(v4), of(v6)), (Some(stage), Some(stage)));
        }
        assert_eq!(of("memcpy"), None);
        let names: BTreeSet<&str> = map.stages.iter().map(|(stage, _)| stage.name.as_str()).collect();
        assert_eq!(names.len(), map.stages.len());
        let functions: Vec<&str> =
            TABLE.lines().skip(1).flat_map(|line| line.rsplit(',').next().unwrap().split(' ')).collect();
        let once: BTreeSet<&&str> = functions.iter().collect();
        assert_eq!(once.len(), functions.len(), "a function is twice in the table");
    }
}
