//! The airtime model of IEEE 802.11n as a document.

use stacklab_model::wifi::{
    AccessCategory, Aggregation, Band, Edca, LegacyRate, Radio, RadioSettings, Role, Security,
    group_mpdu_bytes, mpdu_bytes,
};
use stacklab_model::{Family, Transport};
use stacklab_report::{Block, Table};

/// Payload sizes of the study kolahi2011wlan.
const SIZES: [u32; 6] = [128, 384, 640, 896, 1152, 1408];
/// Limits of A-MPDUs, in frames.
const FRAMES: [u32; 3] = [1, 8, 64];
const SECURITY: [Security; 2] = [Security::Open, Security::Wpa2];
/// Packets to groups: ARP; a neighbour solicitation with a source link-layer address; a router advertisement with that,
/// an MTU and a prefix.
const GROUP_PACKETS: [(&str, u32); 3] =
    [("ARP", 28), ("neighbour solicitation", 72), ("router advertisement", 104)];
const GROUP_RATES: [LegacyRate; 2] = [LegacyRate::Dsss1, LegacyRate::Ofdm6];

/// The capacity of a channel for each family, size and security. An error if there is no such channel.
pub fn airtime(settings: &RadioSettings) -> Result<Vec<Block>, String> {
    let &RadioSettings { band, width, guard, mcs, .. } = settings;
    let rate = Radio::new(settings.clone())?.data_rate() / 1e6;
    let mut blocks = vec![
        Block::Title("Airtime of IEEE 802.11n".to_owned()),
        Block::Text(format!(
            "MCS {mcs} at {width} MHz with the {guard} guard interval: {rate:.1} Mbit/s, in {band} GHz. Mbit/s of UDP \
             payload of one station that always has a frame, over one hop; half of it is left over two hops of one \
             channel. Per cent: IPv6 compared with IPv4."
        )),
    ];
    for frames in FRAMES {
        let aggregation = Aggregation { frames, ..settings.aggregation };
        let radio = Radio::new(RadioSettings { aggregation, ..settings.clone() })?;
        blocks.push(Block::Heading(match frames {
            1 => "Without aggregation".to_owned(),
            _ => format!("A-MPDUs of up to {frames} frames"),
        }));
        blocks.push(Block::Table(goodput(&radio)));
    }
    blocks.push(Block::Heading("Frames to a group, microseconds".to_owned()));
    blocks.push(Block::Table(group_frames(settings)?));
    blocks.push(Block::Heading("Formula".to_owned()));
    blocks.push(Block::List(
        [
            "payload rate = 8 N P / T: N frames with P bytes of payload each",
            "T = AIFS + mean backoff + preamble + symbols + SIFS + response",
            "docs/wifi.md has every part with its source",
        ]
        .map(str::to_owned)
        .to_vec(),
    ));
    Ok(blocks)
}

fn goodput(radio: &Radio) -> Table {
    let mut table = Table::default();
    table.push("size", true, SIZES.iter().map(u32::to_string).collect());
    for security in SECURITY {
        let ipv4 = calculate_rates(radio, security, Family::Ipv4);
        let ipv6 = calculate_rates(radio, security, Family::Ipv6);
        let mut percent = Vec::new();
        for (ipv4, ipv6) in ipv4.iter().zip(ipv6) {
            percent.push(format!("{:+.1} %", 100.0 * (ipv6 / ipv4 - 1.0)));
        }
        table.push(format!("{security} ipv4"), true, format_rates(ipv4));
        table.push(format!("{security} ipv6"), true, format_rates(ipv6));
        table.push("ipv6", true, percent);
    }
    table
}

/// The payload rate for each of the sizes.
fn calculate_rates(radio: &Radio, security: Security, family: Family) -> [f64; 6] {
    let edca = Edca::default_of(Role::Station, AccessCategory::BestEffort);
    SIZES.map(|payload| {
        let packet = family.header_bytes() + Transport::Udp.header_bytes() + payload;
        radio.saturation(edca, mpdu_bytes(security, packet)).goodput(payload)
    })
}

fn format_rates(rates: [f64; 6]) -> Vec<String> {
    rates.map(|rate| format!("{rate:.2}")).to_vec()
}

fn group_frames(settings: &RadioSettings) -> Result<Table, String> {
    let mut table = Table::default();
    table.push("packet", false, GROUP_PACKETS.map(|(name, _)| name.to_owned()).to_vec());
    for group_rate in GROUP_RATES.into_iter().filter(|rate| settings.band == Band::Ghz2 || !rate.is_dsss()) {
        let radio = Radio::new(RadioSettings { group_rate, ..settings.clone() })?;
        for security in SECURITY {
            let mut times = Vec::new();
            for (_, packet) in GROUP_PACKETS {
                let exchange = radio.group(group_mpdu_bytes(security, packet));
                times.push((exchange.ppdu.total_ns() / 1000).to_string());
            }
            table.push(format!("{security}, {group_rate}"), true, times);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stacklab_model::wifi::{Guard, Width};
    use stacklab_report::{WIDTH, text};

    fn of_study() -> RadioSettings {
        let band = Band::Ghz2;
        let width = Width::Mhz40;
        let guard = Guard::Short;
        RadioSettings { band, width, guard, mcs: 15, ..RadioSettings::default() }
    }

    #[test]
    fn the_table_has_the_worked_figures() {
        let text = text(&airtime(&of_study()).unwrap(), WIDTH);
        let row = "1408 173.79 172.46 -0.8 % 172.46 172.46 +0.0 %";
        assert_eq!(find_row(&text, &["1408", "173.79"]).as_deref(), Some(row), "{text}");
        assert_eq!(find_row(&text, &["ARP"]).as_deref(), Some("ARP 704 832 118 138"), "{text}");
    }

    /// The first row that begins with these cells.
    fn find_row(text: &str, begins: &[&str]) -> Option<String> {
        let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        rows.find(|cells| cells.starts_with(begins)).map(|cells| cells.join(" "))
    }

    #[test]
    fn five_ghz_has_no_frames_of_802_11b() {
        let text = text(&airtime(&RadioSettings { band: Band::Ghz5, ..of_study() }).unwrap(), WIDTH);
        assert!(!text.contains("1 Mbit/s") && text.contains("6 Mbit/s"), "{text}");
    }

    #[test]
    fn a_channel_that_does_not_exist_is_refused() {
        let error = airtime(&RadioSettings { mcs: 16, ..of_study() }).unwrap_err().to_string();
        assert_eq!(error, "there is no MCS 16: expected 0 to 15");
    }
}
