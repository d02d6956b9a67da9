//! A station: wpa_supplicant.

use crate::radios::netlink::{channel, let_sleep, sleeps};
use crate::{Association, ControlSocket, Daemon, SSID, Security, WifiSpec};
use stacklab_model::printable_text;
use stacklab_testbed::kernel::netlink::{index, raise};
use stacklab_testbed::{Attempt, Fault, INTERFACE};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// A wrong passphrase is known after four seconds: the access point sends the first message of the handshake four
/// times.
const TIMEOUT: Duration = Duration::from_secs(15);
const MOMENT: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Station {
    daemon: Daemon,
    control: ControlSocket,
    security: Security,
}

impl Station {
    pub(super) fn start(
        pid: u32,
        spec: &WifiSpec,
        security: &Security,
        folder: &Path,
    ) -> Result<Self, Fault> {
        let config = config(spec, security, folder);
        let mut daemon =
            Daemon::start("wpa_supplicant", pid, folder, &config, ["-i", INTERFACE, "-D", "nl80211", "-c"])?;
        let mut control = ControlSocket::open(folder, INTERFACE, || daemon.check())?;
        control.attach()?;
        Ok(Station { daemon, control, security: security.clone() })
    }

    /// Waits until it is associated and has its keys, or why that failed. Call it in the station's network namespace.
    pub(super) fn associate(&mut self) -> Result<Result<Association, String>, Fault> {
        let start = Instant::now();
        let mut heard = Vec::new();
        loop {
            self.daemon.check().attempt("keep the station running")?;
            heard.extend(self.control.events(MOMENT)?);
            let status = self.control.status()?;
            if status.get("wpa_state").is_some_and(|state| state == "COMPLETED") {
                return association(&status).map(Ok);
            }
            if let Some(reason) = refusal(&heard) {
                return Ok(Err(reason));
            }
            let late = start.elapsed() > TIMEOUT;
            if late || heard.iter().filter(|event| event.starts_with(NOT_FOUND)).count() >= MISSED {
                let found = self.control.ask("SCAN_RESULTS")?;
                let state = status.get("wpa_state").map_or("unknown", String::as_str);
                let reason = unfound(&found, &self.security).unwrap_or_else(|| {
                    let seconds = start.elapsed().as_secs();
                    format!("its state is {state} after {seconds} s{}", self.daemon.last_words())
                });
                return Ok(Err(reason));
            }
        }
    }
}

/// Scans without the network after which it is given up.
const MISSED: usize = 2;
const NOT_FOUND: &str = "CTRL-EVENT-NETWORK-NOT-FOUND";

/// Sets up the interface of a station in the calling thread's namespace, and lets it sleep if it may.
pub(super) fn prepare(spec: &WifiSpec) -> Result<(), Fault> {
    raise(INTERFACE, spec.settings.mtu)?;
    if spec.settings.power_save { let_sleep(index(INTERFACE)?) } else { Ok(()) }
}

fn association(status: &BTreeMap<String, String>) -> Result<Association, Fault> {
    let index = index(INTERFACE)?;
    let of = |name: &str| status.get(name).cloned().unwrap_or_default();
    Ok(Association {
        channel: channel(index)?,
        ssid: of("ssid"),
        bssid: of("bssid"),
        cipher: of("pairwise_cipher"),
        key_management: of("key_mgmt"),
        management_cipher: management_cipher(status),
        power_save: sleeps(index)?,
    })
}

/// Management frame protection that the association requires (`pmf` 2): the cipher of group management frames.
fn management_cipher(status: &BTreeMap<String, String>) -> Option<String> {
    let required = status.get("pmf").is_some_and(|level| level == "2");
    status.get("mgmt_group_cipher").filter(|_| required).cloned()
}

/// The message of SAE by which the access point proves the key (IEEE 802.11-2020, 12.4.5.4), as events have it.
const SAE_CONFIRM: &str = " auth_type=3 auth_transaction=2 ";

/// What an event says of an association that will not come about.
pub(crate) fn refusal(events: &[String]) -> Option<String> {
    events.iter().find_map(|event| {
        let (name, rest) = event.split_once(' ').unwrap_or((event, ""));
        match name {
            "CTRL-EVENT-SSID-TEMP-DISABLED" if rest.contains("reason=WRONG_KEY") => Some(
                "the passphrase is wrong: the access point does not accept the key made from it (4-way handshake)".to_owned(),
            ),
            "CTRL-EVENT-AUTH-REJECT" if rest.contains(SAE_CONFIRM) => Some(
                "the passphrase is wrong: the access point does not accept the key made from it (SAE)".to_owned(),
            ),
            "CTRL-EVENT-ASSOC-REJECT" | "CTRL-EVENT-AUTH-REJECT" => {
                Some(format!("the access point refuses it ({})", shorten_text(rest.trim())))
            }
            _ => None,
        }
    })
}

const SHOWN: usize = 100;

fn shorten_text(text: &str) -> String {
    printable_text(text).chars().take(SHOWN).collect()
}

/// What a list of found networks says of one that was not chosen. `None` if it should have been.
pub(crate) fn unfound(found: &str, security: &Security) -> Option<String> {
    // bssid, frequency, signal, flags, ssid
    let networks = found.lines().map(|line| line.split('\t').collect::<Vec<_>>());
    let flags =
        networks.filter(|network| network.get(4) == Some(&SSID)).find_map(|network| network.get(3).copied());
    let Some(flags) = flags else { return Some(format!("there is no network named {SSID}")) };
    let protected = flags.contains("WPA");
    let is_right = match security {
        Security::Open => !protected,
        Security::Wpa2(_) => flags.contains("WPA2-PSK"),
        Security::Wpa3(_) => flags.contains("-SAE"),
    };
    let has = if protected { shorten_text(flags) } else { "open".to_owned() };
    (!is_right).then(|| format!("the station expects {security}, and the network is {has}"))
}

/// wpa_supplicant.conf: one network on one channel.
fn config(spec: &WifiSpec, security: &Security, folder: &Path) -> String {
    let keys =
        security.keys().map_or("key_mgmt=NONE".to_owned(), |(passphrase, key_management, _, protected)| {
            let psk = passphrase.text();
            let keys = format!("key_mgmt={key_management}\nproto=RSN\npairwise=CCMP\ngroup=CCMP");
            format!("{keys}\nieee80211w={protected}\npsk=\"{psk}\"")
        });
    let folder = folder.display();
    let frequency = spec.settings.frequency();
    format!(
        "ctrl_interface={folder}\np2p_disabled=1\nnetwork={{\nssid=\"{SSID}\"\nscan_freq={frequency}\n{keys}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Passphrase;

    fn wpa2() -> Security {
        Security::Wpa2(Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap())
    }

    fn wpa3() -> Security {
        Security::Wpa3(Passphrase::try_from("sixteen bytes ok".to_owned()).unwrap())
    }

    #[test]
    fn a_station_is_configured_for_its_security() {
        let spec = WifiSpec::with_security(Security::Open);
        let open = config(&spec, &spec.stations[0], Path::new("/run/sta"));
        assert!(open.contains("\nscan_freq=2412\nkey_mgmt=NONE\n}"), "{open}");
        let secured = config(&spec, &wpa2(), Path::new("/run/sta"));
        assert!(
            secured.contains(
                "key_mgmt=WPA-PSK\nproto=RSN\npairwise=CCMP\ngroup=CCMP\nieee80211w=0\npsk=\"sixteen bytes ok\"\n}"
            )
        );
        let sae = config(&spec, &wpa3(), Path::new("/run/sta"));
        assert!(sae.contains("\nkey_mgmt=SAE\n") && sae.contains("\nieee80211w=2\n"), "{sae}");
    }

    /// What is refused, by this event after one of another kind.
    fn refuse(event: &str) -> Option<String> {
        refusal(&["CTRL-EVENT-SCAN-RESULTS ".to_owned(), event.to_owned()])
    }

    #[test]
    fn a_wrong_passphrase_is_said_in_words() {
        let wrong = "CTRL-EVENT-SSID-TEMP-DISABLED id=0 ssid=\"stacklab\" auth_failures=1 duration=10 reason=WRONG_KEY";
        assert!(refuse(wrong).unwrap().starts_with("the passphrase is wrong"));
        let wrong = "CTRL-EVENT-AUTH-REJECT 02:00:00:00:00:03 auth_type=3 auth_transaction=2 status_code=1";
        assert!(refuse(wrong).unwrap().ends_with("(SAE)"));
        let reason = refuse("CTRL-EVENT-ASSOC-REJECT bssid=02:00:00:00:00:03 status_code=17");
        assert_eq!(reason.unwrap(), "the access point refuses it (bssid=02:00:00:00:00:03 status_code=17)");
        assert_eq!(refuse("CTRL-EVENT-CONNECTED - Connection to 02:00:00:00:00:03 completed"), None);
    }

    fn list_networks(flags: &str) -> String {
        format!(
            "bssid / frequency / signal level / flags / ssid\n02:00:00:00:00:03\t2412\t-50\t{flags}\tstacklab\n"
        )
    }

    #[test]
    fn network_of_other_security_is_not_a_missing_one() {
        let secured = list_networks("[WPA2-PSK-CCMP][ESS]");
        let said = unfound(&secured, &Security::Open).unwrap();
        assert_eq!(said, "the station expects open, and the network is [WPA2-PSK-CCMP][ESS]");
        assert_eq!(unfound(&secured, &wpa2()), None);
        assert_eq!(
            unfound(&list_networks("[ESS]"), &wpa2()).unwrap(),
            "the station expects WPA2, and the network is open"
        );
        assert_eq!(
            unfound(&secured, &wpa3()).unwrap(),
            "the station expects WPA3, and the network is [WPA2-PSK-CCMP][ESS]"
        );
        assert_eq!(unfound(&list_networks("[WPA2-SAE-CCMP][ESS]"), &wpa3()), None);
        assert_eq!(unfound("bssid / ..\n", &wpa2()).unwrap(), "there is no network named stacklab");
    }
}
