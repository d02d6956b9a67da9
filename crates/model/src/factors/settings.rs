//! The levels of a cell's factors that most studies leave at their defaults.

use crate::factors::engine::Engine;
use crate::factors::factor::Factor;
use crate::factors::mechanism::{Mechanism, Translator};
use crate::factors::services::Services;
use crate::factors::system::Systems;
use crate::trial::io::IoChoice;
use crate::trial::tuning::{Direction, Pinning, Tuning};
use crate::units::Nanoseconds;
use crate::wifi::{Attachment, Clock, Guard, LegacyRate, Security, Width};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

/// The one table of settings: field, type and factor. A level's text is what its type prints and parses.
macro_rules! settings {
    ($($(#[$doc:meta])* $field:ident: $type:ty = $factor:ident,)+) => {
        /// A cell's settings ([`Factor::is_setting`]). A setting that is `None` keeps its default. In records and
        /// JSON, settings are a map of factors to levels in the spelling of study files.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(into = "BTreeMap<Factor, String>", try_from = "BTreeMap<Factor, String>")]
        pub struct CellSettings { $($(#[$doc])* pub $field: Option<$type>,)+ }

        impl CellSettings {
            /// The level of a factor in the spelling of study files; `None` if it is not set, or if the factor is not
            /// a setting.
            pub fn get(&self, factor: Factor) -> Option<String> {
                match factor {
                    $(Factor::$factor => self.$field.as_ref().map(ToString::to_string),)+
                    Factor::Family | Factor::Transport | Factor::Framing | Factor::Size | Factor::Replica => None,
                }
            }

            /// Sets a factor to a level, given in the spelling of study files.
            ///
            /// # Errors
            /// If the text is not a level of the factor, or the factor is not a setting.
            pub fn set(&mut self, factor: Factor, level: &str) -> Result<(), UnknownLevel> {
                let unknown = || UnknownLevel { factor, level: level.to_owned() };
                match factor {
                    $(Factor::$factor => self.$field = Some(level.parse().map_err(|_| unknown())?),)+
                    Factor::Family | Factor::Transport | Factor::Framing | Factor::Size | Factor::Replica => {
                        return Err(unknown());
                    }
                }
                Ok(())
            }
        }
    };
}

settings! {
    /// The operating systems of the hosts.
    os: AsWritten<Systems> = Os,
    /// The services that run on the receiver.
    services: AsWritten<Services> = Services,
    /// How packets cross the network between the routers.
    mechanism: Mechanism = Mechanism,
    /// The operating systems of the routers.
    routers: AsWritten<Systems> = Routers,
    /// The translator on the routers.
    translator: Translator = Translator,
    /// How messages enter and leave the kernel.
    io: IoChoice = Io,
    /// Number of parallel flows.
    flows: u32 = Flows,
    /// Direction of a stream.
    direction: Direction = Direction,
    /// Largest IP packet of the link, bytes.
    mtu: u32 = Mtu,
    /// Queue length at each end of the link, packets.
    queue_length: u32 = QueueLength,
    /// Processors of the hosts.
    pinning: Pinning = Pinning,
    /// SO_SNDBUF, bytes.
    send_buffer: u32 = SendBuffer,
    /// SO_RCVBUF, bytes.
    receive_buffer: u32 = ReceiveBuffer,
    /// TCP's maximum segment size (TCP_MAXSEG), bytes.
    mss: u32 = Mss,
    /// TCP_NODELAY.
    nodelay: bool = Nodelay,
    /// TCP's congestion control (TCP_CONGESTION).
    congestion_control: String = CongestionControl,
    /// Differentiated services code point.
    dscp: u8 = Dscp,
    /// IPv6 flow label.
    flow_label: u32 = FlowLabel,
    /// Microseconds of busy polling in the kernel (SO_BUSY_POLL).
    busy_poll: u32 = BusyPoll,
    /// Whether the kernel paces a TCP stream's schedule (SO_MAX_PACING_RATE).
    kernel_pacing: bool = KernelPacing,
    /// Width of a Wi-Fi channel.
    width: Width = Width,
    /// MCS index of data frames.
    mcs: u8 = Mcs,
    /// Guard interval of data frames.
    guard: Guard = Guard,
    /// Primary channel.
    channel: u8 = Channel,
    /// Security of a Wi-Fi network.
    security: Security = Security,
    /// Most frames of an A-MPDU.
    aggregation_frames: u32 = AggregationFrames,
    /// Most bytes of an A-MPDU.
    aggregation_bytes: u32 = AggregationBytes,
    /// Longest PPDU of an A-MPDU.
    aggregation_time: AsWritten<Nanoseconds> = AggregationTime,
    /// DTIM period, beacons.
    dtim: u8 = Dtim,
    /// Lowest basic rate.
    basic_rate: LegacyRate = BasicRate,
    /// Whether group frames are sent to each station alone.
    multicast_to_unicast: bool = MulticastToUnicast,
    /// Lifetime of the ends' neighbour entries.
    neighbour_lifetime: AsWritten<Nanoseconds> = NeighbourLifetime,
    /// Whether idle stations sleep.
    power_save: bool = PowerSave,
    /// How the receiver is connected.
    receiver: Attachment = Receiver,
    /// Other stations, which always have something to send.
    stations: u8 = Stations,
    /// Signal to noise ratio, dB.
    snr: u8 = Snr,
    /// The network's clock.
    time: Clock = Time,
    /// The program that drives the traffic.
    engine: Engine = Engine,
}

impl CellSettings {
    /// Whether no setting is set.
    pub fn is_empty(&self) -> bool {
        *self == CellSettings::default()
    }

    /// The settings that are set, in the order of [`Factor::ALL`], with levels in the spelling of study files.
    pub fn levels(&self) -> impl Iterator<Item = (Factor, String)> {
        Factor::ALL.iter().filter_map(|factor| Some((*factor, self.get(*factor)?)))
    }

    /// The socket options among the settings.
    pub fn tuning(&self) -> Tuning {
        Tuning {
            send_buffer: self.send_buffer,
            receive_buffer: self.receive_buffer,
            mss: self.mss,
            nodelay: self.nodelay,
            congestion_control: self.congestion_control.clone(),
            dscp: self.dscp,
            flow_label: self.flow_label,
            busy_poll_us: self.busy_poll,
            kernel_pacing: self.kernel_pacing,
        }
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
    type Error = UnknownLevel;
    fn try_from(levels: BTreeMap<Factor, String>) -> Result<Self, Self::Error> {
        let mut settings = CellSettings::default();
        levels.iter().try_for_each(|(factor, level)| settings.set(*factor, level))?;
        Ok(settings)
    }
}

/// Text that is not a level of a factor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownLevel {
    /// The factor.
    pub factor: Factor,
    /// The invalid text.
    pub level: String,
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a level of factor {}", self.level, self.factor)
    }
}

impl std::error::Error for UnknownLevel {}

/// A value with several spellings (`gvisor->uml` and `gvisor -> uml`) and the spelling that the study uses. Reports
/// and records keep the study's spelling.
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
    /// The value in its usual spelling.
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
    use crate::{Io, Service, System};

    /// A level of each setting.
    const LEVELS: [(&str, &str); 38] = [
        ("os", "gvisor->uml"),
        ("services", "dhcp + dns"),
        ("mechanism", "6in4"),
        ("routers", "uml"),
        ("translator", "jool"),
        ("io", "auto"),
        ("flows", "4"),
        ("direction", "both"),
        ("mtu", "9000"),
        ("queue_length", "100"),
        ("pinning", "halves"),
        ("send_buffer", "65536"),
        ("receive_buffer", "8192"),
        ("mss", "1200"),
        ("nodelay", "false"),
        ("congestion_control", "reno"),
        ("dscp", "46"),
        ("flow_label", "7"),
        ("busy_poll", "50"),
        ("kernel_pacing", "true"),
        ("width", "20"),
        ("mcs", "7"),
        ("guard", "long"),
        ("channel", "6"),
        ("security", "open"),
        ("aggregation_frames", "8"),
        ("aggregation_bytes", "8191"),
        ("aggregation_time", "4000us"),
        ("dtim", "3"),
        ("basic_rate", "1 Mbit/s"),
        ("multicast_to_unicast", "true"),
        ("neighbour_lifetime", "10ms"),
        ("power_save", "true"),
        ("receiver", "wired"),
        ("stations", "2"),
        ("snr", "20"),
        ("time", "real"),
        ("engine", "iperf3"),
    ];

    fn all() -> CellSettings {
        let mut settings = CellSettings::default();
        for (factor, level) in LEVELS {
            settings.set(factor.parse().unwrap(), level).unwrap();
        }
        settings
    }

    #[test]
    fn every_setting_keeps_its_level_as_written_and_knows_what_it_is() {
        let settings = all();
        let levels: Vec<(Factor, String)> = settings.levels().collect();
        let text: Vec<(&str, &str)> = levels.iter().map(|(f, level)| (f.name(), level.as_str())).collect();
        assert_eq!(text, LEVELS);
        assert_eq!(levels.len(), Factor::ALL.iter().filter(|factor| factor.is_setting()).count());
        assert_eq!(settings.os.as_deref(), Some(&Systems([System::Gvisor, System::Uml])));
        assert!(settings.services.as_deref().is_some_and(|services| services.contains(Service::Dns)));
        assert_eq!((settings.io, settings.mtu), (Some(IoChoice::Auto), Some(9000)));
        assert_eq!((settings.pinning, settings.nodelay), (Some(Pinning::Halves), Some(false)));
    }

    #[test]
    fn records_hold_a_map_of_factors_to_levels() {
        let json = serde_json::to_string(&all()).unwrap();
        let members: Vec<String> = LEVELS.iter().map(|(f, level)| format!("\"{f}\":\"{level}\"")).collect();
        assert_eq!(json, format!("{{{}}}", members.join(",")));
        assert_eq!(serde_json::from_str::<CellSettings>(&json).unwrap(), all());
        assert!(serde_json::from_str::<CellSettings>("{}").unwrap().is_empty());
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
            settings.dscp = Some(46);
            each.push(settings);
        }
        for (a, b) in each.iter().flat_map(|a| each.iter().map(move |b| (a, b))) {
            let [one, other] = [a, b].map(|settings| BTreeMap::from(settings.clone()));
            assert_eq!(a.cmp(b), one.cmp(&other), "{a:?} and {b:?}");
        }
    }

    #[test]
    fn what_is_no_level_is_said() {
        let said =
            |factor: Factor, level| CellSettings::default().set(factor, level).unwrap_err().to_string();
        assert_eq!(said(Factor::Io, "fast"), "`fast` is not a level of factor io");
        assert_eq!(said(Factor::Dscp, "256"), "`256` is not a level of factor dscp");
        assert_eq!(said(Factor::Size, "64"), "`64` is not a level of factor size");
        assert_eq!("batch".parse(), Ok(IoChoice::Path(Io::Batch)));
    }

    #[test]
    fn socket_options_are_told_as_they_are_set() {
        let expected = Tuning {
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
        assert_eq!(all().tuning(), expected);
        assert!(CellSettings::default().tuning().is_default());
    }
}
