//! The access point: hostapd.

use crate::{ControlSocket, Daemon, SSID, WifiSpec};
use stacklab_model::wifi::{Attachment, Guard, LegacyRate, Width};
use stacklab_testbed::{Attempt, BRIDGE, Fault, INTERFACE};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout for the network to be up. For 40 MHz, hostapd first looks for networks beside it.
const TIMEOUT: Duration = Duration::from_secs(15);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn start(pid: u32, spec: &WifiSpec, folder: &Path) -> Result<Daemon, Fault> {
    let mut daemon = Daemon::start("hostapd", pid, folder, &config(spec, folder), [])?;
    let mut control = ControlSocket::open(folder, INTERFACE, || daemon.check())?;
    let start = Instant::now();
    loop {
        daemon.check().attempt("keep the access point running")?;
        let status = control.status()?;
        let state = status.get("state").map_or("", String::as_str);
        if state == "ENABLED" {
            return Ok(daemon);
        }
        if start.elapsed() > TIMEOUT {
            let what = format!("it is {state} after {} s{}", TIMEOUT.as_secs(), daemon.last_words());
            return Err(io::Error::new(io::ErrorKind::TimedOut, what)).attempt("open the network");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// hostapd.conf: 802.11n, with the rates of 802.11b only if one of them is basic.
fn config(spec: &WifiSpec, folder: &Path) -> String {
    let settings = &spec.settings;
    let with_dsss = settings.basic_rate.is_dsss();
    let supported = LegacyRate::ALL.iter().copied().filter(|rate| with_dsss || !rate.is_dsss());
    let mut lines = vec![
        format!("interface={INTERFACE}"),
        "driver=nl80211".to_owned(),
        format!("ctrl_interface={}", folder.display()),
        format!("ssid={SSID}"),
        "hw_mode=g".to_owned(),
        format!("channel={}", settings.channel),
        "ieee80211n=1".to_owned(),
        "wmm_enabled=1".to_owned(),
        format!("supported_rates={}", rates(supported)),
        format!("basic_rates={}", rates(settings.basic_rates())),
        format!("dtim_period={}", settings.dtim),
        format!("multicast_to_unicast={}", u8::from(settings.multicast_to_unicast)),
    ];
    // The second channel is above the primary one, where there is room for it.
    let second = match settings.width {
        Width::Mhz20 => "",
        Width::Mhz40 if settings.channel <= 7 => "[HT40+]",
        Width::Mhz40 => "[HT40-]",
    };
    let guard = match (settings.guard, settings.width) {
        (Guard::Long, _) => "",
        (Guard::Short, Width::Mhz20) => "[SHORT-GI-20]",
        (Guard::Short, Width::Mhz40) => "[SHORT-GI-20][SHORT-GI-40]",
    };
    lines.push(format!("ht_capab={second}{guard}"));
    if settings.receiver == Attachment::Wired {
        lines.push(format!("bridge={BRIDGE}"));
    }
    if let Some((passphrase, key_management, _, protected_management)) = spec.access_point.keys() {
        lines.push(format!("wpa=2\nwpa_key_mgmt={key_management}\nrsn_pairwise=CCMP"));
        lines.push(format!("ieee80211w={protected_management}\nwpa_passphrase={}", passphrase.text()));
    }
    lines.join("\n") + "\n"
}

fn rates(rates: impl IntoIterator<Item = LegacyRate>) -> String {
    let texts = rates.into_iter().map(|rate| (rate.kbit_per_second() / 100).to_string());
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Passphrase, Security};
    use stacklab_model::wifi::WifiSettings;

    fn open(settings: WifiSettings) -> String {
        let spec = WifiSpec::new(settings, Security::Open, [Security::Open, Security::Open]).unwrap();
        config(&spec, Path::new("/run/ap"))
    }

    #[test]
    fn an_access_point_is_configured_for_its_channel() {
        let usual = WifiSettings::default();
        let text = open(usual.clone());
        assert!(text.contains("\nht_capab=[HT40+][SHORT-GI-20][SHORT-GI-40]\n"), "{text}");
        assert!(!text.contains("wpa") && text.contains("\nctrl_interface=/run/ap\n"), "{text}");
        assert!(text.contains("\ndtim_period=2\nmulticast_to_unicast=0\n"), "{text}");
        assert!(open(WifiSettings { channel: 11, ..usual.clone() }).contains("[HT40-]"));
        let narrow = open(WifiSettings { width: Width::Mhz20, ..usual.clone() });
        assert!(narrow.contains("\nht_capab=[SHORT-GI-20]\n"), "{narrow}");
        let long = open(WifiSettings { guard: Guard::Long, ..usual });
        assert!(long.contains("\nht_capab=[HT40+]\n"), "{long}");
    }

    #[test]
    fn rates_of_802_11b_are_there_if_one_is_basic() {
        let usual = WifiSettings::default();
        let text = open(usual.clone());
        let rates = "\nsupported_rates=60 90 120 180 240 360 480 540\nbasic_rates=60 120 240\n";
        assert!(text.contains(rates), "{text}");
        let text = open(WifiSettings { basic_rate: LegacyRate::Dsss1, ..usual });
        let rates =
            "\nsupported_rates=10 20 55 110 60 90 120 180 240 360 480 540\nbasic_rates=10 60 120 240\n";
        assert!(text.contains(rates), "{text}");
    }

    #[test]
    fn an_access_point_has_its_passphrase() {
        let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        let spec = WifiSpec::with_security(Security::Wpa2(passphrase));
        let text = config(&spec, Path::new("/run/ap"));
        let keys =
            "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nieee80211w=0\nwpa_passphrase=sixteen bytes ok\n";
        assert!(text.ends_with(keys), "{text}");
    }

    #[test]
    fn wpa3_is_sae_with_protected_management_frames() {
        let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        let text = config(&WifiSpec::with_security(Security::Wpa3(passphrase)), Path::new("/run/ap"));
        let keys =
            "wpa=2\nwpa_key_mgmt=SAE\nrsn_pairwise=CCMP\nieee80211w=2\nwpa_passphrase=sixteen bytes ok\n";
        assert!(text.ends_with(keys), "{text}");
    }

    #[test]
    fn access_point_bridges_a_wire_only_if_there_is_one() {
        let usual = WifiSettings::default();
        assert!(!open(usual.clone()).contains("bridge"));
        assert!(open(WifiSettings { receiver: Attachment::Wired, ..usual }).ends_with("\nbridge=br0\n"));
    }
}
