//! Packets of STAMP.

use crate::Bytes;
use stacklab_protocols::stamp::{Arrived, Codec, ErrorEstimate, Reflector, StampKey, TimeFormat};
use std::net::{Ipv6Addr, SocketAddr};

/// A time of 2026, nanoseconds since 1970.
const NOW: u64 = 1_795_536_000_000_000_000;

/// The first byte chooses a reflector, the next two say what came with the packet, and the rest is the packet.
pub fn stamp(data: &[u8]) {
    let mut data = Bytes(data);
    let chosen = data.number(1);
    let ttl = data.number(1) as u8;
    let traffic_class = data.number(1) as u8;
    let key = StampKey::from_hex(&"5a".repeat(16)).expect("it is a key");
    let codec = Codec::new((chosen & 1 != 0).then_some(key));
    let format = if chosen & 2 == 0 { TimeFormat::Ntp } else { TimeFormat::Ptp };
    let mut reflector =
        Reflector::new(codec.clone(), ErrorEstimate::new(format, Some(chosen)), chosen & 4 != 0);
    let packet = data.0;
    // What a sender reads of any answer.
    if let Some(answer) = codec.read_answer(packet) {
        let _ = answer.error.error_ns();
        for bits in [answer.timestamp, answer.received, answer.sender_timestamp] {
            let _ = answer.error.format.unix_ns(bits, NOW);
        }
        let _ = codec.read_extensions(packet);
    }
    let arrived =
        Arrived { peer: SocketAddr::from((Ipv6Addr::LOCALHOST, 40_009)), unix_ns: NOW, ttl, traffic_class };
    let mut message = packet.to_vec();
    let Some(pending) = reflector.reflect(&mut message, &arrived) else {
        let is_probe = codec.read_probe(packet).is_some() && !codec.is_answer(packet);
        assert!(!is_probe, "a packet of a first session is answered");
        return;
    };
    assert!(pending.code_point < 64);
    reflector.finish(pending, NOW + 1, &mut message);
    assert_eq!(message.len(), packet.len(), "a forged address has no gain");
    let probe = codec.read_probe(packet).expect("it was answered");
    let answer = codec.read_answer(&message).expect("it was written here");
    assert_eq!(
        (answer.sender_sequence, answer.session, answer.sender_ttl),
        (probe.sequence, probe.session, ttl)
    );
    assert_eq!(answer.sender_timestamp, probe.timestamp);
    assert_eq!(answer.error.format, probe.error.format);
    let times = [answer.received, answer.timestamp].map(|bits| probe.error.format.unix_ns(bits, NOW));
    assert_eq!(times, [Some(NOW), Some(NOW + 1)]);
    assert_eq!(answer.sequence, if chosen & 4 != 0 { 0 } else { probe.sequence });
}
