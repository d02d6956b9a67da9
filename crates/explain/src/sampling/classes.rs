//! Of each sample: its stage, its call chain and what it stands for.

use crate::sampling::profile::{Profile, Sample, StageKind, StageName};
use crate::sampling::symbols::{StageMap, Symbols};
use crate::sampling::sys::Record;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;

/// No function, and no call chain.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct SampledProcess {
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
    processes: HashMap<u32, Option<SampledProcess>>,
    other: u32,
    without: u32,
    unmapped: BTreeMap<String, u64>,
    /// How many clocks sample a processor.
    clocks: u64,
}

impl Classes {
    pub(crate) fn new(symbols: Symbols, clocks: u64) -> Self {
        let map = StageMap::new();
        let mut stages: Vec<StageName> = map.stages.iter().map(|(stage, _)| stage.clone()).collect();
        let other = add_stage(&mut stages, "other programs", StageKind::Other);
        let without = add_stage(&mut stages, "unmapped", StageKind::Unmapped);
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
        let found = list_call_addresses(chain).find_map(|address| self.of_address(address));
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
    fn process(&mut self, pid: u32) -> Option<SampledProcess> {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let own = std::process::id();
        let process = if pid != own && descends(pid, own) { Some(self.describe_process(pid)) } else { None };
        self.processes.insert(pid, process);
        process
    }

    fn describe_process(&mut self, pid: u32) -> SampledProcess {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let name = format!("user ({})", name.trim_end());
        let stage = match self.stages.iter().position(|stage| stage.name == name) {
            Some(known) => known as u32,
            None => add_stage(&mut self.stages, &name, StageKind::Stack),
        };
        SampledProcess { stage, is_agent: read_program(&pid.to_string()) == read_program("self") }
    }
}

fn add_stage(stages: &mut Vec<StageName>, name: &str, kind: StageKind) -> u32 {
    stages.push(StageName { name: name.to_owned(), kind });
    stages.len() as u32 - 1
}

/// The program that a process runs; `None` if it is gone.
fn read_program(process: &str) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{process}/exe")).ok()
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

#[derive(Default)]
pub(crate) struct Stacks {
    /// The functions of each, the outermost one first, as numbers of `frames`.
    pub all: Vec<Vec<u32>>,
    pub frames: Vec<String>,
    by_addresses: HashMap<Vec<u64>, u32>,
    by_functions: HashMap<Vec<u32>, u32>,
    by_name: HashMap<String, u32>,
}

impl Stacks {
    /// The number of a chain of kernel addresses: what ran, then return addresses of its callers.
    pub(crate) fn of_kernel(&mut self, chain: &[u64], symbols: &Symbols) -> u32 {
        if let Some(known) = self.by_addresses.get(chain) {
            return *known;
        }
        let functions: Vec<u32> = list_call_addresses(chain)
            .map(|address| self.frame(symbols.find(address).map_or("?", |found| symbols.name(found))))
            .collect();
        let number = self.number(functions.into_iter().rev().collect());
        self.by_addresses.insert(chain.to_vec(), number);
        number
    }

    pub(crate) fn of_name(&mut self, name: &str) -> u32 {
        let frame = self.frame(name);
        self.number(vec![frame])
    }

    fn frame(&mut self, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        self.frames.push(name.to_owned());
        let number = self.frames.len() as u32 - 1;
        self.by_name.insert(name.to_owned(), number);
        number
    }

    fn number(&mut self, functions: Vec<u32>) -> u32 {
        let all = &mut self.all;
        *self.by_functions.entry(functions).or_insert_with_key(|functions| {
            all.push(functions.clone());
            all.len() as u32 - 1
        })
    }
}

/// Addresses within the functions of a chain: a return address is behind the call.
pub(crate) fn list_call_addresses(chain: &[u64]) -> impl Iterator<Item = u64> {
    chain
        .iter()
        .enumerate()
        .map(|(depth, address)| if depth == 0 { *address } else { address.saturating_sub(1) })
}

/// Times of a clock of one processor, one after the other, and what a sample of each stands for.
#[derive(Default)]
pub(crate) struct Shares(Vec<Share>);

struct Share {
    to_ns: u64,
    elapsed_ns: u64,
    samples: u64,
}

impl Shares {
    /// Adds a time that ends now, of samples of one period. The rest after its last sample has none, as a clock begins
    /// anew when a period is set: the others stand for it.
    pub(crate) fn add(&mut self, elapsed_ns: u64, period_ns: u64, to_ns: u64) {
        let samples = elapsed_ns / period_ns;
        match self.0.last_mut() {
            // Too short for a sample: those beside it stand for it.
            Some(last) if samples == 0 || last.samples == 0 => {
                (last.to_ns, last.elapsed_ns) = (to_ns, last.elapsed_ns + elapsed_ns);
                last.samples += samples;
            }
            _ => self.0.push(Share { to_ns, elapsed_ns, samples }),
        }
    }

    /// Nanoseconds that a sample at this time stands for, where this many clocks sample all of the processor's time; 0
    /// after the last time.
    pub(crate) fn of(&self, time_ns: u64, clocks: u64) -> u64 {
        let share = self.0.get(self.0.partition_point(|share| share.to_ns <= time_ns));
        share.and_then(|share| share.elapsed_ns.checked_div(share.samples * clocks)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_function_chains_are_one_and_begin_outside() {
        let symbols = Symbols::parse("1000 T entry\n2000 T ip_output\n3000 T copy\n");
        let mut stacks = Stacks::default();
        // A return address right behind a function is of that function.
        let first = stacks.of_kernel(&[0x3004, 0x2010, 0x2000], &symbols);
        assert_eq!(stacks.of_kernel(&[0x3008, 0x2020, 0x1900], &symbols), first);
        let user = stacks.of_name("user (a)");
        assert_eq!((stacks.of_name("user (a)"), user == first), (user, false));
        assert_eq!(list_names(&stacks, first), ["entry", "ip_output", "copy"], "{:?}", stacks.frames);
        assert_eq!(list_names(&stacks, user), ["user (a)"]);
    }

    fn list_names(stacks: &Stacks, stack: u32) -> Vec<&str> {
        let frames = stacks.all[stack as usize].iter();
        frames.map(|frame| stacks.frames[*frame as usize].as_str()).collect()
    }

    #[test]
    fn samples_stand_for_all_time_even_in_short_spans() {
        let mut shares = Shares::default();
        shares.add(500, 1_000, 500);
        shares.add(4_500, 1_000, 5_000);
        shares.add(3_000, 700, 8_000);
        shares.add(600, 1_000, 8_600);
        let found = [100, 4_999, 5_000, 8_599, 8_600].map(|time_ns| shares.of(time_ns, 1));
        assert_eq!(found, [1_250, 1_250, 900, 900, 0]);
        // Two clocks sample the same time.
        assert_eq!(shares.of(100, 2), 625);
        // Four samples, then four.
        assert_eq!(4 * found[0] + 4 * found[2], 8_600);
    }
}
