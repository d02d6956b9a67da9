//! Checks that every size can be sent in every meaning of size, transport and family, before the campaign starts.

use super::factors::Factors;
use crate::diagnostics::{Problem, Problems};
use stacklab_model::{
    Cell, ETHERNET_HEADER_BYTES, Factor, Family, HEADER_BYTES, Mechanism, SizeOf, Transport, payload_of_frame,
};

/// Bytes of the Ethernet header and frame check sequence around an IP packet.
const FRAMING_BYTES: u32 = ETHERNET_HEADER_BYTES + 4;

/// Adds the sizes that cannot be sent. A size that fits the minimum MTU fits all.
pub(super) fn check(factors: &Factors, problems: &mut Problems) {
    let mtu = factors.least_mtu.as_ref().map(|mtu| mtu.value);
    let mechanisms: Vec<Mechanism> = match factors.setting(Factor::Mechanism) {
        Some(setting) => setting.levels.iter().filter_map(|level| level.value.parse().ok()).collect(),
        None => vec![Mechanism::Native],
    };
    for size_of in &factors.size_of {
        for transport in &factors.transport {
            if size_of.value == SizeOf::Frame && transport.value != Transport::Udp {
                let title = format!("`size_of = {}` is not possible with {}", size_of.value, transport.value);
                problems.add(
                    Problem::at(size_of.place.clone(), title, "TCP chooses its own segment sizes")
                        .related(transport.place.clone(), "together with this")
                        .help("use transport = [\"udp\"], or size_of = [\"payload\"]"),
                );
                continue;
            }
            for size in &factors.size {
                for family in &factors.family {
                    let arm =
                        SizeArm { family: family.value, transport: transport.value, size_of: size_of.value };
                    // A packet must fit what each mechanism that carries it leaves of the link.
                    let mtus =
                        mechanisms.iter().filter_map(|of| of.leaves(family.value, mtu.unwrap_or(u32::MAX)));
                    let mtu = mtu.and(mtus.min());
                    if let Some((title, expected)) = arm.misfit(size.value, mtu) {
                        problems.add(Problem::at(size.place.clone(), title, expected));
                    }
                }
            }
        }
    }
}

struct SizeArm {
    family: Family,
    transport: Transport,
    size_of: SizeOf,
}

impl SizeArm {
    /// Why a size cannot be sent, and what was expected.
    fn misfit(&self, size: u32, mtu: Option<u32>) -> Option<(String, String)> {
        let SizeArm { family, transport, size_of } = *self;
        let headers = family.header_bytes() + transport.header_bytes();
        let payload = Cell::new(family, transport, size_of, size).payload_bytes();
        if payload < HEADER_BYTES {
            return Some(self.too_small(size, payload));
        }
        if transport == Transport::Udp && payload > family.largest_packet_bytes() - headers {
            return Some((
                format!("a UDP datagram over {family} cannot hold {size} bytes"),
                format!("expected at most {}", family.largest_packet_bytes() - headers),
            ));
        }
        let mtu = mtu?;
        match size_of {
            SizeOf::Frame if size > mtu + FRAMING_BYTES => Some((
                format!("a frame of {size} bytes does not fit the link's MTU of {mtu}"),
                format!(
                    "expected at most {} (MTU and {FRAMING_BYTES} bytes of Ethernet)",
                    mtu + FRAMING_BYTES
                ),
            )),
            SizeOf::Payload if transport == Transport::Tcp && headers + size > mtu => Some((
                format!("{size} bytes do not fit one TCP segment over {family} at an MTU of {mtu}"),
                format!("expected at most {}, or size_of = [\"write\"]", mtu - headers),
            )),
            SizeOf::Payload | SizeOf::Write | SizeOf::Frame => None,
        }
    }

    fn too_small(&self, size: u32, payload: u32) -> (String, String) {
        let SizeArm { family, transport, size_of } = *self;
        if size_of != SizeOf::Frame {
            return (
                format!("a message of {size} bytes is smaller than the probe's header"),
                format!("expected at least {HEADER_BYTES}"),
            );
        }
        let largest = u32::MAX;
        let around = largest - payload_of_frame(family, transport, largest).unwrap_or(largest);
        (
            format!(
                "a frame of {size} bytes leaves {payload} bytes behind the {family} and {transport} headers, and the probe's header needs {HEADER_BYTES}"
            ),
            format!("expected at least {} for {family}", around + HEADER_BYTES),
        )
    }
}
