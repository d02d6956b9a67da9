//! The capture of what is on air, as tshark reads it: it decrypts with the passphrase, and computes airtimes of its
//! own. The tests need root, `ping`, `tshark`, and the user-mode Linux that is made here (uml-full).

use super::wifi::{ADDRESSES, SENDER, boot, wpa2};
use crate::support;

use stacklab_model::Family;
use stacklab_model::wifi::{Aggregate, Ppdu, Radio, WifiSettings};
use stacklab_wifi::{Security, WifiSpec};
use std::fs;
use std::path::Path;
use std::process::Command;
use support::program::Program;

const PASSPHRASE: &str = "sixteen bytes ok";
const PINGS: usize = 5;
const FIELDS: [&str; 10] = [
    "frame.len",
    "radiotap.length",
    "wlan.fc.type_subtype",
    "wlan.ra",
    "wlan_radio.duration",
    "radiotap.ampdu.reference",
    "wlan.fcs.status",
    "icmp.type",
    "icmpv6.type",
    "radiotap.flags.badfcs",
];
const QOS_DATA: u32 = 0x28;
/// The silence after frames of the 2.4 GHz band, which tshark does not count, and a symbol and a bit: tshark rounds
/// otherwise.
const SIGNAL_EXTENSION_US: f64 = 6.0;
const TOLERANCE_US: f64 = 5.0;

/// A frame as tshark reads it.
#[derive(Debug)]
struct Seen {
    bytes: u32,
    subtype: u32,
    receiver: String,
    duration_us: Option<f64>,
    is_aggregated: bool,
    fcs: String,
    icmp: String,
    icmpv6: String,
    is_lost: bool,
}

/// What tshark reads in a capture.
fn read(capture: &Path) -> Vec<Seen> {
    let keys = format!("uat:80211_keys:\"wpa-pwd\",\"{PASSPHRASE}:stacklab\"");
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(capture).args(["-o", "wlan.enable_decryption:TRUE", "-o", &keys]);
    tshark.args(["-o", "wlan.check_checksum:TRUE", "-T", "fields", "-E", "occurrence=f"]);
    tshark.args(FIELDS.iter().flat_map(|field| ["-e", field]));
    let output = tshark.output().expect("tshark is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(seen).collect()
}

fn seen(line: &str) -> Seen {
    let values: Vec<&str> = line.split('\t').collect();
    assert_eq!(values.len(), FIELDS.len(), "{line}");
    Seen {
        bytes: read_number(line, values[0]) - read_number(line, values[1]),
        subtype: read_number(line, values[2]),
        receiver: values[3].to_owned(),
        duration_us: values[4].parse().ok(),
        is_aggregated: !values[5].is_empty(),
        fcs: values[6].to_owned(),
        icmp: values[7].to_owned(),
        icmpv6: values[8].to_owned(),
        is_lost: ["1", "True"].contains(&values[9]),
    }
}

/// A number of a line as tshark prints it, decimal or hexadecimal.
fn read_number(line: &str, text: &str) -> u32 {
    let hexadecimal = text.strip_prefix("0x").map(|text| u32::from_str_radix(text, 16));
    hexadecimal.unwrap_or_else(|| text.parse()).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The time of a frame that is sent alone.
fn planned(radio: &Radio, frame: &Seen) -> Ppdu {
    let first = u8::from_str_radix(&frame.receiver[..2], 16).unwrap();
    match frame.subtype {
        _ if first & 1 == 1 => radio.group(frame.bytes).ppdu,
        QOS_DATA => {
            let mut aggregate = Aggregate::new(radio);
            aggregate.push(frame.bytes);
            radio.data(&aggregate).ppdu
        }
        _ => radio.basic(frame.bytes).ppdu,
    }
}

/// Captures pings of both families, and checks each frame's time and FCS.
fn capture(security: Security) -> Vec<Seen> {
    let program = Program::new();
    let spec = WifiSpec::with_security(security).with_capture();
    let network = boot(&program, &spec).unwrap_or_else(|error| panic!("{error}"));
    for (word, _, receiver) in ADDRESSES {
        let count = PINGS.to_string();
        network.run(SENDER, &["ping", word, "-n", "-s", "1000", "-i", "0.2", "-c", &count, receiver]);
    }
    let kept = program.tmp().join("capture.pcapng");
    fs::copy(network.hosted.capture.as_ref().unwrap(), &kept).unwrap();
    let frames = read(&kept);
    let radio = WifiSettings::default().radio().unwrap();
    let mut largest: f64 = 0.0;
    for frame in &frames {
        assert_eq!(frame.fcs, "1", "{frame:?}");
        // Frames that collide begin at once, and tshark takes them for an A-MPDU.
        if !frame.is_aggregated && !frame.is_lost {
            let planned = planned(&radio, frame).total_ns() as f64 / 1e3 - SIGNAL_EXTENSION_US;
            let duration = frame.duration_us.unwrap_or_else(|| panic!("{frame:?}"));
            largest = largest.max((duration - planned).abs());
            assert!((duration - planned).abs() <= TOLERANCE_US, "{duration} us, not {planned} us: {frame:?}");
        }
    }
    println!("note: {} frames, their times within {largest} us", frames.len());
    frames
}

/// Bytes of the frames with echo requests (those with the type of a family).
fn requests(frames: &[Seen], family: Family) -> Vec<u32> {
    let of_family = frames.iter().filter(|frame| match family {
        Family::Ipv4 => frame.icmp == "8",
        Family::Ipv6 => frame.icmpv6 == "128",
    });
    of_family.map(|frame| frame.bytes).collect()
}

#[test]
fn tshark_decrypts_what_is_on_air_and_agrees_on_time() {
    let [open, secured] = [Security::Open, wpa2(PASSPHRASE)].map(capture);
    for family in Family::ALL {
        let [open, secured] = [&open, &secured].map(|frames| requests(frames, *family));
        // On both hops.
        assert!(open.len() >= 2 * PINGS && secured.len() >= 2 * PINGS, "{family}: {open:?}, {secured:?}");
        assert!(open.iter().all(|bytes| *bytes == open[0]), "{family}: {open:?}");
        assert!(secured.iter().all(|bytes| *bytes == open[0] + 16), "{family}: {open:?}, {secured:?}");
    }
}
