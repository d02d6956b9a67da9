//! Checks of the factors that are cell settings against the requirements of each.

use super::factors::Factors;
use super::setting::{Need, Setting, need};
use crate::diagnostics::{Location, Problem, Problems};
use crate::read::node::At;
use stacklab_model::{Factor, Transport};

/// Maximum total size of the messages of all flows, bytes: each flow has one at each end.
const MOST_IN_FLIGHT: u64 = 256 << 20;
/// The longest name of a congestion control, bytes (TCP_CA_NAME_MAX without its end).
const LONGEST_CONGESTION_CONTROL: usize = 15;
/// Bytes of a TCP header without options, which the maximum segment size does not count.
const TCP_HEADER_BYTES: u32 = 20;
/// Bytes of TCP's timestamp option, which the maximum segment size counts.
const TIMESTAMP_BYTES: u32 = 12;

/// Adds the levels that cannot be set.
pub(super) fn check(factors: &Factors, problems: &mut Problems) {
    for setting in &factors.settings {
        check_needs(setting, factors, problems);
    }
    check_segment_size(factors, problems);
    check_memory(factors, problems);
    for name in factors.setting_levels(Factor::CongestionControl) {
        if name.value.len() > LONGEST_CONGESTION_CONTROL {
            problems.add(Problem::at(
                name.place.clone(),
                format!("no congestion control is called `{}`", name.value),
                format!("expected at most {LONGEST_CONGESTION_CONTROL} characters, such as \"cubic\""),
            ));
        }
    }
}

/// A setting that is varied must be possible in every cell, or it would be compared with nothing; a fixed one in any.
fn check_needs(setting: &Setting, factors: &Factors, problems: &mut Problems) {
    let mut said = Vec::new();
    for level in &setting.levels {
        let need = need(setting.factor, &level.value);
        // Where the need is the factor's, one level says it for all.
        if said.contains(&need) {
            continue;
        }
        let name = match setting.factor {
            Factor::Io => format!("io `{}`", level.value),
            factor => format!("`{factor}`"),
        };
        let refused = match need {
            Need::Nothing => None,
            Need::Transport(transport) => {
                unmet(&factors.transport, transport, setting.is_fixed()).map(|place| ("transport", place))
            }
            Need::Family(family) => {
                unmet(&factors.family, family, setting.is_fixed()).map(|place| ("family", place))
            }
        };
        let Some((key, place)) = refused else { continue };
        said.push(need);
        let needed = match need {
            Need::Nothing => "",
            Need::Transport(transport) => transport.name(),
            Need::Family(family) => family.name(),
        };
        let problem = Problem::at(level.place.clone(), format!("{name} needs {needed}"), "not possible here");
        problems.add(if setting.is_fixed() {
            problem
                .related(place, format!("the only {key}"))
                .help(format!("add \"{needed}\" to factors.{key}, or leave factors.{} out", setting.factor))
        } else {
            problem.related(place, "together with this").help(format!(
                "leave this {key} out, or give factors.{} one level: then it holds wherever it can",
                setting.factor
            ))
        });
    }
}

/// The place of a level that does not meet a requirement: any such level, or for a fixed setting only if no level
/// meets it.
fn unmet<T: PartialEq>(levels: &[At<T>], needed: T, fixed: bool) -> Option<Location> {
    if fixed && levels.iter().any(|level| level.value == needed) {
        return None;
    }
    levels.iter().find(|level| level.value != needed).map(|level| level.place.clone())
}

/// A maximum segment size must fit the link, and must hold a whole message if each message is a segment.
fn check_segment_size(factors: &Factors, problems: &mut Problems) {
    let Some(mss) = factors.setting(Factor::Mss) else { return };
    let headers = factors.family.iter().map(|family| family.value.header_bytes()).max().unwrap_or(0);
    let most = factors.least_mtu.as_ref().map_or(u32::MAX, |mtu| mtu.value - headers - TCP_HEADER_BYTES);
    for (bytes, place) in mss.numbers() {
        if bytes > most {
            problems.add(Problem::at(
                place.clone(),
                format!("segments of {bytes} bytes do not fit the link's MTU"),
                format!("expected at most {most}"),
            ));
        }
    }
    let Some((least, place)) = mss.numbers().min_by_key(|(bytes, _)| *bytes) else { return };
    let segments = factors.size_of.iter().any(|size_of| size_of.value == stacklab_model::SizeOf::Payload);
    let over_tcp = factors.transport.iter().any(|transport| transport.value == Transport::Tcp);
    for size in factors.size.iter().filter(|_| segments && over_tcp) {
        if size.value + TIMESTAMP_BYTES > least {
            problems.add(
                Problem::at(
                    size.place.clone(),
                    format!("{} bytes do not fit one TCP segment at an MSS of {least}", size.value),
                    format!("expected at most {}, or size_of = [\"write\"]", least - TIMESTAMP_BYTES),
                )
                .related(place.clone(), format!("{TIMESTAMP_BYTES} bytes of it are TCP options")),
            );
        }
    }
}

fn check_memory(factors: &Factors, problems: &mut Problems) {
    let Some(flows) = factors.setting(Factor::Flows) else { return };
    let largest = factors.size.iter().map(|size| size.value).max().unwrap_or(0);
    for (count, place) in flows.numbers() {
        if u64::from(count) * u64::from(largest) > MOST_IN_FLIGHT {
            problems.add(Problem::at(
                place.clone(),
                format!("{count} flows with messages of {largest} bytes would take too much memory"),
                format!("expected at most {} flows of that size", MOST_IN_FLIGHT / u64::from(largest)),
            ));
        }
    }
}
