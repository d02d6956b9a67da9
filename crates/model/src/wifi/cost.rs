//! What a channel carries: one sender that always has a frame, and the airtime of a cell's messages from host to host.

use crate::wifi::{
    AccessCategory, Aggregate, Attachment, Edca, FrameExchange, Radio, Role, WifiConfig, mpdu_bytes,
};
use crate::{Cell, Transport};

/// What one saturated sender carries on a channel that it has alone: in each cycle AIFS, the mean backoff, and one
/// exchange with as many frames as its limits allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saturation {
    pub frames: u32,
    pub psdu_bytes: u32,
    pub aifs_ns: u64,
    /// Mean backoff: half of CWmin.
    pub backoff_ns: u64,
    pub exchange: FrameExchange,
}

impl Saturation {
    pub fn cycle_ns(&self) -> u64 {
        self.aifs_ns + self.backoff_ns + self.exchange.total_ns()
    }

    /// Payload rate in Mbit/s; over two hops of one channel half of it is left.
    pub fn goodput(&self, payload_bytes: u32) -> f64 {
        8e3 * f64::from(self.frames) * f64::from(payload_bytes) / self.cycle_ns() as f64
    }
}

impl Radio {
    /// One saturated sender with frames of one size, in an A-MPDU of as many as the limits allow.
    pub fn saturation(&self, edca: Edca, mpdu_bytes: u32) -> Saturation {
        self.cycle(edca, mpdu_bytes, u32::MAX)
    }

    pub(super) fn cycle(&self, edca: Edca, mpdu_bytes: u32, at_most: u32) -> Saturation {
        let mut aggregate = Aggregate::new(self);
        while aggregate.push(mpdu_bytes) && aggregate.frames() < at_most {}
        let band = self.settings().band;
        Saturation {
            frames: aggregate.frames(),
            psdu_bytes: aggregate.psdu_bytes(),
            aifs_ns: edca.aifs_ns(band),
            backoff_ns: u64::from(edca.cw_min) * band.slot_ns() / 2,
            exchange: self.data(&aggregate),
        }
    }
}

/// Hops on the channel: from a station to the access point, and on to the other station if the receiver is one.
fn hops(network: &WifiConfig) -> f64 {
    match network.settings.receiver {
        Attachment::Station => 2.0,
        Attachment::Wired => 1.0,
    }
}

/// Of segments that arrive one by one (RFC 5681, section 4.2). Those of an A-MPDU have one acknowledgement.
const SEGMENTS_PER_ACK: f64 = 2.0;

/// The airtime of one message of a cell over all hops, each as of a saturated sender without collisions. TCP
/// acknowledges each A-MPDU of segments, or each second segment without aggregation, in separate exchanges.
#[derive(Debug, Clone, PartialEq)]
pub struct AirtimeCost {
    pub payload_bytes: f64,
    pub airtime_ns: f64,
    /// The part of it that TCP's acknowledgements take, at most: they may share exchanges, or be fewer.
    pub acknowledgements_ns: f64,
    pub because: String,
}

impl AirtimeCost {
    /// The airtime of a cell's messages, on a network that is the cell's own ([`WifiConfig::of`]).
    pub fn of(cell: &Cell, network: &WifiConfig) -> Result<Self, String> {
        let Cell { family, transport, .. } = *cell;
        let radio = network.settings.radio()?;
        if network.settings.stations > 0 {
            return Err(
                "other stations contend for the channel, which the airtime model does not cover".to_owned()
            );
        }
        if network.settings.neighbour_lifetime_ns.is_some() {
            return Err("hosts ask for addresses, which the airtime model does not cover".to_owned());
        }
        let headers = family.header_bytes() + transport.header_bytes();
        let most = network.settings.mtu.saturating_sub(headers);
        let (unit, joined) = cell.wire_unit(most);
        let payload = cell.payload_bytes();
        if unit > most {
            return Err(format!(
                "a message of {payload} bytes has several packets, which the airtime model does not cover"
            ));
        }
        let data = cycle(&radio, network, unit + headers, u32::MAX);
        let frames = f64::from(data.frames);
        let mut acks_ns = 0.0;
        if transport == Transport::Tcp {
            let acks = frames / frames.max(SEGMENTS_PER_ACK);
            acks_ns = acks * cycle(&radio, network, headers, 1).cycle_ns() as f64;
        }
        let unit_ns = hops(network) * (data.cycle_ns() as f64 + acks_ns) / frames;
        let joined = if joined { " (writes joined to full segments)" } else { "" };
        let because = format!("{family} {unit} B in {:.1} us of air{joined}", unit_ns / 1e3);
        let payload_bytes = f64::from(payload);
        let units = payload_bytes / f64::from(unit);
        let acknowledgements_ns = units * hops(network) * acks_ns / frames;
        Ok(AirtimeCost { payload_bytes, airtime_ns: units * unit_ns, acknowledgements_ns, because })
    }

    /// Without acknowledgements: no stream is faster.
    pub fn at_least(self) -> Self {
        let airtime_ns = self.airtime_ns - self.acknowledgements_ns;
        AirtimeCost { airtime_ns, acknowledgements_ns: 0.0, ..self }
    }

    pub fn messages_per_second(&self) -> f64 {
        1e9 / self.airtime_ns
    }

    pub fn goodput(&self) -> f64 {
        8e3 * self.payload_bytes / self.airtime_ns
    }
}

pub(super) fn cycle(radio: &Radio, network: &WifiConfig, packet_bytes: u32, at_most: u32) -> Saturation {
    let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
    radio.cycle(edca, mpdu_bytes(network.security, packet_bytes), at_most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::{Aggregation, RadioSettings, Security};
    use crate::{Family, SizeOf};

    const SIZES: [u32; 6] = [128, 384, 640, 896, 1152, 1408];

    fn saturation(frames: u32, family: Family, security: Security, payload: u32) -> Saturation {
        let aggregation = Aggregation { frames, ..Aggregation::default() };
        let radio = Radio::new(RadioSettings { aggregation, ..RadioSettings::default() }).unwrap();
        let packet = family.header_bytes() + Transport::Udp.header_bytes() + payload;
        let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
        radio.saturation(edca, mpdu_bytes(security, packet))
    }

    /// Mbit/s of UDP payload at MCS 15, 40 MHz, short guard interval. Worked out from the formula in docs/wifi.md by
    /// other means than this code.
    #[test]
    fn goodput_agrees_with_the_worked_table() {
        use Family::*;
        use Security::*;
        let table = [
            (Open, Ipv4, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "48.03"]),
            (Open, Ipv4, 8, ["30.74", "81.24", "115.54", "139.69", "159.41", "173.79"]),
            (Open, Ipv4, 64, ["92.24", "200.11", "231.00", "247.37", "253.02", "255.67"]),
            (Open, Ipv6, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Open, Ipv6, 8, ["30.74", "80.18", "114.25", "138.34", "158.05", "172.46"]),
            (Open, Ipv6, 64, ["92.24", "193.80", "225.29", "242.66", "248.76", "251.94"]),
            (Wpa2, Ipv4, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Wpa2, Ipv4, 8, ["30.74", "81.24", "114.25", "138.34", "158.05", "172.46"]),
            (Wpa2, Ipv4, 64, ["92.24", "195.34", "226.53", "243.69", "249.28", "252.46"]),
            (Wpa2, Ipv6, 1, ["5.06", "14.59", "23.43", "31.65", "39.98", "47.23"]),
            (Wpa2, Ipv6, 8, ["30.74", "80.18", "112.99", "138.34", "156.70", "172.46"]),
            (Wpa2, Ipv6, 64, ["92.24", "188.59", "221.63", "239.62", "245.70", "249.86"]),
        ];
        for (security, family, frames, row) in table {
            for (payload, expected) in SIZES.into_iter().zip(row) {
                let found = saturation(frames, family, security, payload);
                let goodput = format!("{:.2}", found.goodput(payload));
                assert_eq!(goodput, expected, "{payload} B, {security} {family}, {frames}: {found:?}");
            }
        }
    }

    #[test]
    fn long_frames_fill_an_ampdu_by_bytes() {
        let frames = SIZES.map(|payload| saturation(64, Family::Ipv4, Security::Wpa2, payload).frames);
        assert_eq!(frames, [64, 64, 64, 64, 52, 43]);
    }

    #[test]
    fn a_cycle_is_the_sum_of_its_parts() {
        let found = saturation(8, Family::Ipv4, Security::Wpa2, 1408);
        // AIFS, 7.5 slots, preamble with the signal extension, 81 symbols, SIFS, BlockAck with the extension.
        assert_eq!(found.cycle_ns(), 37_000 + 67_500 + 46_000 + 324_000 + 10_000 + 38_000);
    }

    fn cost(family: Family, transport: Transport, size: u32, frames: u32) -> AirtimeCost {
        let mut cell = Cell::new(family, transport, SizeOf::Payload, size);
        cell.set("wifi.aggregation.frames".parse().unwrap(), &frames.to_string()).unwrap();
        AirtimeCost::of(&cell, &WifiConfig::default().of(&cell)).unwrap()
    }

    #[test]
    fn udp_has_half_of_what_one_station_carries() {
        // The table of docs/wifi.md.
        for (family, size, frames, expected) in [
            (Family::Ipv4, 1408, 8, "172.46"),
            (Family::Ipv6, 384, 8, "80.18"),
            (Family::Ipv4, 384, 8, "81.24"),
            (Family::Ipv6, 384, 64, "188.59"),
        ] {
            let found = cost(family, Transport::Udp, size, frames);
            assert_eq!(format!("{:.2}", 2.0 * found.goodput()), expected, "{found:?}");
        }
        let found = cost(Family::Ipv4, Transport::Udp, 1408, 8);
        assert_eq!(found.because, "ipv4 1408 B in 130.6 us of air");
    }

    #[test]
    fn wired_receiver_has_one_hop_and_contenders_no_model() {
        let mut cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Payload, 1408);
        let usual = WifiConfig::default();
        let of = |cell: &Cell| AirtimeCost::of(cell, &usual.of(cell));
        let both = of(&cell).unwrap();
        cell.set("wifi.receiver".parse().unwrap(), "wired").unwrap();
        assert_eq!(2.0 * of(&cell).unwrap().airtime_ns, both.airtime_ns);
        cell.set("wifi.stations".parse().unwrap(), "1").unwrap();
        assert!(of(&cell).unwrap_err().contains("other stations contend"));
    }

    #[test]
    fn acknowledgements_of_tcp_take_air() {
        // Eight segments of 1408 + 32 + 20 bytes are frames of 1514 bytes and delimiters, padded to 1520: 12,158 bytes
        // without the last padding, 97,286 bits, 91 symbols, answered by a BlockAck. Their acknowledgement is a frame
        // of 106 bytes, 870 bits, one symbol, answered by an ACK of 28 us, SIFS and extension. Two hops of each.
        let segments = add_cycle(91.0, 48.0);
        let acknowledgement = add_cycle(1.0, 44.0);
        let found = cost(Family::Ipv4, Transport::Tcp, 1408, 8);
        let expected = 2.0 * (segments + acknowledgement) / 8.0;
        assert!((found.airtime_ns / 1e3 - expected).abs() < 1e-6, "{found:?}, not {expected}");
        assert_eq!(format!("{:.2}", found.goodput()), "62.15");
        let least = found.at_least();
        assert!((least.airtime_ns / 1e3 - 2.0 * segments / 8.0).abs() < 1e-6, "{least:?}");
        assert_eq!(format!("{:.2}", least.goodput()), "85.58");
        // Without aggregation every second segment's acknowledgement has an exchange of its own.
        let single = cost(Family::Ipv4, Transport::Tcp, 1408, 1);
        let with = cost(Family::Ipv4, Transport::Udp, 1408, 1);
        assert!(single.airtime_ns > 1.3 * with.airtime_ns && single.airtime_ns < 1.5 * with.airtime_ns);
        // UDP has none.
        assert_eq!(with.clone().at_least(), with);
    }

    /// The parts of a cycle with these symbols and this response, microseconds.
    fn add_cycle(symbols: f64, response: f64) -> f64 {
        37.0 + 67.5 + 46.0 + 4.0 * (0.9 * symbols).ceil() + response
    }

    #[test]
    fn joined_writes_are_full_segments() {
        let [short, long] = [64, 8192].map(|size| {
            let cell = Cell::new(Family::Ipv6, Transport::Tcp, SizeOf::Write, size);
            AirtimeCost::of(&cell, &WifiConfig::default()).unwrap()
        });
        assert!((short.goodput() - long.goodput()).abs() < 1e-9);
        assert!(short.because.contains("ipv6 1428 B") && short.because.contains("joined"));
    }

    #[test]
    fn what_has_several_packets_is_said_and_not_computed() {
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Write, 1473);
        let reason = AirtimeCost::of(&cell, &WifiConfig::default()).unwrap_err();
        assert!(reason.contains("1473 bytes has several packets"), "{reason}");
    }
}
