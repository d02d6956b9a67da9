//! Checks of levels, before the campaign starts: whether every size can be sent, and every setting be set.

use crate::diagnostics::{Location, Problems};
use crate::read::factors::{Factors, Setting, find_requirement};
use crate::read::{At, Node};
use stacklab_model::{
    Cell, ETHERNET_HEADER_BYTES, Factor, HEADER_BYTES, Mechanism, Probe, SizeOf, Transport, TrialSpec,
    payload_of_frame,
};

/// Bytes of the Ethernet header and frame check sequence around an IP packet.
const FRAMING_BYTES: u32 = ETHERNET_HEADER_BYTES + 4;
/// Maximum total size of the messages of all flows, bytes: each flow has one at each end.
const MAX_IN_FLIGHT: u64 = 256 << 20;
/// The longest name of a congestion control, bytes (TCP_CA_NAME_MAX without its end).
const MAX_CONGESTION_CONTROL_LENGTH: usize = 15;
/// Bytes of a TCP header without options, which the maximum segment size does not count.
const TCP_HEADER_BYTES: u32 = 20;
/// Bytes of TCP's timestamp option, which the maximum segment size counts.
const TIMESTAMP_BYTES: u32 = 12;

pub(super) fn check(factors: &Factors, probe: Node, problems: &mut Problems) {
    // What a program sends is its own.
    if factors.setting(Factor::Program).is_none() {
        check_sizes(factors, probe, problems);
    }
    for setting in &factors.settings {
        check_needs(setting, factors, problems);
    }
    check_segment_size(factors, problems);
    check_memory(factors, problems);
    for name in factors.setting_levels(Factor::CongestionControl) {
        if name.value.len() > MAX_CONGESTION_CONTROL_LENGTH {
            problems.add(name.problem(
                format!("no congestion control is called `{}`", name.value),
                format!("expected at most {MAX_CONGESTION_CONTROL_LENGTH} characters, such as \"cubic\""),
            ));
        }
    }
}

/// Adds the sizes that cannot be sent. A size that fits the minimum MTU fits all.
fn check_sizes(factors: &Factors, probe: Node, problems: &mut Problems) {
    let link_mtu = factors.least_mtu.as_ref().map(|mtu| mtu.value);
    let mechanisms: Vec<Mechanism> = match factors.setting(Factor::Mechanism) {
        Some(setting) => setting.levels.iter().filter_map(|level| level.value.parse().ok()).collect(),
        None => vec![Mechanism::Native],
    };
    let least = find_least_message(factors, probe);
    for size_of in &factors.size_of {
        for transport in &factors.transport {
            if size_of.value == SizeOf::Frame && transport.value != Transport::Udp {
                let title = format!("`size_of = {}` is not possible with {}", size_of.value, transport.value);
                problems.add(
                    size_of
                        .problem(title, "TCP chooses its own segment sizes")
                        .with_related_place(&transport.place, "together with this")
                        .help("use transport = [\"udp\"], or size_of = [\"payload\"]"),
                );
                continue;
            }
            for size in &factors.size {
                for family in &factors.family {
                    // A packet must fit what each mechanism that carries it leaves of the link.
                    let link_bytes = link_mtu.unwrap_or(u32::MAX);
                    let left = mechanisms.iter().filter_map(|of| of.leaves(family.value, link_bytes));
                    let mtu = link_mtu.and(left.min());
                    let cell = Cell::new(family.value, transport.value, size_of.value, size.value);
                    if let Some((title, expected)) = misfit(&cell, &least, mtu) {
                        problems.add(size.problem(title, expected));
                    }
                }
            }
        }
    }
}

/// The bytes that a study's messages have at the least, and for what.
struct LeastMessage {
    bytes: u32,
    needed_by: String,
}

/// All probes and transports of a study have the same sizes.
fn find_least_message(factors: &Factors, probe: Node) -> LeastMessage {
    if factors.setting(Factor::Generator).is_some() {
        return LeastMessage { bytes: HEADER_BYTES, needed_by: "factors.generator".to_owned() };
    }
    let mut least = LeastMessage { bytes: 0, needed_by: String::new() };
    for name in Probe::ALL.iter().filter(|name| probe.get(name.name()).0.is_some()) {
        for transport in factors.transport.iter().filter(|transport| name.supports(transport.value)) {
            let bytes = TrialSpec::min_message_bytes(*name, transport.value);
            if bytes > least.bytes {
                least = LeastMessage { bytes, needed_by: format!("probe.{name} over {}", transport.value) };
            }
        }
    }
    least
}

/// Why the size of a cell cannot be sent, and what was expected.
fn misfit(cell: &Cell, least: &LeastMessage, mtu: Option<u32>) -> Option<(String, String)> {
    let Cell { family, transport, size_of, size, .. } = *cell;
    let headers = family.header_bytes() + transport.header_bytes();
    let payload = cell.payload_bytes();
    let LeastMessage { bytes: least, needed_by } = least;
    if payload < *least && size_of != SizeOf::Frame {
        return Some((
            format!("a message of {size} bytes is smaller than the probe's header"),
            format!("expected at least {least} for {needed_by}"),
        ));
    }
    if payload < *least {
        let around = u32::MAX - payload_of_frame(family, transport, u32::MAX).unwrap_or(u32::MAX);
        return Some((
            format!(
                "a frame of {size} bytes leaves {payload} bytes behind the {family} and {transport} headers, and the header of {needed_by} has {least}"
            ),
            format!("expected at least {} for {family}", around + least),
        ));
    }
    let most = family.largest_packet_bytes() - headers;
    if transport == Transport::Udp && payload > most {
        return Some((
            format!("a UDP datagram over {family} cannot hold {size} bytes"),
            format!("expected at most {most}"),
        ));
    }
    let mtu = mtu?;
    match size_of {
        SizeOf::Frame if size > mtu + FRAMING_BYTES => Some((
            format!("a frame of {size} bytes does not fit the link's MTU of {mtu}"),
            format!("expected at most {} (MTU and {FRAMING_BYTES} bytes of Ethernet)", mtu + FRAMING_BYTES),
        )),
        SizeOf::Payload if transport == Transport::Tcp && headers + size > mtu => Some((
            format!("{size} bytes do not fit one TCP segment over {family} at an MTU of {mtu}"),
            format!("expected at most {}, or size_of = [\"write\"]", mtu - headers),
        )),
        SizeOf::Payload | SizeOf::Write | SizeOf::Frame => None,
    }
}

/// A setting that is varied must be possible in every cell, or it would be compared with nothing; a fixed one in any.
fn check_needs(setting: &Setting, factors: &Factors, problems: &mut Problems) {
    let mut said = Vec::new();
    for level in &setting.levels {
        // Where the need is the factor's, one level says it for all.
        let Some(need) = find_requirement(setting.factor, &level.value).filter(|need| !said.contains(need))
        else {
            continue;
        };
        let (key, needed) = need;
        // A kind of socket has cells where it can.
        let holds_where_it_can = setting.is_constant() || setting.factor == Factor::Socket;
        let unmet = match key {
            Factor::Family => unmet(&factors.family, needed, holds_where_it_can),
            _ => unmet(&factors.transport, needed, holds_where_it_can),
        };
        let Some(place) = unmet else { continue };
        said.push(need);
        let name = match setting.factor {
            Factor::Io => format!("io `{}`", level.value),
            factor => format!("`{factor}`"),
        };
        let problem = level.problem(format!("{name} needs {needed}"), "not possible here");
        let factor = setting.factor;
        problems.add(match holds_where_it_can {
            true => problem
                .with_related_place(place, format!("the only {key}"))
                .help(format!("add \"{needed}\" to factors.{key}, or leave factors.{factor} out")),
            false => problem.with_related_place(place, "together with this").help(format!(
                "leave this {key} out, or give factors.{factor} one level: then it holds wherever it can"
            )),
        });
    }
}

/// The place of a level that does not meet a requirement: any such level, or for a fixed setting only if no level
/// meets it.
fn unmet<'a, T: ToString>(levels: &'a [At<T>], needed: &str, fixed: bool) -> Option<&'a Location> {
    let is_met = |level: &&At<T>| level.value.to_string() == needed;
    if fixed && levels.iter().any(|level| is_met(&level)) {
        return None;
    }
    levels.iter().find(|level| !is_met(level)).map(|level| &level.place)
}

/// A maximum segment size must fit the link, and must hold a whole message if each message is a segment.
fn check_segment_size(factors: &Factors, problems: &mut Problems) {
    let Some(mss) = factors.setting(Factor::Mss) else { return };
    let headers = factors.family.iter().map(|family| family.value.header_bytes()).max().unwrap_or(0);
    let most = factors.least_mtu.as_ref().map_or(u32::MAX, |mtu| mtu.value - headers - TCP_HEADER_BYTES);
    for level in mss.numbers().filter(|level| level.value > most) {
        let title = format!("segments of {} bytes do not fit the link's MTU", level.value);
        problems.add(level.problem(title, format!("expected at most {most}")));
    }
    let Some(least) = mss.numbers().min_by_key(|level| level.value) else { return };
    let segments = factors.size_of.iter().any(|size_of| size_of.value == SizeOf::Payload);
    let over_tcp = factors.transport.iter().any(|transport| transport.value == Transport::Tcp);
    for size in factors.size.iter().filter(|_| segments && over_tcp) {
        if size.value + TIMESTAMP_BYTES > least.value {
            let problem = size.problem(
                format!("{} bytes do not fit one TCP segment at an MSS of {}", size.value, least.value),
                format!("expected at most {}, or size_of = [\"write\"]", least.value - TIMESTAMP_BYTES),
            );
            let options = format!("{TIMESTAMP_BYTES} bytes of it are TCP options");
            problems.add(problem.with_related_place(&least.place, options));
        }
    }
}

fn check_memory(factors: &Factors, problems: &mut Problems) {
    let Some(flows) = factors.setting(Factor::Flows) else { return };
    let largest = factors.size.iter().map(|size| size.value).max().unwrap_or(0);
    for level in flows.numbers() {
        let count = level.value;
        if u64::from(count) * u64::from(largest) > MAX_IN_FLIGHT {
            problems.add(level.problem(
                format!("{count} flows with messages of {largest} bytes would take too much memory"),
                format!("expected at most {} flows of that size", MAX_IN_FLIGHT / u64::from(largest)),
            ));
        }
    }
}
