//! This host's report of a test with another program.

use crate::engine::endpoint;
use crate::engine::socket::tcp_total;
use crate::error::{Attempt, EngineError};
use crate::foreign::counts::{Counted, ReceivedCounts, SentCounts, Way};
use crate::foreign::stream::Stream;
use crate::host::counters::Snapshot;
use crate::host::cpu::CpuWindow;
use stacklab_model::{CpuScope, HostReport, Received, Role, ScopedAddr, Sent};
use std::io;
use std::sync::Arc;

/// Observes this host during a test.
pub struct OwnHost {
    interface: String,
    before: Snapshot,
    cpu: CpuWindow,
}

impl OwnHost {
    /// Begins to observe the interface that has an address, before a socket is opened.
    pub fn begin(address: &ScopedAddr) -> Result<Self, EngineError> {
        let at = crate::host::zone::socket_addr(address, 0).attempt(|| format!("look for {address}"))?;
        let interface = endpoint::interface_of(at)?;
        let before = Snapshot::take(&interface);
        Ok(OwnHost { interface, before, cpu: CpuWindow::new(CpuScope::Host) })
    }

    /// The measured part begins.
    pub fn open(&mut self) {
        self.cpu.open();
    }

    /// The measured part has ended.
    pub fn close(&mut self) {
        self.cpu.close();
    }

    /// The report of the streams in one direction, each with what it counted, in messages of `message_bytes`.
    pub fn report(
        self,
        streams: &[(Arc<Stream>, Way)],
        counted: &[Counted],
        way: Way,
        message_bytes: u32,
    ) -> Result<HostReport, EngineError> {
        let own = || streams.iter().filter(|(_, own)| *own == way).map(|(stream, _)| stream);
        let first = own().next().ok_or_else(|| io::Error::other("there is none"));
        let first = first.attempt(|| "look at a test's streams".to_owned())?;
        let channels = own().map(|stream| &stream.channel);
        let counters = self.before.until(&Snapshot::take(&self.interface), first.socket());
        let role = if way == Way::Send { Role::Sender } else { Role::Receiver };
        let mut report = HostReport {
            io: Some(first.channel.io),
            cpu: self.cpu.finish(),
            tcp: tcp_total(channels),
            counters,
            peak_rss_kib: crate::sys::peak_rss_kib(),
            ..HostReport::new(role, first.endpoint()?)
        };
        let counted: Vec<&Counted> = streams
            .iter()
            .zip(counted)
            .filter(|((_, own), _)| *own == way)
            .map(|(_, counted)| counted)
            .collect();
        for counted in &counted {
            match counted {
                Counted::Sent(counts) => add_sent(&mut report.sent, counts, message_bytes),
                Counted::Received(counts) => add_received(&mut report.received, counts, message_bytes),
            }
        }
        if counted.len() > 1 {
            report.flow_bytes = counted.iter().map(|counted| bytes_of(counted, message_bytes)).collect();
        }
        Ok(report)
    }
}

fn bytes_of(counted: &Counted, message_bytes: u32) -> u64 {
    match counted {
        Counted::Sent(counts) => counts.measured * u64::from(message_bytes),
        Counted::Received(counts) => counts.bytes,
    }
}

fn add_sent(sent: &mut Sent, counts: &SentCounts, message_bytes: u32) {
    sent.warmup += counts.omitted;
    sent.measured += counts.measured;
    sent.bytes += counts.measured * u64::from(message_bytes);
    sent.refused += counts.refused;
    sent.first_ns = earlier(sent.first_ns, counts.first_ns);
    sent.last_ns = sent.last_ns.max(counts.last_ns);
}

fn add_received(received: &mut Received, counts: &ReceivedCounts, message_bytes: u32) {
    // Of a stream of bytes, what would be messages of the sender.
    let messages = |bytes: u64| bytes / u64::from(message_bytes.max(1));
    received.warmup += messages(counts.omitted_bytes);
    received.measured += messages(counts.bytes);
    received.bytes += counts.bytes;
    received.duplicates += counts.duplicates;
    received.reordered += counts.reordered;
    received.strays += counts.strays;
    received.first_ns = earlier(received.first_ns, counts.first_ns);
    received.last_ns = received.last_ns.max(counts.last_ns);
}

/// The earlier of two times, of which 0 is none.
fn earlier(one: u64, two: u64) -> u64 {
    match (one, two) {
        (0, time) | (time, 0) => time,
        (one, two) => one.min(two),
    }
}
