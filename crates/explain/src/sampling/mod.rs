//! CPU samples: kernel functions, each of a stage of the network stack.
//!
//! Samples are of the processors' cycles where perf_event_open counts them, else of the kernel's software clock
//! (cpu-clock), which every machine has. [`Sampler`] takes them in windows, by a separate thread, and leaves windows
//! out in which nothing is sampled: both together show what sampling costs.

mod classes;
pub(crate) mod profile;
pub(crate) mod symbols;
mod sys;

use crate::ExplainError;
use crate::attempt;
use crate::sampling::classes::{Classes, Shares};
use crate::sampling::profile::{Profile, Window};
use crate::sampling::symbols::Symbols;
use crate::sampling::sys::{Counter, EventRate, Ring};
use stacklab_model::{SampleEvent, SplitMix64};
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
/// Least period: the kernel's own limit.
const MIN_NS: u64 = 10_000;

/// When samples are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// Mean time between samples of a processor, nanoseconds.
    pub period_ns: u64,
    /// Whether all periods are the same, as those of most profilers: they may lock onto the loop that is sampled, which
    /// the lock ratio is to show.
    pub is_fixed: bool,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// Whether processors can be sampled here, and what is counted until a sample.
pub(crate) fn available() -> Result<SampleEvent, ExplainError> {
    symbols()?;
    let cpu = sys::cpus().first().copied().unwrap_or(0);
    let (rate, _) = first_that_opens(&EventRate::all(), |rate| {
        attempt(format!("sample processor {cpu}"), Counter::open(cpu, rate, 1_000_000))
    })?;
    Ok(rate.event)
}

fn symbols() -> Result<Symbols, ExplainError> {
    attempt("read the kernel's symbols", Symbols::of_kernel())
}

/// What is sampled, the best that opens. The error is that of the last one, which every machine has.
fn first_that_opens<T>(
    rates: &[EventRate],
    open: impl Fn(EventRate) -> Result<T, ExplainError>,
) -> Result<(EventRate, T), ExplainError> {
    let mut refused = None;
    for rate in rates {
        match open(*rate) {
            Ok(opened) => return Ok((*rate, opened)),
            Err(reason) => refused = Some(reason),
        }
    }
    Err(refused.expect("the software clock is among them"))
}

/// Samples until the stop request.
pub struct Sampler {
    finish: Arc<AtomicBool>,
    thread: JoinHandle<Result<Profile, ExplainError>>,
}

impl Sampler {
    /// Begins.
    pub fn start(timing: Timing) -> Result<Self, ExplainError> {
        let mut sampling = Sampling::new(timing)?;
        let finish = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&finish);
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                sampling.window()?;
            }
            Ok(sampling.finish())
        });
        Ok(Sampler { finish, thread })
    }

    /// Ends, and gives what was sampled.
    pub fn finish(self) -> Result<Profile, ExplainError> {
        self.finish.store(true, Ordering::Relaxed);
        self.thread.join().expect("the sampling thread does not panic")
    }
}

/// A clock of each processor, of one period.
struct SampleClock {
    processors: Vec<Processor>,
    period_ns: u64,
}

impl SampleClock {
    fn open(rate: EventRate, period_ns: u64) -> Result<Self, ExplainError> {
        let mut processors = Vec::new();
        for cpu in sys::cpus() {
            let processor = Processor::open(cpu, rate, period_ns);
            processors.push(attempt(format!("sample processor {cpu}"), processor)?);
        }
        Ok(SampleClock { processors, period_ns })
    }
}

struct Processor {
    counter: Counter,
    ring: Ring,
    event: SampleEvent,
    /// When its period began, by what it counts.
    since_ns: u64,
    shares: Shares,
}

impl Processor {
    fn open(cpu: usize, rate: EventRate, period_ns: u64) -> io::Result<Self> {
        let counter = Counter::open(cpu, rate, period_ns)?;
        let ring = Ring::of(&counter)?;
        Ok(Processor { counter, ring, event: rate.event, since_ns: 0, shares: Shares::default() })
    }

    fn run(&mut self, on: bool) -> io::Result<()> {
        let began_ns = sys::now_ns();
        self.counter.run(on)?;
        if on {
            self.since_ns = self.count_ns(began_ns.midpoint(sys::now_ns()))?;
            self.shares = Shares::default();
        }
        Ok(())
    }

    /// Sets the period, which begins anew: an interrupt informs the processor, which takes longer for an idle one.
    fn set_period(&mut self, period_ns: u64, before_ns: u64) -> io::Result<()> {
        let began_ns = sys::now_ns();
        self.counter.set_period(period_ns)?;
        self.end_period(before_ns, began_ns.midpoint(sys::now_ns()))
    }

    fn end_period(&mut self, period_ns: u64, to_ns: u64) -> io::Result<()> {
        let count_ns = self.count_ns(to_ns)?;
        self.shares.add(count_ns.saturating_sub(self.since_ns), period_ns, to_ns);
        self.since_ns = count_ns;
        Ok(())
    }

    fn count_ns(&self, now_ns: u64) -> io::Result<u64> {
        match self.event {
            SampleEvent::CpuClock => Ok(now_ns),
            SampleEvent::Cycles => self.counter.counted_ns(),
        }
    }
}

struct Sampling {
    clocks: Vec<SampleClock>,
    timing: Timing,
    random: SplitMix64,
    classes: Classes,
    profile: Profile,
}

impl Sampling {
    fn new(timing: Timing) -> Result<Self, ExplainError> {
        let symbols = symbols()?;
        let (rate, clocks) = first_that_opens(&EventRate::all(), |rate| {
            PERIODS.iter().map(|_| SampleClock::open(rate, timing.period_ns)).collect()
        })?;
        let profile = Profile { event: rate.event, ..Profile::default() };
        let classes = Classes::new(symbols, PERIODS.len() as u64);
        Ok(Sampling { clocks, timing, random: SplitMix64(timing.seed), classes, profile })
    }

    /// One window with samples, and one without.
    fn window(&mut self) -> Result<(), ExplainError> {
        let length = self.between(SAMPLED_NS);
        (0..self.clocks.len()).try_for_each(|number| self.draw_period(number))?;
        self.run(true)?;
        let from_ns = sys::now_ns();
        for number in (0..self.clocks.len()).cycle() {
            thread::sleep(REDRAW);
            if sys::now_ns() >= from_ns + length {
                break;
            }
            if !self.timing.is_fixed {
                self.draw_period(number)?;
            }
        }
        let to_ns = sys::now_ns();
        let ended = self.clocks.iter_mut().try_for_each(|SampleClock { processors, period_ns }| {
            processors.iter_mut().try_for_each(|processor| processor.end_period(*period_ns, to_ns))
        });
        attempt("read what was counted", ended)?;
        self.run(false)?;
        self.profile.windows.push(Window { from_ns, to_ns, is_sampled: true });
        let Sampling { clocks, classes, profile, .. } = self;
        for Processor { ring, shares, .. } in clocks.iter_mut().flat_map(|clock| &mut clock.processors) {
            ring.drain(|record| classes.take(record, shares, profile));
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
    fn draw_period(&mut self, number: usize) -> Result<(), ExplainError> {
        let unit = (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let drawn =
            if self.timing.is_fixed { 1.0 } else { PERIODS[number] * (1.0 + JITTER * (2.0 * unit - 1.0)) };
        let usual = (PERIODS.len() as u64 * self.timing.period_ns) as f64;
        let period_ns = ((usual * drawn) as u64).max(MIN_NS);
        let clock = &mut self.clocks[number];
        let before_ns = std::mem::replace(&mut clock.period_ns, period_ns);
        let mut processors = clock.processors.iter_mut();
        let set = processors.try_for_each(|processor| processor.set_period(period_ns, before_ns));
        attempt("set the period of samples", set)
    }

    fn run(&mut self, on: bool) -> Result<(), ExplainError> {
        let mut all = self.clocks.iter_mut().flat_map(|clock| &mut clock.processors);
        attempt("start and stop samples", all.try_for_each(|processor| processor.run(on)))
    }

    fn finish(self) -> Profile {
        let mut profile = self.classes.finish(self.profile);
        profile.samples.sort_by_key(|sample| sample.time_ns);
        profile
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::SampleEvent::{CpuClock, Cycles};

    #[test]
    fn software_clock_replaces_what_does_not_open() {
        assert_eq!(choose_without(&[]).unwrap(), Cycles);
        assert_eq!(choose_without(&[Cycles]).unwrap(), CpuClock);
        assert_eq!(
            choose_without(&[Cycles, CpuClock]).unwrap_err().to_string(),
            "cannot sample cpu-clock: Operation not supported (os error 95)"
        );
    }

    /// What is sampled where these cannot be.
    fn choose_without(missing: &[SampleEvent]) -> Result<SampleEvent, ExplainError> {
        let cycles = EventRate { event: Cycles, per_ns: 3.0 };
        let (rate, ()) = first_that_opens(&[cycles, EventRate::CPU_CLOCK], |rate| {
            if missing.contains(&rate.event) {
                let refused = io::Error::from_raw_os_error(libc::EOPNOTSUPP);
                return attempt(format!("sample {}", rate.event), Err(refused));
            }
            Ok(())
        })?;
        Ok(rate.event)
    }
}
