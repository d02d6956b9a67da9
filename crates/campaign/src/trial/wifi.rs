//! What a Wi-Fi network adds to a run, and takes from it.

use crate::trial::source::ReportSource;
use stacklab_guests::WifiSeen;
use stacklab_model::wifi::ChannelUse;
use stacklab_model::{
    Metric, Probe, Role, RunStatus, Station, StationFrame, StationReport, Transport, TrialSpec, Unit, Value,
    Warning,
};
use stacklab_trial::{Figures, validate};
use stacklab_wifi::{Lateness, WifiState};

/// A Wi-Fi network before and after a trial: its state, or a sentence that says how it was not as planned.
#[derive(Debug, Clone)]
pub(crate) struct WifiEvidence {
    pub is_virtual: bool,
    pub seed: u64,
    pub before: WifiSeen,
    pub after: WifiSeen,
}

/// Why there are no CPU figures in virtual time.
const NO_CPU: &str =
    "the network runs in virtual time, which has no CPU time: use testbed.wifi.clock = \"real\"";

/// The share of late exchanges with which real time gives neither times nor what TCP makes of them.
const MAX_LATE: f64 = 0.01;

/// Adds the stations to the reports. A network that was not as planned before and after the trial, or was another one,
/// makes the run invalid; so does, in virtual time, an exchange that the kernel got late. In real time, figures
/// are held back where many exchanges were late. In virtual time there are no CPU figures.
pub(super) fn apply_stations(
    mut made: Figures,
    sources: &[ReportSource],
    seen: &WifiEvidence,
    transport: Transport,
) -> Figures {
    let mut reasons = validate::steady("network", [&seen.before, &seen.after], describe);
    if let (Ok(before), Ok(after)) = (&seen.before, &seen.after) {
        for (report, source) in made.host_reports.iter_mut().zip(sources) {
            let [before, after] = [before, after].map(|state| station(state, source.host));
            let seed = Some(seen.seed);
            report.station = before.zip(after).map(|(before, after)| StationReport { seed, before, after });
        }
        reasons.extend(made.host_reports.iter().flat_map(validate::stations));
        let lateness = after.medium.lateness.since(&before.medium.lateness);
        if !seen.is_virtual {
            made = held_back(made, transport, lateness);
        } else {
            let Lateness { late, exchanges, longest_ns, .. } = lateness;
            reasons.extend(validate::exchanges(late, exchanges, longest_ns));
        }
    }
    made = invalid(made, reasons);
    if seen.is_virtual {
        for report in &mut made.host_reports {
            report.cpu = None;
            report.slices.iter_mut().for_each(|slice| (slice.cpu_ns, slice.waited_ns) = (None, None));
        }
        for (_, value) in made.values.iter_mut().filter(|(metric, _)| metric.is_host_cpu()) {
            *value = Value::Missing(NO_CPU.to_owned());
        }
        made.warnings.retain(|warning| warning.code != "tick");
    }
    made
}

pub(crate) fn invalid(mut made: Figures, mut reasons: Vec<String>) -> Figures {
    if !reasons.is_empty() {
        if let RunStatus::Invalid(others) = made.status {
            reasons.splice(0..0, others);
        }
        made.status = RunStatus::Invalid(reasons);
    }
    made
}

/// Real time: without the figures that late exchanges distort, if there were many. What UDP carries they do not: the
/// channel keeps its own time.
fn held_back(mut made: Figures, transport: Transport, lateness: Lateness) -> Figures {
    let Some(share) = lateness.share().filter(|share| *share >= MAX_LATE) else { return made };
    let text = format!(
        "the kernel got {:.1} % of the exchanges on the air later than after a tenth of their time",
        100.0 * share
    );
    for (_, value) in made.values.iter_mut().filter(|(metric, _)| takes_time(**metric, transport)) {
        *value = Value::Missing(format!("{text}: real time did not hold"));
    }
    let advice = "lower the rate, or use testbed.wifi.clock = \"virtual\"".to_owned();
    made.warnings.push(Warning { code: "late_exchanges".to_owned(), text, advice });
    made
}

/// Whether late frames show in a figure: in times, and in how fast TCP is.
fn takes_time(metric: Metric, transport: Transport) -> bool {
    let of_tcp = matches!(
        metric.unit(),
        Unit::MegabitPerSecond | Unit::MessagePerSecond | Unit::ConnectionPerSecond | Unit::Times
    );
    metric.unit() == Unit::Millisecond
        || metric == Metric::BufferDelay
        || (transport == Transport::Tcp && of_tcp)
}

fn describe(state: &WifiState) -> String {
    let stations = state.stations.iter().flatten().chain(&state.others).collect::<Vec<_>>();
    format!("{stations:?} with frames {:?}", state.checks)
}

/// The station of a host: 0 is the sender of the testbed, 1 its receiver. `None` of a receiver on a wire.
fn station(state: &WifiState, host: usize) -> Option<Station> {
    let association = state.stations[host].clone()?;
    let frames = state.checks.iter().filter_map(|check| {
        let frame = check.hops[host]?;
        Some(StationFrame {
            family: check.family,
            packet: check.packet as u64,
            bytes: frame.bytes as u64,
            protected: frame.protected,
        })
    });
    Some(Station {
        ssid: association.ssid,
        bssid: association.bssid,
        cipher: association.cipher,
        key_management: association.key_management,
        management_cipher: association.management_cipher,
        power_save: Some(association.power_save),
        signal_dbm: None,
        tx_bitrate: None,
        frequency: association.channel.frequency,
        width: association.channel.width,
        center: association.channel.center,
        frames: frames.collect(),
    })
}

/// The nodes of the channel, by their places. Other stations follow.
const SENDER: usize = 0;
const ACCESS_POINT: usize = 1;
const RECEIVER: usize = 2;

/// Adds the channel's figures to those of a stream: of the windows in which its receiver received. So each arm of an
/// interleaved trial has those of the arm's slices.
pub(super) fn with_channel(mut made: Figures, spec: &TrialSpec) -> Figures {
    if spec.probe.probe != Probe::Stream {
        return made;
    }
    let received = made.host_reports.iter().find(|report| report.role == Role::Receiver);
    let used = received.and_then(|report| report.channel.clone());
    for metric in Metric::ALL.iter().copied().filter(|metric| metric.is_of_channel()) {
        let value = match &used {
            Some(used) => value(metric, used),
            None => Value::Missing("no message arrived".to_owned()),
        };
        made.values.insert(metric, value);
    }
    made
}

fn value(metric: Metric, used: &ChannelUse) -> Value {
    let (figure, without) = match metric {
        Metric::Airtime => (used.airtime_share(), "the window was empty"),
        Metric::GroupAirtime => (used.group_share(), "the window was empty"),
        Metric::FrameRetries => (used.retry_share(), "no frame was sent"),
        Metric::Collisions => (used.collision_share(), "no frame was sent"),
        Metric::QueueDropsSender => (used.drop_share(SENDER), "it had no frame to send"),
        Metric::QueueDropsAccessPoint => (used.drop_share(ACCESS_POINT), "it had no frame to send"),
        Metric::QueueDropsReceiver => (used.drop_share(RECEIVER), "it had no frame to send"),
        Metric::AggregateSize => (used.mean_aggregate(), "no frame was sent"),
        other => return Value::Missing(format!("the channel does not report {other}")),
    };
    figure.map_or_else(|| Value::Missing(without.to_owned()), Value::Measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::fixtures::{join_reasons, make_receiver_report, stream_of};
    use crate::trial::source::report_sources;
    use stacklab_model::wifi::{Airtime, NodeAirtime};
    use stacklab_model::{Direction, HostReport};
    use stacklab_wifi::{Association, Channel, MediumReport};

    fn state(width: u32) -> WifiState {
        let association = Association {
            channel: Channel { frequency: 2412, width, center: 2422 },
            ssid: "stacklab".to_owned(),
            bssid: "02:00:00:00:00:03".to_owned(),
            cipher: "CCMP".to_owned(),
            key_management: "WPA2-PSK".to_owned(),
            management_cipher: None,
            power_save: false,
        };
        let stations = [Some(association.clone()), Some(association)];
        let others = Vec::new();
        let checks = Vec::new();
        let medium = MediumReport::default();
        WifiState { stations, others, checks, medium, programs: String::new() }
    }

    fn of_transport(transport: Transport, is_virtual: bool, before: WifiSeen, after: WifiSeen) -> Figures {
        let (_, made) = stream_of(vec![make_receiver_report(0, 0.0), make_receiver_report(0, 0.0)]);
        let seen = WifiEvidence { is_virtual, seed: 7, before, after };
        apply_stations(made, &report_sources(Direction::Forward), &seen, transport)
    }

    fn of(is_virtual: bool, before: WifiSeen, after: WifiSeen) -> Figures {
        of_transport(Transport::Udp, is_virtual, before, after)
    }

    /// The state when so many of so many exchanges had been late.
    fn late(late: u64, exchanges: u64) -> WifiState {
        let mut state = state(40);
        (state.medium.lateness.late, state.medium.lateness.exchanges) = (late, exchanges);
        state
    }

    #[test]
    fn late_exchange_in_virtual_time_invalidates_the_run() {
        assert_eq!(of(true, Ok(late(3, 10)), Ok(late(3, 5000))).status, RunStatus::Valid);
        let RunStatus::Invalid(reasons) = of(true, Ok(late(3, 10)), Ok(late(4, 5010))).status else {
            panic!()
        };
        assert!(reasons[0].contains("1 of 5000 exchanges on the air late"), "{reasons:?}");
    }

    #[test]
    fn missed_real_time_gives_no_times_or_tcp_throughput() {
        for (transport, late_exchanges, expected) in [
            (Transport::Udp, 9, [false, false]),
            (Transport::Tcp, 9, [false, false]),
            (Transport::Udp, 10, [true, false]),
            (Transport::Tcp, 10, [true, true]),
        ] {
            let made = of_transport(transport, false, Ok(late(0, 0)), Ok(late(late_exchanges, 1000)));
            assert_eq!(made.status, RunStatus::Valid);
            let warned = made.warnings.iter().any(|warning| warning.code == "late_exchanges");
            assert_eq!(warned, late_exchanges >= 10);
            let missing = [Metric::Jitter, Metric::Throughput].map(|metric| match &made.values[&metric] {
                Value::Missing(reason) => reason.contains("real time did not hold"),
                _ => false,
            });
            assert_eq!(missing, expected, "{transport} {late_exchanges}");
        }
    }

    #[test]
    fn a_network_as_planned_is_in_the_reports() {
        let made = of(false, Ok(state(40)), Ok(state(40)));
        assert_eq!(made.status, RunStatus::Valid);
        for report in &made.host_reports {
            let station = report.station.as_ref().unwrap();
            assert_eq!((station.seed, station.before.width), (Some(7), 40));
            assert_eq!(station.before, station.after);
        }
    }

    #[test]
    fn a_receiver_on_a_wire_has_no_station() {
        let mut wired = state(40);
        wired.stations[1] = None;
        let made = of(true, Ok(wired.clone()), Ok(wired));
        assert_eq!(made.status, RunStatus::Valid);
        let stations = made.host_reports.iter().map(|report| report.station.is_some());
        assert_eq!(stations.collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn unplanned_network_state_invalidates_the_run() {
        let gone = Err("the receiver is not associated".to_owned());
        let said = join_reasons(of(true, Ok(state(40)), gone.clone()));
        assert_eq!(said, "after the trial, the receiver is not associated");
        let said = join_reasons(of(true, gone, Ok(state(40))));
        assert_eq!(said, "before the trial, the receiver is not associated");
        let changed = join_reasons(of(true, Ok(state(40)), Ok(state(20))));
        assert!(changed.starts_with("the Wi-Fi network changed during the trial"), "{changed}");
    }

    #[test]
    fn virtual_time_has_no_cpu_figures() {
        let made = of(true, Ok(state(40)), Ok(state(40)));
        assert!(made.host_reports.iter().all(|report| report.cpu.is_none()));
        let Some(Value::Missing(reason)) = made.values.get(&Metric::CpuSender) else {
            panic!("{:?}", made.values)
        };
        assert!(reason.contains("virtual"), "{reason}");
    }

    #[test]
    fn a_streams_channel_is_its_receivers() {
        let nodes =
            [(10, 80, 20), (10, 60, 0), (0, 0, 0)].map(|(transmissions, frames_sent, queue_drops)| {
                NodeAirtime {
                    transmissions,
                    frames_sent,
                    frames_received: frames_sent,
                    queue_drops,
                    ..NodeAirtime::default()
                }
            });
        let used = ChannelUse {
            airtime: Airtime { data_ns: 90, idle_ns: 10, ..Airtime::default() },
            nodes: nodes.to_vec(),
            intervals: Vec::new(),
        };
        let receiver = HostReport { channel: Some(used), ..make_receiver_report(0, 0.0) };
        let sender = HostReport { role: Role::Sender, channel: None, ..make_receiver_report(0, 0.0) };
        let (spec, made) = stream_of(vec![sender, receiver]);
        let made = with_channel(made, &spec);
        for (metric, figure) in [
            (Metric::Airtime, 0.9),
            (Metric::AggregateSize, 7.0),
            (Metric::Collisions, 0.0),
            (Metric::QueueDropsSender, 0.2),
            (Metric::QueueDropsAccessPoint, 0.0),
        ] {
            assert_eq!(made.values[&metric], Value::Measured(figure), "{metric}");
        }
        assert!(matches!(&made.values[&Metric::QueueDropsReceiver], Value::Missing(_)));
        let (spec, silent) = stream_of(vec![make_receiver_report(0, 0.0)]);
        assert!(matches!(&with_channel(silent, &spec).values[&Metric::Airtime], Value::Missing(_)));
    }
}
