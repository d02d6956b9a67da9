//! A stream of TCP over two hops, beside the airtime model of its segments and acknowledgements.

use crate::medium::tests::senders::{data, goodput, settings};
use crate::medium::{Event, FrameId, Medium, MediumSettings};
use stacklab_model::wifi::{AirtimeCost, Role, Security, WifiConfig, mpdu_bytes};
use stacklab_model::{Cell, Family, SizeOf, Transport};
use std::collections::HashMap;

const PAYLOAD: u32 = 1408;
/// Segments on their way at most: less than the access point's queue holds.
const WINDOW: u64 = 100;
const END_NS: u64 = 10_000_000_000;

/// What a frame is of.
#[derive(Clone, Copy)]
enum FrameContent {
    Segment,
    /// For so many segments.
    Acknowledgement(u64),
}

fn count_bytes(part: FrameContent) -> u32 {
    let headers = Family::Ipv4.header_bytes() + Transport::Tcp.header_bytes();
    match part {
        FrameContent::Segment => mpdu_bytes(Security::Wpa2, headers + PAYLOAD),
        FrameContent::Acknowledgement(_) => mpdu_bytes(Security::Wpa2, headers),
    }
}

/// A stream's Mbit/s, and how many of its acknowledgements shared an exchange. The receiver acknowledges each second
/// segment, or once what has arrived together.
fn stream(frames: u32, each_second: bool) -> (f64, f64) {
    let mut medium = Medium::new(MediumSettings { queue_frames: 150, ..settings(frames) }, 5).unwrap();
    let [access_point, sender, receiver] =
        [Role::AccessPoint, Role::Station, Role::Station].map(|role| medium.add(role));
    let mut parts: HashMap<FrameId, FrameContent> = HashMap::new();
    let mut flying = 0;
    let mut arrived = 0;
    let mut unacknowledged = 0;
    let mut now_ns = 0;
    loop {
        let mut out = Vec::new();
        let together = arrived;
        while let Some(event) = medium.poll(now_ns) {
            let Event::Delivered { frame, to, .. } = event else { continue };
            match (parts[&frame], to) {
                (part @ FrameContent::Segment, to) if to == access_point => {
                    out.push((access_point, receiver, part))
                }
                (part, to) if to == access_point => out.push((access_point, sender, part)),
                (FrameContent::Segment, _) => arrived += 1,
                (FrameContent::Acknowledgement(segments), _) => flying -= segments,
            }
        }
        unacknowledged += arrived - together;
        let segments = if each_second { 2 } else { unacknowledged.max(1) };
        while unacknowledged >= segments {
            unacknowledged -= segments;
            out.push((receiver, access_point, FrameContent::Acknowledgement(segments)));
        }
        while flying < WINDOW {
            flying += 1;
            out.push((sender, access_point, FrameContent::Segment));
        }
        for (from, to, part) in out {
            let id = parts.len() as u64;
            parts.insert(FrameId(id), part);
            medium.submit(now_ns, data(id, from, to, count_bytes(part))).unwrap();
        }
        match medium.next_ns().filter(|at_ns| *at_ns < END_NS) {
            Some(next_ns) => now_ns = next_ns,
            None => break,
        }
    }
    let acknowledging = medium.node(receiver);
    let shared = acknowledging.frames_sent as f64 / acknowledging.transmissions as f64;
    (goodput(arrived, PAYLOAD, END_NS), shared)
}

#[test]
fn tcp_has_what_its_acknowledgements_leave() {
    println!("Mbit/s of TCP over two hops: the model with acknowledgements, and without; medium");
    let cell = Cell::new(Family::Ipv4, Transport::Tcp, SizeOf::Payload, PAYLOAD);
    for frames in [1, 8, 64] {
        let mut network = WifiConfig::default();
        network.settings.aggregation.frames = frames;
        let cost = AirtimeCost::of(&cell, &network).unwrap();
        let most = cost.clone().at_least().goodput();
        for each_second in [true, false] {
            let (found, shared) = stream(frames, each_second);
            let of = if each_second { "each second segment" } else { "what arrives together" };
            println!(
                "{frames:2} frames, an acknowledgement for {of}: {:6.2} {most:6.2}; {found:6.2}, {shared:.1} an exchange",
                cost.goodput()
            );
            // Backoffs of several senders overlap, and acknowledgements share exchanges. Where the access point's queue
            // has room for few aggregates, they are shorter.
            assert!(found < most, "{frames} {each_second}: {found}, at most {most}");
            if each_second == (frames == 1) {
                assert!(found > 0.9 * cost.goodput(), "{frames}: {found}, expected {}", cost.goodput());
            }
        }
    }
}
