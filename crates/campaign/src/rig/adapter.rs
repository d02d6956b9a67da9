//! Wi-Fi adapters of real machines: what their kernels say of them, by `iw`, and what that adds to a run.

use crate::CampaignError;
use crate::rig::addresses::read_addresses;
use crate::rig::ssh::ask;
use crate::trial::AdapterEvidence;
use crate::trial::source::ReportSource;
use crate::trial::wifi::invalid;
use stacklab_model::{Station, StationReport, System, printable_text};
use stacklab_trial::{Figures, validate};
use std::fmt;
use std::net::IpAddr;

/// A machine's Wi-Fi adapter on the network under test.
pub(crate) struct Adapter {
    system: System,
    interface: String,
}

/// Where iw and wpa_cli are that are not on a user's path.
const PATHS: &str = "PATH=$PATH:/usr/sbin:/sbin";

impl Adapter {
    /// The adapter with one of these addresses of a machine; `None` if that is not Wi-Fi, or is unknown. An error if it
    /// is Wi-Fi, and the machine has no `iw` that says its state.
    pub(crate) fn find(system: &System, addresses: &[IpAddr]) -> Result<Option<Self>, CampaignError> {
        let listed = ask(system, &["ip", "-o", "addr", "show"], "read the addresses");
        let Some(interface) = listed.ok().and_then(|listed| interface_of(&listed, addresses)) else {
            return Ok(None);
        };
        // It is not Wi-Fi if neither tool nor kernel says so.
        let script = format!(
            "{PATHS}; iw dev {interface} info 2>/dev/null || test ! -e /sys/class/net/{interface}/phy80211"
        );
        let output = run(system, &script, &format!("read the state of {interface} (is iw installed?)"))?;
        let adapter = Adapter { system: system.clone(), interface };
        Ok((!output.trim().is_empty()).then_some(adapter))
    }

    /// Checks that no machine is controlled over the adapter: requests and answers would contend with the trials.
    pub(crate) fn check_control_path(&self, other: &System) -> Result<(), CampaignError> {
        // Where the adapter is on this machine, its way to the other one counts.
        let is_here = !matches!(self.system, System::Ssh(_));
        let reached = if is_here { other } else { &self.system };
        if !matches!(reached, System::Ssh(_)) {
            return Ok(());
        }
        let output = ask(reached, &["printenv", "SSH_CONNECTION"], "read how it is reached")?;
        let Some([client, server]) = control(&output) else {
            let said = printable_text(output.trim());
            return Err(CampaignError::Unreachable(format!(
                "{reached} does not report its ssh connection: {said:?}"
            )));
        };
        let to = if is_here { server } else { client }.to_string();
        let route =
            ask(&self.system, &["ip", "-o", "route", "get", &to], &format!("read the route to {to}"))?;
        let listed = ask(&self.system, &["ip", "-o", "addr", "show"], "read the addresses")?;
        let own = interface_of(&listed, &[server]).is_some_and(|interface| interface == self.interface);
        if own || device(&route) == Some(&self.interface) {
            return Err(CampaignError::Usage(format!(
                "{} of {} is Wi-Fi that the study measures, and ssh to {reached} goes over it: it would contend with \
                 the trials. Have ssh reach {reached} over another network (HostName in ~/.ssh/config)",
                self.interface, self.system
            )));
        }
        Ok(())
    }

    pub(crate) fn look(&self) -> Result<Station, String> {
        let interface = &self.interface;
        let script = format!(
            "{PATHS}; iw dev {interface} info && iw dev {interface} link && iw dev {interface} get power_save; \
             wpa_cli -i {interface} status 2>/dev/null || true"
        );
        let output = run(&self.system, &script, &format!("read the state of {interface}"));
        let output = output.map_err(|error| error.to_string())?;
        read(&output).ok_or_else(|| format!("{interface} of {} is not associated", self.system))
    }
}

impl fmt::Display for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.interface, self.system)
    }
}

/// Runs a script without single quotes by a machine's shell.
fn run(system: &System, script: &str, attempted: &str) -> Result<String, CampaignError> {
    let quoted = format!("'{script}'");
    let script = if matches!(system, System::Ssh(_)) { &quoted } else { script };
    ask(system, &["sh", "-c", script], attempted)
}

/// The interface with one of these addresses. `None` also if a shell could take its name for something else.
fn interface_of(listed: &str, addresses: &[IpAddr]) -> Option<String> {
    let (name, _) = read_addresses(listed).into_iter().find(|(_, address)| addresses.contains(address))?;
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    is_plain.then(|| name.to_owned())
}

/// How a study reaches a machine: the address at this end, and the machine's own. SSH_CONNECTION is `CLIENT PORT SERVER
/// PORT`; a link-local address has a zone.
fn control(output: &str) -> Option<[IpAddr; 2]> {
    let words: Vec<&str> = output.split_whitespace().collect();
    Some([parse_address(words.first()?)?, parse_address(words.get(2)?)?])
}

fn parse_address(word: &str) -> Option<IpAddr> {
    word.split('%').next()?.parse().ok()
}

fn device(route: &str) -> Option<&str> {
    let mut words = route.split_whitespace().skip_while(|word| *word != "dev");
    words.nth(1)
}

/// Reads what `iw dev X info`, `link` and `get power_save` print, and the lines of wpa_cli, if there are any. `None` if
/// it is not associated.
fn read(output: &str) -> Option<Station> {
    let line = |prefix: &str| output.lines().find_map(|line| line.trim().strip_prefix(prefix));
    // channel 1 (2412 MHz), width: 40 MHz, center1: 2422 MHz
    let channel = line("channel ")?;
    let after = |name: &str| channel.split_once(name)?.1.split_whitespace().next()?.parse().ok();
    Some(Station {
        ssid: shorten(line("SSID: ").unwrap_or_default()),
        bssid: shorten(line("Connected to ")?.split_whitespace().next()?),
        cipher: shorten(line("pairwise_cipher=").unwrap_or("unknown")),
        key_management: shorten(line("key_mgmt=").unwrap_or("unknown")),
        management_cipher: line("mgmt_group_cipher=").map(shorten),
        power_save: line("Power save: ").map(|state| state.trim() == "on"),
        frequency: after("(")?,
        width: after("width: ").unwrap_or(20),
        center: after("center1: ").unwrap_or(after("(")?),
        signal_dbm: line("signal: ").and_then(|signal| signal.split_whitespace().next()?.parse().ok()),
        tx_bitrate: line("tx bitrate: ").map(shorten),
        frames: Vec::new(),
    })
}

/// How much of a machine's text is kept, characters.
const MAX_LENGTH: usize = 100;

fn shorten(text: &str) -> String {
    printable_text(text.trim()).chars().take(MAX_LENGTH).collect()
}

/// Adds the adapters to the reports. One that was not associated before or after the trial, or was associated otherwise
/// afterwards, makes the run invalid. Signal and bit rate may change.
pub(crate) fn apply_adapters(
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
                let before = before.clone();
                let after = after.clone();
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
    use crate::trial::fixtures::{join_reasons, make_receiver_report, stream_of};
    use crate::trial::source::report_sources;
    use stacklab_model::{Direction, RunStatus};

    const TOLD: &str = "Interface wlan0\n\tifindex 3\n\taddr 02:00:00:00:00:01\n\tssid office\n\ttype managed\n\
        \tchannel 36 (5180 MHz), width: 80 MHz, center1: 5210 MHz\n\ttxpower 20.00 dBm\n\
        Connected to 02:00:00:00:00:03 (on wlan0)\n\tSSID: office net\n\tfreq: 5180.0\n\tsignal: -50 dBm\n\
        \ttx bitrate: 866.7 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 2\nPower save: on\n";

    #[test]
    fn an_adapter_is_read_as_iw_prints_it() {
        let station = read(TOLD).unwrap();
        assert_eq!((station.ssid.as_str(), station.bssid.as_str()), ("office net", "02:00:00:00:00:03"));
        assert_eq!((station.frequency, station.width, station.center), (5180, 80, 5210));
        assert_eq!((station.signal_dbm, station.power_save), (Some(-50), Some(true)));
        assert!(station.tx_bitrate.as_deref().unwrap().starts_with("866.7 MBit/s"));
        assert_eq!((station.cipher.as_str(), station.key_management.as_str()), ("unknown", "unknown"));
        let with =
            read(&format!("{TOLD}pairwise_cipher=CCMP\nkey_mgmt=SAE\nmgmt_group_cipher=BIP\n")).unwrap();
        assert_eq!((with.cipher.as_str(), with.key_management.as_str()), ("CCMP", "SAE"));
        assert_eq!(with.management_cipher.as_deref(), Some("BIP"));
        let narrow = read(&TOLD.replace(", width: 80 MHz, center1: 5210 MHz", "")).unwrap();
        assert_eq!((narrow.width, narrow.center), (20, 5180));
        for gone in ["Not connected.\n", "", "channel 1 (x MHz)\nConnected to \n"] {
            assert_eq!(read(gone), None, "{gone}");
        }
        let title = read(&TOLD.replace("office net", "\u{1b}]0;x\u{7}")).unwrap();
        assert!(!title.ssid.contains('\u{1b}'), "{title:?}");
    }

    #[test]
    fn an_interface_is_found_by_its_address() {
        let listed = "1: lo    inet 127.0.0.1/8 scope host lo\n\
            3: wlan0    inet 192.0.2.7/24 brd 192.0.2.255 scope global wlan0\\  valid_lft\n\
            3: wlan0    inet6 fe80::7/64 scope link \\ x\n4: a;b    inet 192.0.2.9/24 scope global a;b\n";
        for (address, interface) in [
            ("192.0.2.7", Some("wlan0")),
            ("fe80::7", Some("wlan0")),
            ("192.0.2.8", None),
            ("192.0.2.9", None),
        ] {
            let found = interface_of(listed, &[address.parse().unwrap()]);
            assert_eq!(found.as_deref(), interface, "{address}");
        }
    }

    #[test]
    fn the_way_of_the_control_connection_is_read() {
        let [client, server] = control("fe80::1%eth0 5022 fe80::2%wlan0 22\n").unwrap();
        assert_eq!((client.to_string(), server.to_string()), ("fe80::1".to_owned(), "fe80::2".to_owned()));
        assert!(control("").is_none() && control("192.0.2.1 22 x 22").is_none());
        assert_eq!(device("192.0.2.1 via 192.0.2.254 dev wlan0 src 192.0.2.7 uid 0"), Some("wlan0"));
        assert_eq!(device("unreachable"), None);
    }

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
        let (_, made) = stream_of(vec![make_receiver_report(0, 0.0), make_receiver_report(0, 0.0)]);
        apply_adapters(made, &report_sources(Direction::Forward), &[None, Some(receiver)])
    }

    #[test]
    fn adapter_is_in_the_report_and_its_signal_may_change() {
        let made = of([Ok(station(80, -50)), Ok(station(80, -52))]);
        assert_eq!(made.status, RunStatus::Valid);
        let stations: Vec<_> = made.host_reports.iter().map(|report| report.station.clone()).collect();
        let [None, Some(receiver)] = &stations[..] else { panic!("{stations:?}") };
        assert_eq!((receiver.seed, receiver.after.signal_dbm), (None, Some(-52)));
    }

    #[test]
    fn an_association_that_changed_makes_the_run_invalid() {
        let said = join_reasons(of([Ok(station(80, -50)), Ok(station(40, -50))]));
        assert!(
            said.contains("width 80 MHz") && said.contains("and is") && said.contains("width 40 MHz"),
            "{said}"
        );
        let gone = Err("wlan0 of ssh:lab is not associated".to_owned());
        let said = join_reasons(of([Ok(station(80, -50)), gone.clone()]));
        assert_eq!(said, "after the trial, wlan0 of ssh:lab is not associated");
        assert!(join_reasons(of([gone.clone(), gone])).starts_with("before the trial, wlan0"));
    }
}
