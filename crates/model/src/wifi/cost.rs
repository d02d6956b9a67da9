//! The airtime of a cell's messages from host to host.

use crate::factors::cell::Cell;
use crate::factors::family::{SizeOf, Transport};
use crate::wifi::config::WifiConfig;
use crate::wifi::edca::{AccessCategory, Edca, Role};
use crate::wifi::mpdu::mpdu_bytes;
use crate::wifi::network::Attachment;
use crate::wifi::radio::Radio;
use crate::wifi::saturation::Saturation;

/// Hops on the channel: from a station to the access point, and on to the other station if the receiver is one.
fn hops(network: &WifiConfig) -> f64 {
    match network.settings.receiver {
        Attachment::Station => 2.0,
        Attachment::Wired => 1.0,
    }
}

/// Segments that one acknowledgement is for if they arrive one by one (RFC 5681, section 4.2). Those of an A-MPDU
/// arrive together, and have one.
const SEGMENTS_PER_ACK: f64 = 2.0;

/// The airtime of one message of a cell over all hops, each as of a saturated sender without collisions. TCP has an
/// acknowledgement for each A-MPDU of segments, or for each second segment without aggregation, in an exchange of its
/// own.
#[derive(Debug, Clone, PartialEq)]
pub struct AirtimeCost {
    /// Payload of a message, bytes.
    pub payload_bytes: f64,
    /// Its airtime.
    pub airtime_ns: f64,
    /// The part of it that is acknowledgements of TCP. It may be less: they share exchanges, and are as few as the
    /// receiver likes.
    pub acknowledgements_ns: f64,
    /// How it was computed, in a few words.
    pub because: String,
}

impl AirtimeCost {
    /// The airtime of a cell's messages, on a network that is the cell's own ([`WifiConfig::of`]).
    ///
    /// # Errors
    /// Why such a message is impossible.
    pub fn of(cell: &Cell, network: &WifiConfig) -> Result<Self, String> {
        let Cell { family, transport, size_of, .. } = *cell;
        let mtu = network.settings.mtu;
        let radio = network.settings.radio().map_err(|error| error.to_string())?;
        if network.settings.stations > 0 {
            return Err(
                "other stations contend for the channel, which the airtime model does not cover".to_owned()
            );
        }
        if network.settings.neighbour_lifetime_ns.is_some() {
            return Err("hosts ask for addresses, which the airtime model does not cover".to_owned());
        }
        let headers = family.header_bytes() + transport.header_bytes();
        let most = mtu.saturating_sub(headers);
        let joined = size_of == SizeOf::Write && transport == Transport::Tcp;
        let mss =
            cell.settings.tuning.mss.map(|mss| (mss + 20).saturating_sub(transport.header_bytes()).max(1));
        let payload = cell.payload_bytes();
        let unit = if joined { mss.map_or(most, |mss| mss.min(most)) } else { payload };
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

    /// Maximum messages per second.
    pub fn messages_per_second(&self) -> f64 {
        1e9 / self.airtime_ns
    }

    /// Maximum payload rate, Mbit/s.
    pub fn goodput(&self) -> f64 {
        8e3 * self.payload_bytes / self.airtime_ns
    }
}

/// The cycle of packets of these bytes, at most this many together.
fn cycle(radio: &Radio, network: &WifiConfig, packet_bytes: u32, at_most: u32) -> Saturation {
    let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
    radio.cycle(edca, mpdu_bytes(network.security, packet_bytes), at_most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors::family::Family;

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
    fn a_receiver_on_a_wire_has_one_hop_and_other_stations_no_model() {
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
        let symbols = |count: f64| 4.0 * (0.9 * count).ceil();
        let cycle = |count, response| 37.0 + 67.5 + 46.0 + symbols(count) + response;
        let (segments, acknowledgement) = (cycle(91.0, 48.0), cycle(1.0, 44.0));
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

    #[test]
    fn joined_writes_are_full_segments() {
        let of = |size| {
            let cell = Cell::new(Family::Ipv6, Transport::Tcp, SizeOf::Write, size);
            AirtimeCost::of(&cell, &WifiConfig::default()).unwrap()
        };
        assert!((of(64).goodput() - of(8192).goodput()).abs() < 1e-9);
        assert!(of(64).because.contains("ipv6 1428 B") && of(64).because.contains("joined"));
    }

    #[test]
    fn what_has_several_packets_is_said_and_not_computed() {
        let cell = Cell::new(Family::Ipv4, Transport::Udp, SizeOf::Write, 1473);
        let reason = AirtimeCost::of(&cell, &WifiConfig::default()).unwrap_err();
        assert!(reason.contains("1473 bytes has several packets"), "{reason}");
    }
}
