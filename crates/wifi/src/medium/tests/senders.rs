//! Senders that drive a medium.

use crate::medium::{Event, Frame, FrameId, FrameKind, Medium, MediumSettings, NodeId, Receiver};
use stacklab_model::wifi::{AccessCategory, Aggregation, Radio, RadioSettings, Security, mpdu_bytes};
use stacklab_model::{Family, Transport};

/// The payload sizes of the study kolahi2011wlan.
pub(crate) const SIZES: [u32; 6] = [128, 384, 640, 896, 1152, 1408];

/// MCS 15 at 40 MHz with the short guard interval, A-MPDUs of so many frames, and queues that hold two of them.
pub(crate) fn settings(frames: u32) -> MediumSettings {
    let aggregation = Aggregation { frames, ..Aggregation::default() };
    let radio = Radio::new(RadioSettings { aggregation, ..RadioSettings::default() }).unwrap();
    MediumSettings { queue_frames: 2 * frames as usize, ..MediumSettings::new(radio) }
}

/// Bytes of the frame with a UDP message.
pub(crate) fn frame_bytes(security: Security, family: Family, payload: u32) -> u32 {
    mpdu_bytes(security, family.header_bytes() + Transport::Udp.header_bytes() + payload)
}

/// A best-effort data frame of a block acknowledgement session.
pub(crate) fn data(id: u64, transmitter: NodeId, receiver: NodeId, bytes: u32) -> Frame {
    Frame {
        id: FrameId(id),
        transmitter,
        receiver: Receiver::Node(receiver),
        bytes,
        kind: FrameKind::Aggregated { tid: 0 },
        category: AccessCategory::BestEffort,
    }
}

/// Runs until `end_ns`, with queues of `senders` that never empty: each sends frames of `bytes` to its receiver. Gives
/// each event to `see`, which may submit frames.
pub(crate) fn saturate(
    medium: &mut Medium,
    senders: &[(NodeId, NodeId)],
    bytes: u32,
    end_ns: u64,
    mut see: impl FnMut(&mut Medium, &Event),
) {
    let mut id = fill(medium, senders, bytes, 0, 0);
    while let Some(now_ns) = medium.next_ns().filter(|at_ns| *at_ns < end_ns) {
        while let Some(event) = medium.poll(now_ns) {
            see(medium, &event);
        }
        id = fill(medium, senders, bytes, now_ns, id);
    }
}

/// Fills the queues of all senders with frames from this number on. Returns the next number.
fn fill(medium: &mut Medium, senders: &[(NodeId, NodeId)], bytes: u32, now_ns: u64, first: u64) -> u64 {
    let mut id = first;
    for (from, to) in senders {
        while medium.submit(now_ns, data(id, *from, *to, bytes)).is_ok() {
            id += 1;
        }
    }
    id
}

/// Mbit/s of payload of so many frames in this time.
pub(crate) fn goodput(frames: u64, payload: u32, end_ns: u64) -> f64 {
    8e3 * frames as f64 * f64::from(payload) / end_ns as f64
}
