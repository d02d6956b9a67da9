//! The levels of a cell's factors that most studies leave at their defaults.

use crate::wifi::WifiLevels;
use crate::{
    Direction, Factor, FlowOffload, Generator, IoChoice, Mechanism, Pinning, RouterQueue, RuleForm, Services,
    Systems, Tracking, Translator, Tuning,
};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// A cell's settings ([`Factor::is_setting`]). A setting that is `None` keeps its default. In records and JSON,
/// settings are a map of factors to levels in the spelling of study files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "BTreeMap<Factor, String>", try_from = "BTreeMap<Factor, String>")]
pub struct CellSettings {
    pub os: Option<AsWritten<Systems>>,
    pub services: Option<AsWritten<Services>>,
    pub mechanism: Option<Mechanism>,
    pub router_os: Option<AsWritten<Systems>>,
    pub translator: Option<Translator>,
    pub rules: Option<u32>,
    pub rule_form: Option<RuleForm>,
    pub routes: Option<u32>,
    pub destinations: Option<u32>,
    pub neighbours: Option<u32>,
    pub conntrack: Option<Tracking>,
    pub flow_offload: Option<FlowOffload>,
    pub router_queue: Option<RouterQueue>,
    /// The level of factor `clients`.
    pub customers: Option<u32>,
    pub io: Option<IoChoice>,
    pub flows: Option<u32>,
    pub direction: Option<Direction>,
    pub mtu: Option<u32>,
    pub queue_length: Option<u32>,
    pub pinning: Option<Pinning>,
    pub tuning: Tuning,
    pub wifi: WifiLevels,
    pub generator: Option<Generator>,
    /// The folder of the generator's programs; `None`: those in PATH.
    pub programs: Option<String>,
    /// The name of the `[[program]]` that is measured.
    pub program: Option<String>,
}

impl CellSettings {
    /// The settings that are set, in the order of [`Factor::ALL`], with levels in the spelling of study files.
    pub fn levels(&self) -> impl Iterator<Item = (Factor, String)> {
        Factor::ALL.iter().filter_map(|factor| Some((*factor, self.get(*factor)?)))
    }
}

/// Orders by the settings that are set, in the order of [`Factor::ALL`], then by the text of the level.
impl Ord for CellSettings {
    fn cmp(&self, other: &Self) -> Ordering {
        self.levels().cmp(other.levels())
    }
}

impl PartialOrd for CellSettings {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<CellSettings> for BTreeMap<Factor, String> {
    fn from(settings: CellSettings) -> Self {
        settings.levels().collect()
    }
}

impl TryFrom<BTreeMap<Factor, String>> for CellSettings {
    type Error = String;

    fn try_from(levels: BTreeMap<Factor, String>) -> Result<Self, Self::Error> {
        let mut settings = CellSettings::default();
        levels.iter().try_for_each(|(factor, level)| settings.set(*factor, level))?;
        Ok(settings)
    }
}

/// A value with several spellings (`gvisor->uml`, `gvisor -> uml`): reports and records keep the study's.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AsWritten<T> {
    value: T,
    text: String,
}

impl<T> Deref for AsWritten<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ToString> From<T> for AsWritten<T> {
    fn from(value: T) -> Self {
        AsWritten { text: value.to_string(), value }
    }
}

impl<T: FromStr> FromStr for AsWritten<T> {
    type Err = T::Err;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(AsWritten { value: text.parse()?, text: text.to_owned() })
    }
}

impl<T> fmt::Display for AsWritten<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Io, Service, SocketKind, System};

    /// A level of each setting before those of Wi-Fi, and of each after them.
    const BEFORE: [(&str, &str); 30] = [
        ("os", "gvisor->uml"),
        ("services", "dhcp + dns"),
        ("mechanism", "6in4"),
        ("router_os", "uml"),
        ("translator", "jool"),
        ("rules", "1000"),
        ("rule_form", "set"),
        ("routes", "100000"),
        ("destinations", "1000"),
        ("neighbours", "10000"),
        ("conntrack", "off"),
        ("flow_offload", "on"),
        ("router_queue", "thread"),
        ("clients", "4"),
        ("io", "auto"),
        ("flows", "4"),
        ("direction", "both"),
        ("mtu", "9000"),
        ("queue_length", "100"),
        ("pinning", "halves"),
        ("socket", "ipv4-mapped"),
        ("send_buffer", "65536"),
        ("receive_buffer", "8192"),
        ("mss", "1200"),
        ("nodelay", "false"),
        ("congestion_control", "reno"),
        ("dscp", "46"),
        ("flow_label", "7"),
        ("busy_poll", "50"),
        ("kernel_pacing", "true"),
    ];
    const AFTER: [(&str, &str); 3] =
        [("generator", "iperf3"), ("programs", "base/src"), ("program", "nginx")];

    /// A level of each setting.
    fn list_levels() -> Vec<(&'static str, &'static str)> {
        [&BEFORE[..], &crate::wifi::network::tests::LEVELS, &AFTER].concat()
    }

    fn all() -> CellSettings {
        let mut settings = CellSettings::default();
        for (factor, level) in list_levels() {
            settings.set(factor.parse().unwrap(), level).unwrap();
        }
        settings
    }

    #[test]
    fn every_setting_keeps_its_level_as_written() {
        let settings = all();
        let levels: Vec<(Factor, String)> = settings.levels().collect();
        let text: Vec<(&str, &str)> = levels.iter().map(|(f, level)| (f.name(), level.as_str())).collect();
        assert_eq!(text, list_levels());
        assert_eq!(levels.len(), Factor::ALL.iter().filter(|factor| factor.is_setting()).count());
        assert_eq!(settings.os.as_deref(), Some(&Systems([System::Gvisor, System::Uml])));
        assert!(settings.services.as_deref().is_some_and(|services| services.contains(Service::Dns)));
        assert_eq!((settings.io, settings.mtu), (Some(IoChoice::Auto), Some(9000)));
        assert_eq!(settings.pinning, Some(Pinning::Halves));
    }

    #[test]
    fn records_hold_a_map_of_factors_to_levels() {
        let json = serde_json::to_string(&all()).unwrap();
        let members: Vec<String> =
            list_levels().iter().map(|(f, level)| format!("\"{f}\":\"{level}\"")).collect();
        assert_eq!(json, format!("{{{}}}", members.join(",")));
        assert_eq!(serde_json::from_str::<CellSettings>(&json).unwrap(), all());
        assert_eq!(serde_json::from_str::<CellSettings>("{}").unwrap(), CellSettings::default());
        for hostile in [r#"{"mtu":"banana"}"#, r#"{"family":"ipv4"}"#, r#"{"banana":"1"}"#] {
            assert!(serde_json::from_str::<CellSettings>(hostile).is_err(), "{hostile}");
        }
    }

    #[test]
    fn settings_are_in_the_order_of_their_maps() {
        let mut each = vec![CellSettings::default(), all()];
        for (factor, level) in
            [("os", "uml"), ("flows", "10"), ("flows", "4"), ("mtu", "9000"), ("nodelay", "true")]
        {
            let mut settings = CellSettings::default();
            settings.set(factor.parse().unwrap(), level).unwrap();
            each.push(settings.clone());
            settings.tuning.dscp = Some(46);
            each.push(settings);
        }
        for (a, b) in each.iter().flat_map(|a| each.iter().map(move |b| (a, b))) {
            let [one, other] = [a, b].map(|settings| BTreeMap::from(settings.clone()));
            assert_eq!(a.cmp(b), one.cmp(&other), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn what_is_no_level_is_said() {
        for (factor, level, expected) in [
            (Factor::Io, "fast", "`fast` is not a level of factor io"),
            (Factor::Dscp, "256", "`256` is not a level of factor dscp"),
            (Factor::Size, "64", "`64` is not a level of factor size"),
        ] {
            let error = CellSettings::default().set(factor, level).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        assert_eq!("sendmmsg".parse(), Ok(IoChoice::Path(Io::Sendmmsg)));
    }

    #[test]
    fn socket_options_are_told_as_they_are_set() {
        let expected = Tuning {
            socket: Some(SocketKind::Ipv4Mapped),
            send_buffer: Some(65536),
            receive_buffer: Some(8192),
            mss: Some(1200),
            nodelay: Some(false),
            congestion_control: Some("reno".into()),
            dscp: Some(46),
            flow_label: Some(7),
            busy_poll_us: Some(50),
            kernel_pacing: Some(true),
        };
        assert_eq!(all().tuning, expected);
        assert_eq!(CellSettings::default().tuning, Tuning::default());
    }
}
