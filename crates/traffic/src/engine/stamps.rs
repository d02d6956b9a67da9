//! Packet timestamps: the kernel's, which are of the realtime clock, on the monotonic clock; and round trips at the
//! sender's interface, from a message's transmit timestamp to the receive timestamp of its reply.

use crate::engine::header::Phase;
use crate::engine::socket::MessageSocket;
use crate::stats::flow::FlowDelays;
use crate::sys::{self, Nanos, RealtimeOffset, RecvMeta, Socket, SocketOption, TxTimestamp};
use stacklab_model::{Delays, Metric, Point, Transport, TrialSpec};
use std::io;
use std::time::Duration;

/// How far two readings may be apart beyond their errors if nobody has set the clock: both run at one rate.
const APART_NS: u64 = 1_000_000;

/// How many readings are made of a clock that is new or was set, or whose reading was interrupted.
const READINGS: usize = 8;
/// A reading was interrupted if its error is this many times that of the best one and this many ns more: it may hide
/// that the clock was set to and fro.
const INTERRUPTED: u64 = 4;
const INTERRUPTED_NS: u64 = 1_000;

/// Both clocks, as they were at the last reading.
#[derive(Debug, Clone)]
pub(crate) struct StampClock {
    read_ns: Nanos,
    /// The most exact reading of those that agree with the last one.
    realtime: RealtimeOffset,
    /// The smallest error of all readings.
    least_bound_ns: u64,
    /// Whether the offset changed between the last two readings, and by more than a little.
    moved: bool,
    was_set: bool,
    /// The last reading before the realtime clock was set, or the first: earlier timestamps are of another time.
    since_ns: Nanos,
}

impl StampClock {
    /// The first reading: before any packet can arrive whose timestamp it is to be asked about.
    pub(crate) fn new() -> Self {
        StampClock::of(sys::now_ns(), exact(&mut sys::realtime_offset))
    }

    fn of(read_ns: Nanos, realtime: RealtimeOffset) -> Self {
        let least_bound_ns = realtime.bound_ns;
        StampClock { read_ns, realtime, least_bound_ns, moved: false, was_set: false, since_ns: read_ns }
    }

    /// Reads both clocks, at this time of the monotonic one.
    pub(crate) fn read(&mut self, read_ns: Nanos) {
        self.read_by(read_ns, &mut sys::realtime_offset);
    }

    fn read_by(&mut self, read_ns: Nanos, offset: &mut impl FnMut() -> RealtimeOffset) {
        let mut now = offset();
        let known = self.realtime;
        if is_inexact(now, known.bound_ns) {
            now = exact(offset);
        }
        let apart_ns = now.offset_ns.abs_diff(known.offset_ns).saturating_sub(now.bound_ns + known.bound_ns);
        (self.moved, self.was_set) = (apart_ns > 0, apart_ns > APART_NS);
        if self.was_set {
            self.since_ns = self.read_ns;
        }
        // Two settings may take each other back but for the time that they took.
        if self.moved {
            self.realtime = exact(offset);
        } else if now.bound_ns < known.bound_ns {
            self.realtime = now;
        }
        self.least_bound_ns = self.least_bound_ns.min(self.realtime.bound_ns);
        self.read_ns = read_ns;
    }

    /// Whether the realtime clock was set between the last two readings, if only to and fro.
    pub(crate) fn saw_clock_step(&self) -> bool {
        self.moved
    }

    /// When a packet arrived, by its timestamp: at the last reading if the timestamp is later, of another time, or no
    /// exact reading was possible since the clock was set.
    pub(crate) fn arrival(&self, stamp_ns: Nanos) -> Nanos {
        let arrived_ns = (stamp_ns as i64 - self.realtime.offset_ns).max(0) as Nanos;
        let is_unknown = self.was_set || is_inexact(self.realtime, self.least_bound_ns);
        if is_unknown || arrived_ns < self.since_ns { self.read_ns } else { self.read_ns.min(arrived_ns) }
    }
}

/// Whether a reading is much less exact than another one with this error.
fn is_inexact(reading: RealtimeOffset, bound_ns: u64) -> bool {
    reading.bound_ns > INTERRUPTED * bound_ns + INTERRUPTED_NS
}

/// The most exact of several readings: one that was interrupted is off by more than a packet's way.
fn exact(offset: &mut impl FnMut() -> RealtimeOffset) -> RealtimeOffset {
    let readings = std::iter::repeat_with(offset).take(READINGS);
    readings.min_by_key(|reading| reading.bound_ns).expect("there are some")
}

/// How long to wait for the transmit timestamp of an answered message.
const LIMIT: Duration = Duration::from_millis(20);

/// Watches the messages of a closed loop: one is outstanding at a time.
pub(crate) struct InterfaceRtt<'a> {
    socket: &'a Socket,
    sent: u32,
    by_kernel: FlowDelays,
    /// Round trips by hardware timestamps; `None` once one timestamp was missing.
    by_interface: Option<FlowDelays>,
    clock: StampClock,
}

impl<'a> InterfaceRtt<'a> {
    /// `None` if no metric needs them, since each message then costs a call more, or if this host has none.
    pub(crate) fn watch(spec: &TrialSpec, channel: &'a MessageSocket) -> Option<Self> {
        let asked = [Metric::RttInterface, Metric::RttInterfaceP99]
            .iter()
            .any(|metric| spec.probe.metrics.contains(metric));
        if !asked || spec.transport != Transport::Udp {
            return None;
        }
        let socket = &channel.socket;
        sys::set(socket, SocketOption::RxTimestamps)
            .and_then(|()| sys::set(socket, SocketOption::TxTimestamps))
            .ok()?;
        Some(Self::new(socket))
    }

    fn new(socket: &'a Socket) -> Self {
        InterfaceRtt {
            socket,
            sent: 0,
            by_kernel: FlowDelays::new(),
            by_interface: Some(FlowDelays::new()),
            clock: StampClock::new(),
        }
    }

    /// Records the timestamps of the last message sent and of its answer, if one came.
    pub(crate) fn note(&mut self, phase: Phase, answer: Option<RecvMeta>) -> io::Result<()> {
        let socket = self.socket;
        self.clock.read(sys::now_ns());
        let answer = answer.filter(|_| !self.clock.saw_clock_step()).unwrap_or_default();
        self.pair(phase, answer, || sys::read_tx_timestamp(socket, LIMIT))
    }

    fn pair(
        &mut self,
        phase: Phase,
        answer: RecvMeta,
        mut next: impl FnMut() -> io::Result<(u32, TxTimestamp)>,
    ) -> io::Result<()> {
        let last = self.sent;
        self.sent = self.sent.wrapping_add(1);
        // The software timestamp comes first.
        let mut awaits_kernel = true;
        let mut awaits_interface = self.by_interface.is_some() && answer.hardware_rx_ns.is_some();
        while awaits_kernel || awaits_interface {
            match next() {
                Ok((number, _)) if number != last => {}
                Ok((_, TxTimestamp::Software(left))) => {
                    record_trip(&mut self.by_kernel, phase, left, answer.software_rx_ns);
                    awaits_kernel = false;
                }
                Ok((_, TxTimestamp::Hardware(left))) => {
                    if let Some(trips) = &mut self.by_interface {
                        record_trip(trips, phase, left, answer.hardware_rx_ns);
                    }
                    awaits_interface = false;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if awaits_interface {
                        self.by_interface = None;
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hardware timestamps, if every message has them.
    pub(crate) fn finish(self) -> Option<(Delays, Point)> {
        let by_kernel = self.by_kernel.finish()?;
        let by_interface = self.by_interface.and_then(FlowDelays::finish);
        let all = by_interface.filter(|trips| trips.buckets.count() == by_kernel.buckets.count());
        Some(all.map_or((by_kernel, Point::Kernel), |trips| (trips, Point::Interface)))
    }
}

fn record_trip(trips: &mut FlowDelays, phase: Phase, left: Nanos, arrived: Option<Nanos>) {
    if let (Phase::Measured, Some(arrived)) = (phase, arrived) {
        trips.record(arrived.saturating_sub(left));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Family, HostReport, Length, Pacing, Point, Probe};

    const HOUR_NS: i64 = 3600 * 1_000_000_000;
    const OFFSET_NS: i64 = 1_700_000_000_000_000_000;

    fn stamp(arrived_ns: i64) -> Nanos {
        (arrived_ns + OFFSET_NS) as Nanos
    }

    fn read_as(offset_ns: i64) -> RealtimeOffset {
        RealtimeOffset { offset_ns, bound_ns: 20 }
    }

    fn begin() -> StampClock {
        StampClock::of(1_000, read_as(OFFSET_NS))
    }

    #[test]
    fn setting_the_realtime_clock_moves_no_arrival() {
        let mut clock = begin();
        // Readings are not exact, and one that was interrupted is not taken.
        let interrupted = RealtimeOffset { offset_ns: OFFSET_NS + 3_000_000, bound_ns: 3_000_000 };
        clock.read_by(5_000, &mut || interrupted);
        clock.read_by(9_000, &mut || RealtimeOffset { offset_ns: OFFSET_NS + 10, bound_ns: 10 });
        assert_eq!(clock.arrival(stamp(5_010)), 5_000);
        assert_eq!(clock.arrival(stamp(9_500)), 9_000);
        for hours in [1, -1, 24 * 365] {
            let mut clock = begin();
            // A packet came at 15,000, and the clock was set before it was received, or before it came.
            for stamp_ns in [stamp(15_000), stamp(15_000 + hours * HOUR_NS)] {
                clock = begin();
                clock.read_by(20_000, &mut || read_as(OFFSET_NS + hours * HOUR_NS));
                assert!(clock.saw_clock_step());
                assert_eq!(clock.arrival(stamp_ns), 20_000);
            }
            // The next ones are of the new time, but for one that has waited since.
            clock.read_by(30_000, &mut || read_as(OFFSET_NS + hours * HOUR_NS));
            assert_eq!(clock.arrival(stamp(25_000 + hours * HOUR_NS)), 25_000);
            assert_eq!(clock.arrival(stamp(900)), 30_000);
            // Set to and fro while a packet waited: its timestamp is of a time that no reading has seen.
            let mut clock = begin();
            clock.read_by(20_000, &mut || read_as(OFFSET_NS));
            assert_eq!(clock.arrival(stamp(15_000 + hours * HOUR_NS)), 20_000);
        }
        // All readings after the setting were interrupted, and put packets before they were sent.
        let mut clock = begin();
        let inexact = RealtimeOffset { offset_ns: OFFSET_NS + HOUR_NS + 30_000, bound_ns: 40_000 };
        for read_ns in [20_000, 60_000] {
            clock.read_by(read_ns, &mut || inexact);
            assert_eq!(clock.arrival(stamp(read_ns as i64 - 1_000 + HOUR_NS)), read_ns);
        }
        clock.read_by(90_000, &mut || read_as(OFFSET_NS + HOUR_NS));
        assert_eq!(clock.arrival(stamp(85_000 + HOUR_NS)), 85_000);
        // To and fro, and some time was lost: a packet that came later has not arrived earlier.
        let mut clock = begin();
        clock.read_by(500_000, &mut || read_as(OFFSET_NS - 300_000));
        assert_eq!(clock.arrival(stamp(450_000 - 300_000)), 450_000);
        // Nor if the reading after that was interrupted.
        let mut clock = begin();
        let mut readings =
            std::iter::once(interrupted).chain(std::iter::repeat_with(|| read_as(OFFSET_NS - 300_000)));
        clock.read_by(500_000, &mut || readings.next().unwrap());
        assert!(clock.saw_clock_step());
        assert_eq!(clock.arrival(stamp(450_000 - 300_000)), 450_000);
    }

    fn run_echo(family: Family, transport: Transport, metric: Metric) -> HostReport {
        let mut spec = fixtures::spec(family, transport);
        spec.probe.probe = Probe::Echo;
        spec.probe.pacing = Pacing::Lockstep;
        spec.probe.length = Length::Packets(200);
        spec.probe.warmup_ns = 2_000_000;
        spec.probe.metrics = vec![metric];
        let receiver = Receiver::listen(spec.clone(), family.loopback()).unwrap();
        let side = sender::run(&spec, family.loopback(), receiver.address).unwrap();
        receiver.collect().unwrap();
        side
    }

    #[test]
    fn interface_round_trip_is_within_that_of_the_program() {
        for family in Family::ALL.iter().copied() {
            let side = run_echo(family, Transport::Udp, Metric::RttInterface);
            let program = side.delays.unwrap();
            let interface = side.interface_delays.unwrap();
            assert_eq!((program.buckets.count(), interface.buckets.count()), (200, 200));
            // No virtual interface has its own clock.
            let points = side.interface_points.unwrap();
            assert_eq!((points.sent, points.received), (Point::Kernel, Point::Kernel));
            assert!(interface.buckets.percentile(0.0).unwrap() > 0);
            // This holds for each message, so also for each percentile, to the histogram's three digits and the
            // clocks' resolution.
            for p in [0.0, 0.5, 0.99, 1.0] {
                let [inner, outer] =
                    [&interface, &program].map(|delays| delays.buckets.percentile(p).unwrap());
                assert!(
                    inner as f64 <= outer as f64 * 1.002 + 100.0,
                    "{family}, {p}: {inner} and {outer} ns"
                );
            }
        }
    }

    /// Pairs transmit timestamps with the receive timestamps of their answers.
    fn pair_stamps(stamps: &[(u32, TxTimestamp)], answers: &[RecvMeta]) -> (Delays, Point) {
        let socket: Socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut watched = InterfaceRtt::new(&socket);
        let mut stamps = stamps.iter().copied();
        for answer in answers {
            watched
                .pair(Phase::Measured, *answer, || {
                    stamps.next().ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock))
                })
                .unwrap();
        }
        watched.finish().unwrap()
    }

    fn stamp_answer(kernel_ns: Nanos, interface_ns: Option<Nanos>) -> RecvMeta {
        RecvMeta { software_rx_ns: Some(kernel_ns), hardware_rx_ns: interface_ns, ..RecvMeta::default() }
    }

    #[test]
    fn interface_times_are_taken_only_if_complete() {
        let answers = [stamp_answer(1_000, Some(90)), stamp_answer(2_000, Some(190))];
        let all = [
            (0, TxTimestamp::Software(500)),
            (0, TxTimestamp::Hardware(40)),
            (1, TxTimestamp::Software(1_500)),
            (1, TxTimestamp::Hardware(140)),
        ];
        let (trips, point) = pair_stamps(&all, &answers);
        assert_eq!(
            (trips.buckets.count(), trips.buckets.percentile(0.5), point),
            (2, Some(50), Point::Interface)
        );
        // The second message has no hardware timestamp; the last one has only a transmit timestamp.
        let (trips, point) = pair_stamps(&[all[0], all[1], all[2]], &answers);
        assert_eq!((trips.buckets.count(), point), (2, Point::Kernel));
        let (trips, point) = pair_stamps(&all, &[answers[0], stamp_answer(2_000, None)]);
        assert_eq!((trips.buckets.count(), point), (2, Point::Kernel));
    }

    #[test]
    fn interface_time_is_taken_if_asked_and_for_datagrams() {
        assert!(run_echo(Family::Ipv4, Transport::Udp, Metric::Rtt).interface_delays.is_none());
        assert!(run_echo(Family::Ipv6, Transport::Tcp, Metric::RttInterface).interface_delays.is_none());
    }
}
