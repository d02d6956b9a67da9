//! Round trips at the sender's interface: from the kernel's time of a message that left to that of its answer.

use crate::channel::Channel;
use crate::delay::{DelayRecorder, Variation};
use crate::header::Phase;
use crate::sys::{self, Nanos};
use socket2::Socket;
use stacklab_model::{Delays, Metric, Transport, TrialSpec};
use std::io;
use std::time::Duration;

/// How long the kernel may take to tell of a message that has been answered.
const LIMIT: Duration = Duration::from_millis(20);

/// Watches the messages of a closed loop: one is outstanding at a time.
pub struct AtInterface<'a> {
    socket: &'a Socket,
    /// Messages sent so far, as the kernel numbers them.
    sent: u32,
    recorder: DelayRecorder,
    order: Variation,
}

impl<'a> AtInterface<'a> {
    /// Has the kernel stamp what leaves and what arrives; `None` where no metric asks for it, since each message then costs
    /// a call more, or where this host does not.
    pub fn watch(spec: &TrialSpec, channel: &'a Channel) -> Option<Self> {
        let asked = [Metric::RttInterface, Metric::RttInterfaceP99]
            .iter()
            .any(|metric| spec.probe.metrics.contains(metric));
        if !asked || spec.transport != Transport::Udp {
            return None;
        }
        let socket = &channel.socket;
        sys::stamp_arrivals(socket).and_then(|()| sys::stamp_sends(socket)).ok()?;
        Some(AtInterface { socket, sent: 0, recorder: DelayRecorder::new(), order: Variation::default() })
    }

    /// Notes the message sent last, of which the answer arrived at this time of the realtime clock, if it did.
    ///
    /// # Errors
    /// Of the socket's error queue. A message of which the kernel tells nothing is left out.
    pub fn note(&mut self, phase: Phase, arrived: Option<Nanos>) -> io::Result<()> {
        let last = self.sent;
        self.sent = self.sent.wrapping_add(1);
        loop {
            match sys::send_stamp(self.socket, LIMIT) {
                Ok((number, _)) if number != last => {}
                Ok((_, left)) => {
                    if let (Phase::Measured, Some(arrived)) = (phase, arrived) {
                        self.recorder.record(arrived.saturating_sub(left), &mut self.order);
                    }
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    /// The round trips; `None` where there were none.
    pub fn finish(self) -> Option<Delays> {
        self.recorder.finish(std::iter::once(&self.order))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conduct::tests as fixtures;
    use crate::receiver::Receiver;
    use crate::sender;
    use stacklab_model::{Family, Length, Pacing, Probe, Side};

    fn echoed(family: Family, transport: Transport, metric: Metric) -> Side {
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
            assert!(interface.buckets.percentile(0.0).unwrap() > 0);
            // Of each message; so of each percentile, to the histogram's three digits and the clocks' reading.
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

    #[test]
    fn it_is_taken_where_it_is_asked_for_and_only_of_datagrams() {
        assert!(echoed(Family::Ipv4, Transport::Udp, Metric::Rtt).interface_delays.is_none());
        assert!(echoed(Family::Ipv6, Transport::Tcp, Metric::RttInterface).interface_delays.is_none());
    }
}
