//! Saturated senders on the simulated medium, beside the closed formula and Bianchi's model.

use crate::medium::tests::senders::{SIZES, data, frame_bytes, goodput, saturate, settings};
use crate::medium::{Event, Medium, MediumSettings, NodeId};
use stacklab_model::Family;
use stacklab_model::wifi::{AccessCategory, Airtime, Band, Bianchi, Edca, Role, Saturation, Security};

const SECOND: u64 = 1_000_000_000;
const BEST_EFFORT: fn(Role) -> Edca = |role| Edca::default_of(role, AccessCategory::BestEffort);

/// Stations that send to the access point, and what it received of them: Mbit/s.
fn stations(count: u32, frames: u32, bytes: u32, payload: u32, seed: u64) -> (f64, Medium, Airtime) {
    let mut medium = Medium::new(settings(frames), seed).unwrap();
    let access_point = medium.add(Role::AccessPoint);
    let senders: Vec<(NodeId, NodeId)> =
        (0..count).map(|_| (medium.add(Role::Station), access_point)).collect();
    let mut delivered = 0;
    let end_ns = 10 * SECOND;
    saturate(&mut medium, &senders, bytes, end_ns, |_, event| {
        delivered += u64::from(matches!(event, Event::Delivered { .. }));
    });
    let airtime = medium.airtime(end_ns);
    (goodput(delivered, payload, airtime.elapsed_ns()), medium, airtime)
}

/// Bianchi's Mbit/s of all senders that are like this one.
fn bianchi(senders: u32, alone: Saturation, payload: u32) -> f64 {
    let model = Bianchi::new(senders, BEST_EFFORT(Role::Station));
    let rate = model.exchanges_per_second(alone.exchange, alone.aifs_ns, Band::Ghz2.slot_ns());
    rate * f64::from(alone.frames) * f64::from(payload) * 8.0 / 1e6
}

#[test]
fn one_station_fits_the_formula_within_one_per_cent() {
    println!("Mbit/s of UDP payload, formula and medium");
    for security in [Security::Open, Security::Wpa2] {
        for family in [Family::Ipv4, Family::Ipv6] {
            for frames in [1, 8, 64] {
                let mut line = format!("{security} {family} {frames:2}:");
                for payload in SIZES {
                    let bytes = frame_bytes(security, family, payload);
                    let formula =
                        settings(frames).radio.saturation(BEST_EFFORT(Role::Station), bytes).goodput(payload);
                    let (found, medium, airtime) = stations(1, frames, bytes, payload, 7);
                    let apart = 100.0 * (found / formula - 1.0);
                    line += &format!("  {formula:.2} {found:.2} ({apart:+.2} %)");
                    assert!(
                        apart.abs() < 1.0,
                        "{payload} B, {security} {family} {frames}: {found} {formula}"
                    );
                    assert_eq!((airtime.collision_ns, airtime.idle_ns), (0, 0));
                    assert_eq!(medium.node(NodeId(1)).retries, 0);
                }
                println!("{line}");
            }
        }
    }
}

#[test]
fn several_stations_fit_bianchi_within_three_per_cent() {
    let edca = BEST_EFFORT(Role::Station);
    println!("Mbit/s of UDP payload and share of collisions, Bianchi and medium");
    for stations_count in [2, 3, 5] {
        for frames in [8, 64] {
            for payload in SIZES {
                let bytes = frame_bytes(Security::Wpa2, Family::Ipv4, payload);
                let alone = settings(frames).radio.saturation(edca, bytes);
                let model = Bianchi::new(stations_count, edca);
                let expected = bianchi(stations_count, alone, payload);
                let (found, medium, airtime) = stations(stations_count, frames, bytes, payload, 11);
                let nodes = (1..=stations_count as usize).map(|node| medium.node(NodeId(node)));
                let (sent, collided) =
                    nodes.fold((0, 0), |sum, node| (sum.0 + node.transmissions, sum.1 + node.collisions));
                let collision = collided as f64 / sent as f64;
                let apart = 100.0 * (found / expected - 1.0);
                println!(
                    "{stations_count} stations, {frames:2} frames, {payload:4} B: {expected:6.2} {found:6.2} \
                     ({apart:+.2} %), collisions {:.4} {collision:.4}",
                    model.collision
                );
                assert!(apart.abs() < 3.0, "{found} {expected}");
                assert!((collision - model.collision).abs() < 0.02, "{collision} {}", model.collision);
                assert_eq!(airtime.idle_ns, 0);
            }
        }
    }
}

/// The study's path: station, access point, station, on one channel. Both hops are saturated: two senders, of whom each
/// message takes two exchanges. What the access point's queue does not hold was sent in vain: the more, the fewer
/// aggregates the queue has room for.
#[test]
fn two_hops_carry_half_of_two_senders_less_drops() {
    println!(
        "Mbit/s of UDP payload over two hops: half of the formula, of Bianchi; medium, with drops counted"
    );
    let edca = BEST_EFFORT(Role::Station);
    for (frames, payload) in [(8, 128), (8, 1408), (10, 1408), (64, 128), (64, 1408)] {
        for security in [Security::Open, Security::Wpa2] {
            let bytes = frame_bytes(security, Family::Ipv4, payload);
            let settings = MediumSettings { queue_frames: 150, ..settings(frames) };
            let alone = settings.radio.saturation(edca, bytes);
            let two = bianchi(2, alone, payload) / 2.0;
            let mut medium = Medium::new(settings, 5).unwrap();
            let [access_point, sender, receiver] =
                [Role::AccessPoint, Role::Station, Role::Station].map(|role| medium.add(role));
            let mut id = 1 << 40;
            let mut arrived = 0;
            let mut dropped = 0;
            let end_ns = 10 * SECOND;
            saturate(&mut medium, &[(sender, access_point)], bytes, end_ns, |medium, event| match event {
                Event::Delivered { at_ns, to, .. } if *to == access_point => {
                    id += 1;
                    let forwarded = medium.submit(*at_ns, data(id, access_point, receiver, bytes));
                    dropped += u64::from(forwarded.is_err());
                }
                Event::Delivered { .. } => arrived += 1,
                _ => {}
            });
            let found = goodput(arrived, payload, end_ns);
            // Each dropped frame took half of the time that one takes over both hops.
            let carried = found + goodput(dropped, payload, end_ns) / 2.0;
            let apart = 100.0 * (carried / two - 1.0);
            println!(
                "{security} {frames:2} frames, {payload:4} B: {:6.2} {two:6.2}; {found:6.2} {carried:6.2} ({apart:+.2} %)",
                alone.goodput(payload) / 2.0
            );
            assert!(apart.abs() < 3.0, "{security} {frames} {payload}: {found} {carried} {two}");
            assert_eq!(medium.node(access_point).queue_drops, dropped);
        }
    }
}
