//! What a study varies: the factors, one file for each that has its own type of level, and the cell that combines the
//! levels.

pub(crate) mod cell;
pub(crate) mod family;
pub(crate) mod mechanism;
pub(crate) mod programs;
pub(crate) mod router_queue;
pub(crate) mod rules;
pub(crate) mod settings;
pub(crate) mod system;
pub(crate) mod tables;

use crate::CellSettings;
use crate::names::named;

/// The table of factors. Each has a name; a setting also has the field of [`CellSettings`] with its level, whose text
/// is what the field's type prints and parses.
macro_rules! factors {
    (
        cells { $($(#[$of_cell:meta])* $cell:ident = $cell_name:literal,)+ }
        settings { $($(#[$of_setting:meta])* $setting:ident = $setting_name:literal => $($field:ident).+,)+ }
    ) => {
        named! {
            pub enum Factor("factor") {
                $($(#[$of_cell])* $cell = $cell_name,)+
                $($(#[$of_setting])* $setting = $setting_name,)+
            }
        }

        impl Factor {
            /// Whether its level is one of [`CellSettings`].
            pub fn is_setting(self) -> bool {
                !matches!(self, $(Factor::$cell)|+)
            }
        }

        impl CellSettings {
            /// `None` if the level is not set, or the factor is not a setting.
            pub fn get(&self, factor: Factor) -> Option<String> {
                match factor {
                    $(Factor::$setting => self.$($field).+.as_ref().map(ToString::to_string),)+
                    $(Factor::$cell)|+ => None,
                }
            }

            pub fn set(&mut self, factor: Factor, level: &str) -> Result<(), String> {
                match factor {
                    $(Factor::$setting => {
                        self.$($field).+ = Some(level.parse().map_err(|_| factor.unknown(level))?);
                        Ok(())
                    })+
                    $(Factor::$cell)|+ => Err(factor.unknown(level)),
                }
            }
        }
    };
}

factors! {
    cells {
        Family = "family",
        Transport = "transport",
        SizeOf = "size_of",
        Size = "size",
        /// A label without any effect: two replicas of one arm must not differ (an A/A study).
        Replica = "replica",
    }
    settings {
        Os = "os" => os,
        Services = "services" => services,
        Mechanism = "mechanism" => mechanism,
        RouterOs = "router_os" => router_os,
        Translator = "translator" => translator,
        /// Firewall rules on the near router.
        Rules = "rules" => rules,
        RuleForm = "rule_form" => rule_form,
        /// Further routes on the near router.
        Routes = "routes" => routes,
        /// Addresses to which a stream's datagrams go.
        Destinations = "destinations" => destinations,
        /// Further neighbours of the far router.
        Neighbours = "neighbours" => neighbours,
        /// Connection tracking on the near router.
        Conntrack = "conntrack" => conntrack,
        /// A flowtable on the near router.
        FlowOffload = "flow_offload" => flow_offload,
        RouterQueue = "router_queue" => router_queue,
        /// Customers, each with a near router, before one far router.
        Clients = "clients" => customers,
        Io = "io" => io,
        Flows = "flows" => flows,
        Direction = "direction" => direction,
        Mtu = "mtu" => mtu,
        QueueLength = "queue_length" => queue_length,
        Pinning = "pinning" => pinning,
        Socket = "socket" => tuning.socket,
        SendBuffer = "send_buffer" => tuning.send_buffer,
        ReceiveBuffer = "receive_buffer" => tuning.receive_buffer,
        Mss = "mss" => tuning.mss,
        Nodelay = "nodelay" => tuning.nodelay,
        CongestionControl = "congestion_control" => tuning.congestion_control,
        Dscp = "dscp" => tuning.dscp,
        FlowLabel = "flow_label" => tuning.flow_label,
        /// Microseconds of busy polling in the kernel (SO_BUSY_POLL).
        BusyPoll = "busy_poll" => tuning.busy_poll_us,
        KernelPacing = "kernel_pacing" => tuning.kernel_pacing,
        WifiChannelWidth = "wifi.channel_width" => wifi.channel_width,
        WifiMcs = "wifi.mcs" => wifi.mcs,
        WifiGuardInterval = "wifi.guard_interval" => wifi.guard_interval,
        WifiChannel = "wifi.channel" => wifi.channel,
        WifiSecurity = "wifi.security" => wifi.security,
        WifiAggregationFrames = "wifi.aggregation.frames" => wifi.aggregation_frames,
        WifiAggregationBytes = "wifi.aggregation.bytes" => wifi.aggregation_bytes,
        WifiAggregationTime = "wifi.aggregation.time" => wifi.aggregation_time,
        WifiDtimPeriod = "wifi.dtim_period" => wifi.dtim_period,
        WifiBasicRate = "wifi.basic_rate" => wifi.basic_rate,
        WifiMulticastToUnicast = "wifi.multicast_to_unicast" => wifi.multicast_to_unicast,
        WifiNeighbourLifetime = "wifi.neighbour_lifetime" => wifi.neighbour_lifetime,
        WifiPowerSave = "wifi.power_save" => wifi.power_save,
        WifiReceiver = "wifi.receiver" => wifi.receiver,
        WifiStations = "wifi.stations" => wifi.stations,
        WifiSnr = "wifi.snr" => wifi.snr,
        WifiClock = "wifi.clock" => wifi.clock,
        Generator = "generator" => generator,
        Programs = "programs" => programs,
        /// A `[[program]]` of the study.
        Program = "program" => program,
    }
}

impl Factor {
    /// Whether cells that differ in the factor have separate testbeds.
    pub fn is_of_testbeds(self) -> bool {
        self == Factor::Os || self.is_of_routers()
    }

    /// Whether it needs two routers between the hosts.
    pub fn is_of_routers(self) -> bool {
        use Factor::*;
        matches!(
            self,
            Mechanism
                | RouterOs
                | Translator
                | RouterQueue
                | Clients
                | Rules
                | RuleForm
                | Routes
                | Destinations
                | Neighbours
                | Conntrack
                | FlowOffload
        )
    }

    /// Whether it is of the routers' tables, which each routed testbed has for itself.
    pub fn is_of_tables(self) -> bool {
        use Factor::*;
        matches!(self, Rules | RuleForm | Routes | Destinations | Neighbours | Conntrack)
    }

    /// Whether cells that differ in the factor have separate Wi-Fi networks.
    pub fn is_of_wifi(self) -> bool {
        self.name().starts_with("wifi.")
    }

    pub fn is_socket_option(self) -> bool {
        use Factor::*;
        matches!(
            self,
            Socket
                | SendBuffer
                | ReceiveBuffer
                | Mss
                | Nodelay
                | CongestionControl
                | Dscp
                | FlowLabel
                | BusyPoll
                | KernelPacing
        )
    }

    /// The error of a text that is not a level.
    pub(crate) fn unknown(self, level: &str) -> String {
        format!("`{level}` is not a level of factor {self}")
    }

    /// What tables call it: `receive buffer`.
    pub fn label(self) -> String {
        match self {
            Factor::Os | Factor::Mtu | Factor::Mss | Factor::Dscp => self.name().to_uppercase(),
            Factor::WifiMcs => "MCS".to_owned(),
            Factor::WifiSnr => "SNR".to_owned(),
            Factor::WifiDtimPeriod => "DTIM period".to_owned(),
            _ => self.name().trim_start_matches("wifi.").replace(['_', '.'], " "),
        }
    }

    /// What several of its levels are called: `mechanisms`.
    pub fn plural(self) -> String {
        let label = self.label();
        match label.strip_suffix('y') {
            Some(stem) if !label.ends_with("lay") => format!("{stem}ies"),
            _ if label.ends_with('s') => label,
            _ => format!("{label}s"),
        }
    }

    /// Whether its levels are names that say what they are.
    fn has_names(self) -> bool {
        use Factor::*;
        matches!(
            self,
            Replica
                | Os
                | Mechanism
                | Translator
                | Socket
                | CongestionControl
                | Generator
                | Programs
                | Program
        )
    }

    /// A level by itself: `IPv6`, `128 B`, `6in4`, `MTU 1280`.
    pub fn level_label(self, level: &str) -> String {
        if self.is_setting() && !self.has_names() && !level.is_empty() {
            return format!("{} {level}", self.label());
        }
        self.level_below(level)
    }

    /// A level below its factor's label: `IPv6`, `128 B`, `1280`.
    pub fn level_below(self, level: &str) -> String {
        match (self, level) {
            (Factor::Family, "ipv4") => "IPv4".to_owned(),
            (Factor::Family, "ipv6") => "IPv6".to_owned(),
            (Factor::Transport, transport) => transport.to_uppercase(),
            (Factor::SizeOf, part) if !part.is_empty() => format!("size of a {part}"),
            (Factor::Size, size) if !size.is_empty() => format!("{size} B"),
            (_, level) => level.to_owned(),
        }
    }
}
