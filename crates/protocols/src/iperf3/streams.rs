//! The streams of a test: their settings for the engine, and their counts for the peer.

use crate::iperf3::datagram::Header;
use crate::iperf3::{Parameters, StreamResult, stream_id};
use stacklab_model::{Cell, Family, Length, Pacing, Probe, ProbeSpec, SizeOf, Transport, TrialSpec, Tuning};
use stacklab_traffic::foreign::{Counted, ForeignFormat, Numbered, Stream, Way};
use std::sync::Arc;

pub(super) fn format(parameters: &Parameters) -> ForeignFormat {
    match (parameters.transport, parameters.long_counters) {
        (Transport::Tcp, _) => ForeignFormat::Bytes,
        (Transport::Udp, true) => ForeignFormat::Datagrams {
            write: |own, room| header(own).write(8, room),
            read: |message| Header::read(8, message).map(numbered),
        },
        (Transport::Udp, false) => ForeignFormat::Datagrams {
            write: |own, room| header(own).write(4, room),
            read: |message| Header::read(4, message).map(numbered),
        },
    }
}

/// iperf3 counts from 1.
fn header(own: Numbered) -> Header {
    Header { sent_ns: own.sent_ns, number: own.sequence + 1 }
}

fn numbered(header: Header) -> Numbered {
    Numbered { sequence: header.number - 1, sent_ns: header.sent_ns }
}

/// The engine's parameters of one stream: a block per call, as iperf3 sends them.
pub(super) fn stream_spec(parameters: &Parameters, family: Family, length: Length) -> TrialSpec {
    let Parameters { transport, block_bytes, bandwidth, omit_s, .. } = *parameters;
    let pacing = if bandwidth > 0 {
        Pacing::Schedule(bandwidth as f64 / 8.0 / f64::from(block_bytes))
    } else {
        Pacing::Flood
    };
    let probe = ProbeSpec {
        probe: Probe::Stream,
        pacing,
        length,
        warmup_ns: u64::from(omit_s) * 1_000_000_000,
        interval_ns: 1_000_000_000,
        metrics: Vec::new(),
    };
    let mut spec = TrialSpec::new(0, &Cell::new(family, transport, SizeOf::Write, block_bytes), probe);
    let is_tcp = transport == Transport::Tcp;
    spec.tuning = Tuning {
        send_buffer: parameters.window,
        receive_buffer: parameters.window,
        mss: parameters.mss.filter(|_| is_tcp),
        nodelay: is_tcp.then_some(parameters.nodelay),
        congestion_control: parameters.congestion.clone().filter(|_| is_tcp),
        dscp: (parameters.tos > 0).then_some(parameters.tos >> 2),
        ..Tuning::default()
    };
    spec
}

/// Which way each stream of a test goes, seen from the client, in the order in which it opens them.
pub(super) fn ways(parameters: &Parameters) -> Vec<Way> {
    let Parameters { parallel, reverse, bidirectional, .. } = *parameters;
    let of = |way, is_there: bool| vec![way; if is_there { parallel as usize } else { 0 }];
    [of(Way::Send, bidirectional || !reverse), of(Way::Receive, bidirectional || reverse)].concat()
}

/// The counts of streams for the peer. The measured part begins at `begin_ns`.
pub(super) fn results_of(
    streams: &[(Arc<Stream>, Way)],
    counted: &[Counted],
    block_bytes: u32,
    begin_ns: u64,
) -> Vec<StreamResult> {
    let seconds = |last_ns: u64| last_ns.saturating_sub(begin_ns) as f64 / 1e9;
    let result = |(place, ((stream, _), counted)): (usize, (&(Arc<Stream>, Way), &Counted))| match counted {
        Counted::Sent(counts) => StreamResult {
            id: stream_id(place),
            bytes: counts.measured * u64::from(block_bytes),
            retransmits: stream.retransmits(),
            packets: counts.omitted + counts.measured,
            omitted_packets: counts.omitted,
            seconds: seconds(counts.last_ns),
            ..StreamResult::default()
        },
        Counted::Received(counts) => StreamResult {
            id: stream_id(place),
            bytes: counts.bytes,
            jitter_s: counts.jitter_ns / 1e9,
            errors: counts.lost,
            omitted_errors: counts.omitted_lost,
            packets: counts.next,
            omitted_packets: counts.omitted_next,
            seconds: seconds(counts.last_ns),
            ..StreamResult::default()
        },
    };
    streams.iter().zip(counted).enumerate().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_has_the_rate_and_size_that_the_client_names() {
        let parameters = Parameters {
            bandwidth: 8_000_000,
            tos: 0xb8,
            mss: Some(1000),
            omit_s: 1,
            ..Parameters::new(Transport::Tcp, 1000)
        };
        let spec = stream_spec(&parameters, Family::Ipv6, Length::Time(5));
        assert_eq!((spec.probe.pacing, spec.message_bytes), (Pacing::Schedule(1000.0), 1000));
        assert_eq!(
            (spec.tuning.dscp, spec.tuning.mss, spec.tuning.nodelay),
            (Some(46), Some(1000), Some(false))
        );
        let udp = Parameters::new(Transport::Udp, 1000);
        assert_eq!(stream_spec(&udp, Family::Ipv4, Length::Time(5)).tuning, Tuning::default());
    }

    #[test]
    fn the_first_datagram_has_number_one() {
        for long_counters in [true, false] {
            let parameters = Parameters { long_counters, ..Parameters::new(Transport::Udp, 100) };
            let ForeignFormat::Datagrams { write, read } = format(&parameters) else { panic!() };
            let (mut message, first) = ([0; 100], Numbered { sequence: 0, sent_ns: 2_000 });
            write(first, &mut message);
            assert_eq!(message[if long_counters { 15 } else { 11 }], 1);
            assert_eq!(read(&message), Some(first));
        }
    }
}
