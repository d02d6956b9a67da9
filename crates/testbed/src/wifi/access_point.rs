//! The access point: hostapd.

use super::control::Control;
use super::daemon::Daemon;
use super::spec::{SSID, Security, Width, WifiSpec};
use crate::error::{Attempt, Fault};
use crate::link::addressing::INTERFACE;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout for the network to be up. For 40 MHz, hostapd first looks for networks beside it.
const PATIENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// Starts the access point in the network namespace of a process, and waits until its network is up.
pub(super) fn start(pid: u32, spec: &WifiSpec, folder: &Path) -> Result<Daemon, Fault> {
    let mut daemon = Daemon::start("hostapd", pid, folder, &config(spec, folder), [])?;
    let mut control = Control::open(folder, INTERFACE, || daemon.check())?;
    let start = Instant::now();
    loop {
        daemon.check().attempt("keep the access point running")?;
        let status = control.status()?;
        let state = status.get("state").map_or("", String::as_str);
        if state == "ENABLED" {
            return Ok(daemon);
        }
        if start.elapsed() > PATIENCE {
            let what = format!("it is {state} after {} s{}", PATIENCE.as_secs(), daemon.last_words());
            return Err(io::Error::new(io::ErrorKind::TimedOut, what)).attempt("open the network");
        }
        std::thread::sleep(LOOK);
    }
}

/// hostapd.conf: 802.11n without the rates of 802.11b.
fn config(spec: &WifiSpec, folder: &Path) -> String {
    let mut lines = vec![
        format!("interface={INTERFACE}"),
        "driver=nl80211".to_owned(),
        format!("ctrl_interface={}", folder.display()),
        format!("ssid={SSID}"),
        "hw_mode=g".to_owned(),
        format!("channel={}", spec.channel),
        "ieee80211n=1".to_owned(),
        "wmm_enabled=1".to_owned(),
        // In 100 kbit/s.
        "supported_rates=60 90 120 180 240 360 480 540".to_owned(),
        "basic_rates=60 120 240".to_owned(),
    ];
    // The second channel is above the primary one, where there is room for it.
    let second = match spec.width {
        Width::Mhz20 => "",
        Width::Mhz40 if spec.channel <= 7 => "[HT40+][SHORT-GI-40]",
        Width::Mhz40 => "[HT40-][SHORT-GI-40]",
    };
    lines.push(format!("ht_capab={second}[SHORT-GI-20]"));
    if let Security::Wpa2(passphrase) = &spec.access_point {
        lines.push("wpa=2".to_owned());
        lines.push("wpa_key_mgmt=WPA-PSK".to_owned());
        lines.push("rsn_pairwise=CCMP".to_owned());
        lines.push(format!("wpa_passphrase={}", passphrase.text()));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::spec::Passphrase;

    #[test]
    fn an_access_point_is_configured_for_its_channel_and_security() {
        let folder = Path::new("/run/ap");
        let open = WifiSpec::with_security(Security::Open);
        let text = config(&open, folder);
        assert!(text.contains("\nht_capab=[HT40+][SHORT-GI-40][SHORT-GI-20]\n"), "{text}");
        assert!(!text.contains("wpa") && text.contains("\nctrl_interface=/run/ap\n"), "{text}");
        assert!(config(&WifiSpec { channel: 11, ..open.clone() }, folder).contains("[HT40-]"));
        let narrow = config(&WifiSpec { width: Width::Mhz20, ..open }, folder);
        assert!(narrow.contains("\nht_capab=[SHORT-GI-20]\n"), "{narrow}");
        let passphrase = Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap();
        let text = config(&WifiSpec::with_security(Security::Wpa2(passphrase)), folder);
        assert!(
            text.ends_with(
                "wpa=2\nwpa_key_mgmt=WPA-PSK\nrsn_pairwise=CCMP\nwpa_passphrase=sixteen bytes ok\n"
            ),
            "{text}"
        );
    }
}
