//! Where the messages of each flow come from, which a receiver notes if the flows are of several customers.

use crate::engine::count::ArrivalCounter;
use crate::engine::header::Header;
use crate::engine::receive_loop::Sink;
use crate::sys::Nanos;
use stacklab_model::{Transport, TrialSpec};
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;

/// The most addresses of one flow that are kept: a second one is wrong already.
const MAX_SOURCES: usize = 4;

/// Counts arrivals, and notes the sources of flows.
pub(crate) struct SourceCounter<'a> {
    pub counter: ArrivalCounter<'a>,
    /// For each flow; empty if sources are not asked for.
    pub sources: Vec<Vec<SocketAddr>>,
    /// Whether a flow is a connection, whose source stays the same.
    is_connection: bool,
    /// The flow of the last message.
    flow: usize,
}

impl<'a> SourceCounter<'a> {
    pub(crate) fn new(spec: &TrialSpec, counter: ArrivalCounter<'a>) -> Self {
        let flows = if spec.uplinks.is_empty() { 0 } else { spec.flows as usize };
        let is_connection = spec.transport == Transport::Tcp;
        SourceCounter { counter, sources: vec![Vec::new(); flows], is_connection, flow: 0 }
    }

    pub(crate) fn join(&mut self, other: SourceCounter<'_>) {
        self.counter.join(other.counter);
        for (own, more) in self.sources.iter_mut().zip(other.sources) {
            own.extend(more);
        }
    }
}

impl Sink for SourceCounter<'_> {
    fn take(&mut self, header: Header, message: &mut [u8], arrived: Nanos) -> io::Result<ControlFlow<()>> {
        self.flow = header.flow.into();
        self.counter.take(header, message, arrived)
    }

    fn note_source(&mut self, read: impl FnOnce() -> Option<SocketAddr>) {
        let Some(sources) = self.sources.get_mut(self.flow) else { return };
        if self.is_connection && !sources.is_empty() || sources.len() == MAX_SOURCES {
            return;
        }
        if let Some(source) = read().filter(|source| !sources.contains(source)) {
            sources.push(source);
        }
    }

    fn partial(&mut self, message: &[u8], arrived: Nanos) {
        self.counter.partial(message, arrived);
    }

    fn held_back(&mut self, bytes: u64, now: Nanos) {
        self.counter.held_back(bytes, now);
    }

    fn is_over(&mut self) -> bool {
        self.counter.is_over()
    }

    fn stray(&mut self) -> ControlFlow<()> {
        self.counter.stray()
    }

    fn idle(&mut self, now: Nanos) -> ControlFlow<()> {
        self.counter.idle(now)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::receiver::Receiver;
    use crate::engine::sender;
    use crate::fixtures;
    use stacklab_model::{Family, Length, Pacing, Probe, Transport, Uplink};

    /// Loopback is the only link that a test has without a namespace.
    #[test]
    fn each_flow_has_its_own_source() {
        for transport in Transport::ALL.iter().copied() {
            let mut spec = fixtures::spec(Family::Ipv4, transport);
            (spec.probe.probe, spec.probe.pacing) = (Probe::Stream, Pacing::Schedule(2000.0));
            (spec.probe.length, spec.probe.warmup_ns, spec.flows) = (Length::Packets(100), 0, 3);
            for last in 1..=2 {
                let address = [127, 0, 0, last].into();
                spec.uplinks.push(Uplink { interface: "lo".to_owned(), address });
            }
            let receiver = Receiver::listen(spec.clone(), spec.family.loopback()).unwrap();
            sender::run(&spec, spec.family.loopback(), receiver.address).unwrap();
            let sources = receiver.collect().unwrap().flow_sources;
            let ends: Vec<String> = sources.iter().flatten().map(|source| source.ip().to_string()).collect();
            assert_eq!(ends, ["127.0.0.1", "127.0.0.2", "127.0.0.1"], "{transport}");
            assert_ne!(sources[0], sources[2], "{transport}");
        }
    }
}
