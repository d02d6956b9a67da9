//! Counts arrivals, losses, delays and the interval series: the sink of a stream's receiver and of an echo's sender.

use crate::engine::counted_flow::CountedFlow;
use crate::engine::header::{Header, Phase};
use crate::engine::receive_loop::{Sink, stop_if};
use crate::host::cpu::CpuWindow;
use crate::stats::flow::{Arrival, DelayRecorder};
use crate::stats::ipdv::IpdvRecorder;
use crate::stats::series::{HeldBack, Series};
use crate::stats::slices::SliceCounter;
use crate::stats::waiting::WaitingCounter;
use crate::sys::{self, Nanos};
use crate::timing;
use stacklab_model::{
    CpuScope, CpuTime, Delays, Exchange, IntervalRow, Pacing, Probe, Received, Slice, TrialSpec,
};
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Loss threshold: a message is lost when it has not arrived this long after the end marker or after the last later
/// arrival, whichever comes last (the waiting time that RFC 7680 requires to be stated).
const LOSS_THRESHOLD_NS: Nanos = 50_000_000;
/// Loss threshold without an end marker, counted from when the sender is known to have ended.
const SILENCE_NS: Nanos = 500_000_000;
/// Without an end marker, a pause is long from this many of the mean gaps between arrivals on.
const SILENT_GAPS: u64 = 4;
/// How long arrivals are counted after the sender is known to have ended; a deep queue may hold more.
const LATE_NS: Nanos = 5_000_000_000;
/// How long a closed loop waits for an answer before it sends the next message.
const ANSWER_LIMIT_NS: Nanos = 1_000_000_000;

pub(crate) struct SharedState<'a> {
    ended: &'a AtomicBool,
    /// The first measured arrival on any thread; 0 before it.
    first_ns: AtomicU64,
}

impl<'a> SharedState<'a> {
    pub(crate) fn new(ended: &'a AtomicBool) -> Self {
        SharedState { ended, first_ns: AtomicU64::new(0) }
    }
}

pub(crate) struct ArrivalCounter<'a> {
    shared: &'a SharedState<'a>,
    received: Received,
    /// Flows seen by this thread, by number.
    flows: Vec<Option<CountedFlow>>,
    /// Preallocated state for flows not seen yet.
    unheard: Vec<CountedFlow>,
    all_flows: u32,
    /// Flows that this thread receives.
    awaited_flows: usize,
    marked: usize,
    complete: usize,
    delays: DelayRecorder,
    series: Series,
    held_back: HeldBack,
    slices: Option<SliceCounter>,
    waiting: Option<WaitingCounter>,
    ipdv: Option<IpdvRecorder>,
    /// Open over the measured arrivals, if their CPU time counts.
    cpu: Option<CpuWindow>,
    /// The reply that a closed loop waits for, and since when.
    answer: Option<(Phase, u64, Nanos)>,
    last_arrival_ns: Nanos,
    /// The first arrival of all, and how many came.
    first_arrival_ns: Nanos,
    arrivals: u64,
    /// Since when the sender is known to have ended.
    ended_ns: Option<Nanos>,
    token: u32,
    /// Whether the window begins with the first whole message: on a schedule, its first bytes say nothing of the rate.
    whole: bool,
    /// Whether arrivals are echo replies, which carry a reflect time.
    answers: bool,
    clock_offset_ns: i64,
    timed: bool,
    finds_last_missing: bool,
}

#[derive(Default)]
pub(crate) struct ArrivalCounts {
    pub received: Received,
    pub delays: Option<Delays>,
    pub series: Vec<IntervalRow>,
    pub slices: Vec<Slice>,
    /// User and kernel time of the counting thread over the slices.
    pub cpu_parts: Option<(Nanos, Nanos)>,
    /// CPU time from the first measured arrival to the last flow's end marker; `None` if it does not count.
    pub cpu: Option<CpuTime>,
    pub flow_bytes: Vec<u64>,
}

impl<'a> ArrivalCounter<'a> {
    /// A counter for a trial's flows, of which this thread receives `awaited_flows`, without the host's CPU time.
    pub(crate) fn new(spec: &TrialSpec, shared: &'a SharedState<'a>, awaited_flows: usize) -> Self {
        let has_ipdv = spec.probe.metrics.iter().any(|metric| metric.is_ipdv());
        ArrivalCounter {
            shared,
            received: Received::default(),
            flows: (0..spec.flows).map(|_| None).collect(),
            unheard: (0..awaited_flows).map(|_| CountedFlow::new(spec.flows, has_ipdv)).collect(),
            all_flows: spec.flows,
            awaited_flows,
            marked: 0,
            complete: 0,
            delays: DelayRecorder::new(),
            series: Series::new(spec.probe.interval_ns),
            held_back: HeldBack::new(),
            slices: SliceCounter::new(spec),
            waiting: WaitingCounter::of(spec),
            ipdv: has_ipdv.then(IpdvRecorder::new),
            cpu: None,
            answer: None,
            last_arrival_ns: 0,
            first_arrival_ns: 0,
            arrivals: 0,
            ended_ns: None,
            token: spec.token,
            whole: spec.probe.pacing.is_schedule(),
            answers: spec.probe.probe == Probe::Echo,
            // A reply comes back with a time of the own clock.
            clock_offset_ns: if spec.probe.probe.echoes() { 0 } else { spec.clock_offset_ns },
            timed: timing::knows_arrival_times(spec),
            finds_last_missing: matches!(spec.probe.pacing, Pacing::Stepped(_)),
        }
    }

    pub(crate) fn with_cpu_time(mut self, scope: CpuScope) -> Self {
        self.cpu = Some(CpuWindow::new(scope));
        self
    }

    /// Stops the next receive at this reply or after a timeout of one second.
    pub(crate) fn await_answer(&mut self, phase: Phase, sequence: u64, now: Nanos) {
        self.answer = Some((phase, sequence, now));
    }

    /// Whether the last awaited reply has arrived; if not, it counts as infinite in its slice of the measured part.
    pub(crate) fn settle_answer(&mut self, phase: Phase, slice: u32) -> bool {
        let answered = self.answer.is_none();
        if let Some(slices) = self.slices.as_mut().filter(|_| !answered && phase == Phase::Measured) {
            slices.count_unanswered_message(slice);
        }
        answered
    }

    pub(crate) fn join(&mut self, other: ArrivalCounter<'_>) {
        let received = &mut self.received;
        let more = other.received;
        if received.first_ns == 0 || more.first_ns > 0 && more.first_ns < received.first_ns {
            (received.first_ns, received.bytes_at_first) = (more.first_ns, more.bytes_at_first);
        }
        received.warmup += more.warmup;
        received.measured += more.measured;
        received.bytes += more.bytes;
        received.duplicates += more.duplicates;
        received.reordered += more.reordered;
        received.beyond_window += more.beyond_window;
        received.strays += more.strays;
        received.last_ns = received.last_ns.max(more.last_ns);
        received.least_round_trip = received
            .least_round_trip
            .into_iter()
            .chain(more.least_round_trip)
            .min_by_key(Exchange::round_trip_ns);
        if let (Some(cpu), Some(more)) = (&mut self.cpu, other.cpu) {
            cpu.join(more);
        }
        self.delays.join(&other.delays);
        self.series.join(other.series);
        if let (Some(slices), Some(more)) = (&mut self.slices, other.slices) {
            slices.join(more);
        }
        if let (Some(waiting), Some(more)) = (&mut self.waiting, other.waiting) {
            waiting.join(more);
        }
        if let (Some(ipdv), Some(more)) = (&mut self.ipdv, &other.ipdv) {
            ipdv.join(more);
        }
        for (flow, theirs) in self.flows.iter_mut().zip(other.flows) {
            if theirs.is_some() {
                *flow = theirs;
            }
        }
    }

    pub(crate) fn finish(self) -> ArrivalCounts {
        let ArrivalCounter {
            mut received,
            delays,
            series,
            slices,
            waiting,
            ipdv,
            cpu,
            flows,
            clock_offset_ns,
            finds_last_missing,
            ..
        } = self;
        if clock_offset_ns != 0 {
            received.least_delays = series.minima();
        }
        if let ([Some(flow)], true) = (&flows[..], finds_last_missing) {
            received.last_missing = flow.expected.and_then(|sent| flow.window.last_missing(sent));
        }
        received.waiting = waiting.as_ref().map(WaitingCounter::count);
        received.ipdv = ipdv.as_ref().and_then(IpdvRecorder::finish);
        received.cut_bytes = flows.iter().flatten().map(|flow| flow.partial).sum();
        ArrivalCounts {
            received,
            delays: delays.finish(flows.iter().flatten().map(|flow| &flow.variation)),
            series: series.finish(),
            cpu_parts: slices.as_ref().and_then(SliceCounter::cpu_parts),
            slices: slices.map(SliceCounter::finish).unwrap_or_default(),
            cpu: cpu.and_then(CpuWindow::finish),
            flow_bytes: if flows.len() > 1 {
                flows.iter().map(|flow| flow.as_ref().map_or(0, |flow| flow.bytes + flow.partial)).collect()
            } else {
                Vec::new()
            },
        }
    }

    fn flow(&mut self, place: usize) -> Option<&mut CountedFlow> {
        let slot = self.flows.get_mut(place)?;
        let unheard = &mut self.unheard;
        let keeps_delays = self.ipdv.is_some();
        Some(slot.get_or_insert_with(|| {
            unheard.pop().unwrap_or_else(|| CountedFlow::new(self.all_flows, keeps_delays))
        }))
    }

    fn note_arrival(&mut self, now: Nanos) {
        self.last_arrival_ns = self.last_arrival_ns.max(now);
        if self.arrivals == 0 {
            self.first_arrival_ns = now;
        }
        self.arrivals += 1;
    }

    fn record_exchange(&mut self, sent_ns: Nanos, reflected_ns: Nanos, returned_ns: Nanos) {
        let exchange = Exchange { sent_ns, reflected_ns, returned_ns };
        let least = &mut self.received.least_round_trip;
        if least.is_none_or(|least| exchange.round_trip_ns() < least.round_trip_ns()) {
            *least = Some(exchange);
        }
    }

    fn begin(&mut self, now: Nanos) {
        if self.received.first_ns > 0 {
            return;
        }
        self.received.first_ns = now;
        self.held_back.clear();
        self.cpu.iter_mut().for_each(CpuWindow::open);
        // The first arrival on any thread starts the series of all threads.
        let _ = self.shared.first_ns.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn count_measured_message(&mut self, place: usize, header: Header, bytes: u64, now: Nanos) {
        self.begin(now);
        let ArrivalCounter { flows, received, .. } = self;
        let Some(flow) = &mut flows[place] else { return };
        let counted = std::mem::take(&mut flow.partial);
        match flow.window.arrive(header.sequence) {
            Arrival::First => {}
            Arrival::Reordered => received.reordered += 1,
            Arrival::Duplicate => {
                received.duplicates += 1;
                return;
            }
            Arrival::BeyondWindow => {
                received.beyond_window += 1;
                return;
            }
        }
        flow.measured += 1;
        flow.bytes += bytes;
        received.measured += 1;
        received.bytes += bytes;
        let new_bytes = bytes.saturating_sub(counted);
        received.bytes_at_first += if now == received.first_ns { new_bytes } else { 0 };
        received.last_ns = received.last_ns.max(now);
        let delay = self
            .timed
            .then(|| now.saturating_sub(header.sent_ns.saturating_add_signed(self.clock_offset_ns)));
        if let Some(delay) = delay {
            self.delays.record(delay, &mut flow.variation);
            if let (Some(ipdv), Some(last)) = (&mut self.ipdv, &mut flow.last) {
                ipdv.record(last, header.sequence, header.slice, delay);
            }
        }
        let first_ns = self.shared.first_ns.load(Ordering::Relaxed);
        let new_bytes = self.held_back.record(&mut self.series, first_ns, new_bytes);
        self.series.record(now.saturating_sub(first_ns), new_bytes, delay);
        if let Some(slices) = &mut self.slices {
            slices.record(header.slice, place, now, delay);
        }
        if let Some(waiting) = &mut self.waiting {
            waiting.record(header.sent_ns, now);
        }
    }
}

impl Sink for ArrivalCounter<'_> {
    fn take(&mut self, header: Header, message: &mut [u8], now: Nanos) -> io::Result<ControlFlow<()>> {
        if header.phase == Phase::Open {
            return Ok(ControlFlow::Continue(()));
        }
        let header = header.complete_send_time(now.saturating_add_signed(-self.clock_offset_ns));
        let place = usize::from(header.flow);
        self.note_arrival(now);
        let Some(flow) = self.flow(place) else { return Ok(self.stray()) };
        match header.phase {
            Phase::Warmup => self.received.warmup += 1,
            Phase::Measured => {
                if self.answers {
                    self.record_exchange(header.sent_ns, Header::reflected_ns(message), now);
                }
                self.count_measured_message(place, header, message.len() as u64, now);
            }
            Phase::End if flow.expected.is_none() => {
                flow.expected = Some(header.sequence);
                self.marked += 1;
                if self.marked == self.awaited_flows {
                    self.cpu.iter_mut().for_each(CpuWindow::close);
                    if let Some(slices) = &mut self.slices {
                        slices.close();
                    }
                }
            }
            Phase::End | Phase::Open => {}
        }
        if let Some(flow) = &mut self.flows[place]
            && !flow.complete
            && flow.expected.is_some_and(|expected| flow.measured >= expected)
        {
            flow.complete = true;
            self.complete += 1;
        }
        let complete = self.complete >= self.awaited_flows;
        let awaited = (header.phase, header.sequence);
        let answered = self.answer.take_if(|(phase, sequence, _)| (*phase, *sequence) == awaited).is_some();
        Ok(stop_if(complete || answered))
    }

    fn partial(&mut self, message: &[u8], now: Nanos) {
        let Some(header) = Header::read(message, self.token) else { return };
        if header.phase != Phase::Measured || usize::from(header.flow) >= self.flows.len() {
            return;
        }
        self.note_arrival(now);
        if !self.whole {
            self.begin(now);
        }
        let begun = self.received.first_ns > 0;
        let Some(flow) = self.flow(header.flow.into()) else { return };
        let more = (message.len() as u64).saturating_sub(flow.partial);
        if more == 0 || !begun {
            return;
        }
        flow.partial += more;
        self.received.last_ns = self.received.last_ns.max(now);
        self.received.bytes_at_first += if now == self.received.first_ns { more } else { 0 };
        let first_ns = self.shared.first_ns.load(Ordering::Relaxed);
        let more = self.held_back.record(&mut self.series, first_ns, more);
        self.series.record_bytes(now.saturating_sub(first_ns), more);
    }

    fn held_back(&mut self, bytes: u64, now: Nanos) {
        self.held_back.arrive(bytes, now);
    }

    fn is_over(&mut self) -> bool {
        if !self.shared.ended.load(Ordering::Relaxed) {
            return false;
        }
        let now = sys::now_ns();
        now - *self.ended_ns.get_or_insert(now) >= LATE_NS
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.received.strays += 1;
        ControlFlow::Continue(())
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        if let Some((_, _, since)) = self.answer {
            return stop_if(now.saturating_sub(since) >= ANSWER_LIMIT_NS);
        }
        if self.last_arrival_ns == 0 {
            self.last_arrival_ns = now;
        }
        let quiet = now.saturating_sub(self.last_arrival_ns);
        let ended = self.shared.ended.load(Ordering::Relaxed);
        let marked = self.marked >= self.awaited_flows;
        // On a slow path, a gap between two arrivals is long.
        let gap = self.last_arrival_ns.saturating_sub(self.first_arrival_ns) / self.arrivals.max(1);
        let silence = SILENCE_NS.max(SILENT_GAPS.saturating_mul(gap));
        let is_silent = ended && quiet >= silence;
        stop_if(marked && quiet >= LOSS_THRESHOLD_NS || is_silent || self.is_over())
    }
}
