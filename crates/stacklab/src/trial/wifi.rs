//! What a Wi-Fi network adds to a run, and takes from it.

use crate::trial::evidence::{ReportSource, WifiEvidence};
use stacklab_model::{RunStatus, Station, StationFrame, StationReport, Value};
use stacklab_testbed::WifiState;
use stacklab_traffic::trial::Figures;

/// Why there are no CPU figures in virtual time.
const NO_CPU: &str =
    "the network's time is virtual, and CPU time takes none of it: testbed.wifi.time = \"real\" has it";

/// Adds the stations to the reports. A network that was not as planned before and after the trial, or was another one,
/// makes the run invalid. In virtual time there are no CPU figures.
pub fn checked(mut made: Figures, sources: &[ReportSource], seen: &WifiEvidence) -> Figures {
    let mut reasons = Vec::new();
    match (&seen.before, &seen.after) {
        (Ok(before), Ok(after)) => {
            for (report, source) in made.host_reports.iter_mut().zip(sources) {
                let [before, after] = [before, after].map(|state| station(state, source.host));
                report.station = Some(StationReport { seed: seen.seed, before, after });
            }
            reasons.extend(change(before, after));
        }
        (before, after) => {
            for (moment, state) in [("before", before), ("after", after)] {
                reasons.extend(state.as_ref().err().map(|error| format!("{moment} the trial, {error}")));
            }
        }
    }
    if !reasons.is_empty() {
        if let RunStatus::Invalid(others) = made.status {
            reasons.splice(0..0, others);
        }
        made.status = RunStatus::Invalid(reasons);
    }
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

/// How the network changed during a trial.
fn change(before: &WifiState, after: &WifiState) -> Option<String> {
    let text = |state: &WifiState| format!("{:?} with frames {:?}", state.stations, state.checks);
    let (before, after) = (text(before), text(after));
    (before != after)
        .then(|| format!("the Wi-Fi network changed during the trial: it was {before}, and is {after}"))
}

/// The station of a host: 0 is the sender of the testbed, 1 its receiver.
fn station(state: &WifiState, host: usize) -> Station {
    let association = state.stations[host].clone();
    let frames = state.checks.iter().map(|check| StationFrame {
        family: check.family,
        packet: check.packet as u64,
        bytes: check.hops[host].bytes as u64,
        protected: check.hops[host].protected,
    });
    Station {
        ssid: association.ssid,
        bssid: association.bssid,
        cipher: association.cipher,
        key_management: association.key_management,
        frequency: association.channel.frequency,
        width: association.channel.width,
        center: association.channel.center,
        frames: frames.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::evidence::report_sources;
    use crate::trial::fixtures::{received, stream_of};
    use stacklab_model::{Direction, Metric};
    use stacklab_testbed::{Association, Channel, MediumReport, WifiSeen};

    fn state(width: u32) -> WifiState {
        let association = Association {
            channel: Channel { frequency: 2412, width, center: 2422 },
            ssid: "stacklab".to_owned(),
            bssid: "02:00:00:00:00:03".to_owned(),
            cipher: "CCMP".to_owned(),
            key_management: "WPA2-PSK".to_owned(),
        };
        let stations = [association.clone(), association];
        WifiState { stations, checks: Vec::new(), medium: MediumReport::default(), programs: String::new() }
    }

    fn of(is_virtual: bool, before: WifiSeen, after: WifiSeen) -> Figures {
        let (_, made) = stream_of(vec![received(0, 0.0), received(0, 0.0)]);
        let seen = WifiEvidence { is_virtual, seed: 7, before, after };
        checked(made, &report_sources(Direction::Forward), &seen)
    }

    #[test]
    fn a_network_as_planned_is_in_the_reports() {
        let made = of(false, Ok(state(40)), Ok(state(40)));
        assert_eq!(made.status, RunStatus::Valid);
        for report in &made.host_reports {
            let station = report.station.as_ref().unwrap();
            assert_eq!((station.seed, station.before.width), (7, 40));
            assert_eq!(station.before, station.after);
        }
    }

    #[test]
    fn a_network_that_is_not_as_planned_makes_the_run_invalid() {
        let reasons = |made: Figures| match made.status {
            RunStatus::Invalid(reasons) => reasons.join("; "),
            RunStatus::Valid => "valid".to_owned(),
        };
        let gone = || Err("the receiver is not associated".to_owned());
        assert_eq!(
            reasons(of(true, Ok(state(40)), gone())),
            "after the trial, the receiver is not associated"
        );
        let said = reasons(of(true, gone(), Ok(state(40))));
        assert_eq!(said, "before the trial, the receiver is not associated");
        let changed = reasons(of(true, Ok(state(40)), Ok(state(20))));
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
}
