//! Samples of all processors, in windows, by a thread of its own.

use crate::stacks::{Stacks, called};
use crate::stages::{Kind, StageMap};
use crate::symbols::Symbols;
use crate::sys::{self, Counter, Record, Ring};
use stacklab_model::{Profile, Sample, SplitMix64, StageKind, StageName, Window};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Periods of a processor's clocks, as shares of their mean. Clocks of one period can lock onto the loop that
/// they sample, and tell the same place of it again and again.
const PERIODS: [f64; 3] = [1.0, 1.118, 0.894];
/// By how much a period is drawn anew, and how long after another one was.
const JITTER: f64 = 0.3;
const REDRAW: Duration = Duration::from_micros(1300);
/// Lengths of windows in which samples are taken and in which none are, nanoseconds.
const SAMPLED_NS: [u64; 2] = [30_000_000, 60_000_000];
const FREE_NS: [u64; 2] = [15_000_000, 40_000_000];
/// No function, and no call chain.
const NONE: u32 = u32::MAX;
/// Least period: the kernel's own limit.
const LEAST_NS: u64 = 10_000;

/// Why nothing can be sampled.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted}: {reason}")]
pub struct SamplingError {
    /// What was attempted.
    pub attempted: String,
    /// The kernel's reason.
    #[source]
    pub reason: io::Error,
}

fn attempt<T>(attempted: impl Into<String>, result: io::Result<T>) -> Result<T, SamplingError> {
    result.map_err(|reason| SamplingError { attempted: attempted.into(), reason })
}

/// Samples until it is told to finish.
pub struct Sampler {
    finish: Arc<AtomicBool>,
    thread: JoinHandle<Result<Profile, SamplingError>>,
}

impl Sampler {
    /// Begins: a sample of each processor every `period_ns` nanoseconds in the mean.
    ///
    /// # Errors
    /// Without the right to sample the kernel or to see its symbols.
    pub fn start(period_ns: u64, seed: u64) -> Result<Self, SamplingError> {
        let mut sampling = Sampling::new(period_ns, seed)?;
        let finish = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&finish);
        let thread = thread::spawn(move || {
            while !told.load(Ordering::Relaxed) {
                sampling.window()?;
            }
            Ok(sampling.finish())
        });
        Ok(Sampler { finish, thread })
    }

    /// Ends, and gives what was sampled.
    ///
    /// # Errors
    /// When the kernel refused to go on.
    pub fn finish(self) -> Result<Profile, SamplingError> {
        self.finish.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sampling thread does not panic")
    }
}

/// A clock of each processor, of one period.
struct Clock {
    counters: Vec<(Counter, Ring)>,
    period_ns: u64,
    /// When the period began.
    since_ns: u64,
    /// What samples of the window stand for.
    shares: Vec<Share>,
}

/// What a sample of a time stands for.
struct Share {
    to_ns: u64,
    stands_for_ns: u64,
}

struct Sampling {
    clocks: Vec<Clock>,
    period_ns: u64,
    random: SplitMix64,
    classes: Classes,
    profile: Profile,
}

impl Sampling {
    fn new(period_ns: u64, seed: u64) -> Result<Self, SamplingError> {
        let symbols = attempt("read the kernel's symbols", Symbols::of_kernel())?;
        let open = |cpu: usize| {
            let counter = Counter::open(cpu, period_ns)?;
            let ring = Ring::of(&counter)?;
            Ok((counter, ring))
        };
        let clock = |_: &f64| {
            let cpus = sys::cpus().into_iter();
            let counters = cpus.map(|cpu| attempt(format!("sample processor {cpu}"), open(cpu)));
            Ok(Clock {
                counters: counters.collect::<Result<_, _>>()?,
                period_ns,
                since_ns: 0,
                shares: Vec::new(),
            })
        };
        let clocks = PERIODS.iter().map(clock).collect::<Result<_, _>>()?;
        let (classes, profile) = (Classes::new(symbols), Profile::default());
        Ok(Sampling { clocks, period_ns, random: SplitMix64(seed), classes, profile })
    }

    /// One window with samples, and one without.
    fn window(&mut self) -> Result<(), SamplingError> {
        let length = self.between(SAMPLED_NS);
        (0..self.clocks.len()).try_for_each(|number| self.draw_period(number))?;
        self.run(true)?;
        let from_ns = sys::now_ns();
        self.clocks.iter_mut().for_each(|clock| clock.since_ns = from_ns);
        for number in (0..self.clocks.len()).cycle() {
            thread::sleep(REDRAW);
            if sys::now_ns() >= from_ns + length {
                break;
            }
            self.clocks[number].end_period();
            self.draw_period(number)?;
        }
        let to_ns = sys::now_ns();
        self.clocks.iter_mut().for_each(Clock::end_period);
        self.run(false)?;
        self.profile.windows.push(Window { from_ns, to_ns, is_sampled: true });
        let Sampling { clocks, classes, profile, .. } = self;
        for Clock { counters, shares, .. } in clocks {
            for (_, ring) in counters {
                ring.drain(|record| classes.take(record, shares, profile));
            }
            shares.clear();
        }
        let from_ns = sys::now_ns();
        thread::sleep(Duration::from_nanos(self.between(FREE_NS)));
        self.profile.windows.push(Window { from_ns, to_ns: sys::now_ns(), is_sampled: false });
        Ok(())
    }

    fn between(&mut self, [least, most]: [u64; 2]) -> u64 {
        least + self.random.next_u64() % (most - least)
    }

    /// Draws the period of a clock anew. One clock at a time, or all would go together.
    fn draw_period(&mut self, number: usize) -> Result<(), SamplingError> {
        let unit = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let usual = (PERIODS.len() as u64 * self.period_ns) as f64 * PERIODS[number];
        let Clock { counters, period_ns, .. } = &mut self.clocks[number];
        *period_ns = ((usual * (1.0 + JITTER * (2.0 * unit - 1.0))) as u64).max(LEAST_NS);
        let set = counters.iter().try_for_each(|(counter, _)| counter.set_period(*period_ns));
        attempt("set the period of samples", set)
    }

    fn run(&self, on: bool) -> Result<(), SamplingError> {
        let mut all = self.clocks.iter().flat_map(|clock| &clock.counters);
        attempt("start and stop samples", all.try_for_each(|(counter, _)| counter.run(on)))
    }

    fn finish(mut self) -> Profile {
        let Classes { stages, symbols, stacks, unmapped, .. } = self.classes;
        self.profile.stages = stages;
        self.profile.samples.sort_by_key(|sample| sample.time_ns);
        let named =
            self.profile.samples.iter().map(|sample| sample.function).filter(|function| *function != NONE);
        self.profile.functions =
            named.map(|function| (function, symbols.name(function).to_owned())).collect();
        (self.profile.stacks, self.profile.frames) = (stacks.all, stacks.frames);
        let mut unmapped: Vec<(String, u64)> = unmapped.into_iter().collect();
        unmapped.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        self.profile.unmapped = unmapped;
        self.profile
    }
}

impl Clock {
    /// Notes what the samples of the present period stand for. When a period is set, a clock begins anew, and the
    /// rest of the last period has no sample: the others stand for it. And each clock samples all of a processor's
    /// time.
    fn end_period(&mut self) {
        let to_ns = sys::now_ns();
        let elapsed_ns = to_ns.saturating_sub(self.since_ns);
        let each_ns = elapsed_ns.checked_div(elapsed_ns / self.period_ns).unwrap_or(0);
        self.shares.push(Share { to_ns, stands_for_ns: each_ns / PERIODS.len() as u64 });
        self.since_ns = to_ns;
    }
}

/// Puts samples into stages.
struct Classes {
    map: StageMap,
    symbols: Symbols,
    stacks: Stacks,
    /// The map's, then those of processes.
    stages: Vec<StageName>,
    /// The stage and function of an address.
    known: HashMap<u64, Option<(u32, u32)>>,
    /// The stage of the study's processes' own code; `None` for other processes.
    processes: HashMap<u32, Option<u32>>,
    other: u32,
    without: u32,
    unmapped: BTreeMap<String, u64>,
}

impl Classes {
    fn new(symbols: Symbols) -> Self {
        let map = StageMap::new();
        let kind = |kind: Kind| match kind {
            Kind::Idle => StageKind::Idle,
            _ => StageKind::Stack,
        };
        let mut stages: Vec<StageName> =
            map.stages.iter().map(|(name, of)| StageName { name: name.clone(), kind: kind(*of) }).collect();
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
        }
    }

    fn take(&mut self, record: Record, shares: &[Share], profile: &mut Profile) {
        match record {
            Record::Lost(count) => profile.lost += count,
            Record::Throttled => profile.throttled += 1,
            Record::Sample { pid, time_ns, cpu, is_user, chain } => {
                let (stage, function) = self.stage(pid, is_user, &chain);
                let period = shares.partition_point(|share| share.to_ns <= time_ns);
                let stands_for_ns = shares.get(period).map_or(0, |share| share.stands_for_ns);
                let is_own = pid != 0 && self.process(pid).is_some();
                let stack = self.stack(stage, is_user, &chain);
                profile.samples.push(Sample { time_ns, stands_for_ns, cpu, stage, function, stack, is_own });
            }
        }
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
            return (self.process(pid).unwrap_or(self.other), NONE);
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
        let (_, kind) = self.map.stages[stage as usize];
        let is_foreign = kind == Kind::Shared && pid != 0 && self.process(pid).is_none();
        (if is_foreign { self.other } else { stage }, function)
    }

    fn of_address(&mut self, address: u64) -> Option<(u32, u32)> {
        let Classes { map, symbols, known, .. } = self;
        *known.entry(address).or_insert_with(|| {
            let function = symbols.find(address)?;
            map.stage(symbols.name(function)).map(|stage| (stage, function))
        })
    }

    /// The stage of a process's own code, if it is of the study: descended from this one. Agents share one, and
    /// another program such as a translator has its own.
    fn process(&mut self, pid: u32) -> Option<u32> {
        if let Some(known) = self.processes.get(&pid) {
            return *known;
        }
        let own = std::process::id();
        let stage = (pid != own && descends(pid, own)).then(|| {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name = format!("user ({})", name.trim_end());
            let known = self.stages.iter().position(|stage| stage.name == name);
            known.unwrap_or_else(|| {
                self.stages.push(StageName { name, kind: StageKind::Stack });
                self.stages.len() - 1
            }) as u32
        });
        self.processes.insert(pid, stage);
        stage
    }
}

/// Whether a process descends from another one.
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
