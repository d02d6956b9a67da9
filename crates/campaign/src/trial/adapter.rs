//! What the Wi-Fi adapters of real machines add to a run.

use crate::trial::evidence::{AdapterEvidence, ReportSource};
use crate::trial::wifi::invalid;
use stacklab_model::{Station, StationReport};
use stacklab_trial::{Figures, validate};

/// Adds the adapters to the reports. One that was not associated before or after the trial, or was associated otherwise
/// afterwards, makes the run invalid. Signal and bit rate may change.
pub(super) fn checked(
    mut made: Figures,
    sources: &[ReportSource],
    adapters: &[Option<AdapterEvidence>; 2],
) -> Figures {
    let mut reasons = Vec::new();
    for (host, [before, after]) in
        adapters.iter().enumerate().filter_map(|(host, own)| Some((host, own.as_ref()?)))
    {
        if let (Ok(before), Ok(after)) = (before, after) {
            let reports = made.host_reports.iter_mut().zip(sources).filter(|(_, source)| source.host == host);
            for (report, _) in reports {
                let (before, after) = (before.clone(), after.clone());
                report.station = Some(StationReport { seed: None, before, after });
            }
        }
        reasons.extend(validate::steady("association", [before, after], describe));
    }
    invalid(made, reasons)
}

fn describe(station: &Station) -> String {
    let Station { ssid, bssid, cipher, key_management, frequency, width, center, power_save, .. } = station;
    let power_save = power_save.map_or("unknown", |is_on| if is_on { "on" } else { "off" });
    format!(
        "{bssid} ({ssid}) at {frequency} MHz, width {width} MHz around {center} MHz, cipher {cipher}, key management \
         {key_management}, power save {power_save}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::evidence::report_sources;
    use crate::trial::fixtures::{received, stream_of};
    use stacklab_model::{Direction, RunStatus};

    fn station(width: u32, signal_dbm: i32) -> Station {
        Station {
            ssid: "office".to_owned(),
            bssid: "02:00:00:00:00:03".to_owned(),
            cipher: "unknown".to_owned(),
            key_management: "unknown".to_owned(),
            management_cipher: None,
            power_save: Some(false),
            frequency: 5180,
            width,
            center: 5210,
            signal_dbm: Some(signal_dbm),
            tx_bitrate: None,
            frames: Vec::new(),
        }
    }

    fn of(receiver: AdapterEvidence) -> Figures {
        let (_, made) = stream_of(vec![received(0, 0.0), received(0, 0.0)]);
        checked(made, &report_sources(Direction::Forward), &[None, Some(receiver)])
    }

    #[test]
    fn an_adapter_is_in_its_hosts_report_and_its_signal_may_change() {
        let made = of([Ok(station(80, -50)), Ok(station(80, -52))]);
        assert_eq!(made.status, RunStatus::Valid);
        let stations: Vec<_> = made.host_reports.iter().map(|report| report.station.clone()).collect();
        let [None, Some(receiver)] = &stations[..] else { panic!("{stations:?}") };
        assert_eq!((receiver.seed, receiver.after.signal_dbm), (None, Some(-52)));
    }

    #[test]
    fn an_association_that_changed_makes_the_run_invalid() {
        let reasons = |made: Figures| match made.status {
            RunStatus::Invalid(reasons) => reasons.join("; "),
            RunStatus::Valid => "valid".to_owned(),
        };
        let said = reasons(of([Ok(station(80, -50)), Ok(station(40, -50))]));
        assert!(
            said.contains("width 80 MHz") && said.contains("and is") && said.contains("width 40 MHz"),
            "{said}"
        );
        let gone = || Err("wlan0 of ssh:lab is not associated".to_owned());
        let said = reasons(of([Ok(station(80, -50)), gone()]));
        assert_eq!(said, "after the trial, wlan0 of ssh:lab is not associated");
        assert!(reasons(of([gone(), gone()])).starts_with("before the trial, wlan0"));
    }
}
