//! Which stage a sample is of.

use crate::sampling::shares::Shares;
use crate::sampling::stacks::{Stacks, called};
use crate::sampling::stages::StageMap;
use crate::sampling::symbols::Symbols;
use crate::sampling::sys::Record;
use stacklab_model::{Profile, Sample, StageKind, StageName};
use std::collections::{BTreeMap, HashMap};
use std::fs;

/// No function, and no call chain.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Process {
    /// The stage of the code itself.
    stage: u32,
    /// Whether it is an agent, whose threads count their CPU time; not so a translator.
    is_agent: bool,
}

pub(crate) struct Classes {
    map: StageMap,
    symbols: Symbols,
    stacks: Stacks,
    /// The map's, then those of processes.
    stages: Vec<StageName>,
    known: HashMap<u64, Option<(u32, u32)>>,
    /// The study's processes; `None` for others.
    processes: HashMap<u32, Option<Process>>,
    other: u32,
    without: u32,
    unmapped: BTreeMap<String, u64>,
    /// How many clocks sample a processor.
    clocks: u64,
}

impl Classes {
    /// For samples of this many clocks of each processor.
    pub(crate) fn new(symbols: Symbols, clocks: u64) -> Self {
        let map = StageMap::new();
        let mut stages: Vec<StageName> = map.stages.iter().map(|(stage, _)| stage.clone()).collect();
        let mut add = |name: &str, kind| {
            stages.push(StageName { name: name.to_owned(), kind });
            stages.len() as u32 - 1
        };
        let (other, without) =
            (add("other programs", StageKind::Other), add("unmapped", StageKind::Unmapped));
        Classes {
            map,
            symbols,
            stacks: Stacks::default(),
            stages,
            known: HashMap::new(),
            processes: HashMap::new(),
            other,
            without,
            unmapped: BTreeMap::new(),
            clocks,
        }
    }

    pub(crate) fn take(&mut self, record: Record, shares: &Shares, profile: &mut Profile) {
        match record {
            Record::Lost(count) => profile.lost += count,
            Record::Throttled => profile.throttled += 1,
            Record::Sample { pid, time_ns, cpu, is_user, chain } => {
                let (stage, function) = self.stage(pid, is_user, &chain);
                let stands_for_ns = shares.of(time_ns, self.clocks);
                let is_own = pid != 0 && self.process(pid).is_some_and(|process| process.is_agent);
                let stack = self.stack(stage, is_user, &chain);
                profile.samples.push(Sample { time_ns, stands_for_ns, cpu, stage, function, stack, is_own });
            }
        }
    }

    /// The profile, with all names.
    pub(crate) fn finish(self, mut profile: Profile) -> Profile {
        let Classes { stages, symbols, stacks, unmapped, .. } = self;
        profile.stages = stages;
        let named = profile.samples.iter().map(|sample| sample.function).filter(|function| *function != NONE);
        profile.functions = named.map(|function| (function, symbols.name(function).to_owned())).collect();
        (profile.stacks, profile.frames) = (stacks.all, stacks.frames);
        let mut unmapped: Vec<(String, u64)> = unmapped.into_iter().collect();
        unmapped.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        profile.unmapped = unmapped;
        profile
    }

    /// The call chain of a sample, where the time is the study's.
    fn stack(&mut self, stage: u32, is_user: bool, chain: &[u64]) -> u32 {
        let StageName { name, kind } = &self.stages[stage as usize];
        match kind {
            StageKind::Other | StageKind::Idle => NONE,
            StageKind::Stack | StageKind::Unmapped if is_user => self.stacks.of_name(name),
            StageKind::Stack | StageKind::Unmapped => self.stacks.of_kernel(chain, &self.symbols),
        }
    }

    /// The stage of a sample: that of the first function of the chain that has one.
    fn stage(&mut self, pid: u32, is_user: bool, chain: &[u64]) -> (u32, u32) {
        if is_user {
            return (self.process(pid).map_or(self.other, |process| process.stage), NONE);
        }
        let found = called(chain).find_map(|address| self.of_address(address));
        let Some((stage, function)) = found else {
            let leaf = chain.first().and_then(|address| self.symbols.find(*address));
            if pid != 0 && self.process(pid).is_none() {
                return (self.other, NONE);
            }
            *self.unmapped.entry(leaf.map_or("?", |leaf| self.symbols.name(leaf)).to_owned()).or_default() +=
                1;
            return (self.without, leaf.unwrap_or(NONE));
        };
        let (_, is_shared) = self.map.stages[stage as usize];
        let is_foreign = is_shared && pid != 0 && self.process(pid).is_none();
        (if is_foreign { self.other } else { stage }, function)
    }

    fn of_address(&mut self, address: u64) -> Option<(u32, u32)> {
        let Classes { map, symbols, known, .. } = self;
        *known.entry(address).or_insert_with(|| {
            let function = symbols.find(address)?;
            map.stage(symbols.name(function)).map(|stage| (stage, function))
        })
    }

    /// A process, if it is of the study: descended from this one. The code of agents is one stage, and another program
    /// such as a translator has its own.
    fn process(&mut self, pid: u32) -> Option<Process> {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let own = std::process::id();
        let process = (pid != own && descends(pid, own)).then(|| {
            let program = |process: &str| fs::read_link(format!("/proc/{process}/exe")).ok();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = format!("user ({})", name.trim_end());
            let known = self.stages.iter().position(|stage| stage.name == name);
            let stage = known.unwrap_or_else(|| {
                self.stages.push(StageName { name, kind: StageKind::Stack });
                self.stages.len() - 1
            });
            Process { stage: stage as u32, is_agent: program(&pid.to_string()) == program("self") }
        });
        self.processes.insert(pid, process);
        process
    }
}

fn descends(mut pid: u32, from: u32) -> bool {
    for _ in 0..32 {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
        // The name, which is in brackets, may hold anything.
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
        match parent {
            Some(parent) if parent == from => return true,
            Some(parent) if parent > 1 => pid = parent,
            _ => return false,
        }
    }
    false
}
