//! Round trips at the sender's interface: from a message's transmit timestamp to the receive timestamp of its reply.

use crate::engine::header::Phase;
use crate::engine::socket::Channel;
use crate::engine::stamp_clock::StampClock;
use crate::stats::delay::FlowDelays;
use crate::sys::{self, Nanos, RecvMeta, TxTimestamp};
use socket2::Socket;
use stacklab_model::{Delays, Metric, Point, Transport, TrialSpec};
use std::io;
use std::time::Duration;

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
    /// Enables transmit and receive timestamps. `None` if no metric needs them (each message then costs one more
    /// call), or if this host does not support them.
    pub(crate) fn watch(spec: &TrialSpec, channel: &'a Channel) -> Option<Self> {
        let asked = [Metric::RttInterface, Metric::RttInterfaceP99]
            .iter()
            .any(|metric| spec.probe.metrics.contains(metric));
        if !asked || spec.transport != Transport::Udp {
            return None;
        }
        let socket = &channel.socket;
        sys::enable_rx_timestamps(socket).and_then(|()| sys::enable_tx_timestamps(socket)).ok()?;
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
        let answer = answer.filter(|_| !self.clock.moved()).unwrap_or_default();
        self.pair(phase, answer, || sys::read_tx_timestamp(socket, LIMIT))
    }

    /// Pairs transmit timestamps with answers.
    fn pair(
        &mut self,
        phase: Phase,
        answer: RecvMeta,
        mut next: impl FnMut() -> io::Result<(u32, TxTimestamp)>,
    ) -> io::Result<()> {
        let note = |trips: &mut FlowDelays, left: Nanos, arrived: Option<Nanos>| {
            if let (Phase::Measured, Some(arrived)) = (phase, arrived) {
                trips.record(arrived.saturating_sub(left));
            }
        };
        let last = self.sent;
        self.sent = self.sent.wrapping_add(1);
        // The software timestamp comes first.
        let mut awaits_kernel = true;
        let mut awaits_interface = self.by_interface.is_some() && answer.hardware_rx_ns.is_some();
        while awaits_kernel || awaits_interface {
            match next() {
                Ok((number, _)) if number != last => {}
                Ok((_, TxTimestamp::Software(left))) => {
                    note(&mut self.by_kernel, left, answer.software_rx_ns);
                    awaits_kernel = false;
                }
                Ok((_, TxTimestamp::Hardware(left))) => {
                    if let Some(trips) = &mut self.by_interface {
                        note(trips, left, answer.hardware_rx_ns);
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

    /// The round trips and where they were timestamped: in hardware if every message has hardware timestamps. `None`
    /// without round trips.
    pub(crate) fn finish(self) -> Option<(Delays, Point)> {
        let by_kernel = self.by_kernel.finish()?;
        let by_interface = self.by_interface.and_then(FlowDelays::finish);
        let all = by_interface.filter(|trips| trips.buckets.count() == by_kernel.buckets.count());
        Some(all.map_or((by_kernel, Point::Kernel), |trips| (trips, Point::Interface)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Family, HostReport, Length, Pacing, Point, Probe};

    fn echoed(family: Family, transport: Transport, metric: Metric) -> HostReport {
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
    fn a_round_trip_at_the_interface_is_a_part_of_the_programs() {
        for family in Family::ALL.iter().copied() {
            let side = echoed(family, Transport::Udp, Metric::RttInterface);
            let (program, interface) = (side.delays.unwrap(), side.interface_delays.unwrap());
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
    fn paired(stamps: &[(u32, TxTimestamp)], answers: &[RecvMeta]) -> (Delays, Point) {
        let socket: Socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let mut watched = InterfaceRtt::new(&socket);
        let mut stamps = stamps.iter().copied();
        for answer in answers {
            let next = || stamps.next().ok_or_else(|| io::Error::from(io::ErrorKind::WouldBlock));
            watched.pair(Phase::Measured, *answer, next).unwrap();
        }
        watched.finish().unwrap()
    }

    #[test]
    fn an_interfaces_own_times_are_taken_where_it_has_told_of_all() {
        let both = |kernel, interface| RecvMeta {
            software_rx_ns: Some(kernel),
            hardware_rx_ns: interface,
            ..RecvMeta::default()
        };
        let answers = [both(1_000, Some(90)), both(2_000, Some(190))];
        let all = [
            (0, TxTimestamp::Software(500)),
            (0, TxTimestamp::Hardware(40)),
            (1, TxTimestamp::Software(1_500)),
            (1, TxTimestamp::Hardware(140)),
        ];
        let (trips, point) = paired(&all, &answers);
        assert_eq!(
            (trips.buckets.count(), trips.buckets.percentile(0.5), point),
            (2, Some(50), Point::Interface)
        );
        // The second message has no hardware timestamp; the last one has only a transmit timestamp.
        let (trips, point) = paired(&[all[0], all[1], all[2]], &answers);
        assert_eq!((trips.buckets.count(), point), (2, Point::Kernel));
        let (trips, point) = paired(&all, &[answers[0], both(2_000, None)]);
        assert_eq!((trips.buckets.count(), point), (2, Point::Kernel));
    }

    #[test]
    fn it_is_taken_where_it_is_asked_for_and_only_of_datagrams() {
        assert!(echoed(Family::Ipv4, Transport::Udp, Metric::Rtt).interface_delays.is_none());
        assert!(echoed(Family::Ipv6, Transport::Tcp, Metric::RttInterface).interface_delays.is_none());
    }
}
