//! What a study can vary.

use crate::names::named;

named! {
    /// What a study varies.
    pub enum Factor("factor") {
        /// Address family.
        Family = "family",
        /// Transport protocol.
        Transport = "transport",
        /// The meaning of size.
        SizeOf = "size_of",
        /// Bytes per message or frame.
        Size = "size",
        /// A label without any effect: two replicas of one arm must not differ (an A/A study).
        Replica = "replica",
        /// The operating systems of the hosts.
        Os = "os",
        /// The services that run on the receiver.
        Services = "services",
        /// How packets cross the network between the routers.
        Mechanism = "mechanism",
        /// The operating systems of the routers.
        RouterOs = "router_os",
        /// The translator on the routers.
        Translator = "translator",
        /// How messages enter and leave the kernel.
        Io = "io",
        /// Number of parallel flows.
        Flows = "flows",
        /// Direction of a stream.
        Direction = "direction",
        /// Largest IP packet of the link, bytes.
        Mtu = "mtu",
        /// Queue length at each end of the link, packets.
        QueueLength = "queue_length",
        /// Processors of the hosts.
        Pinning = "pinning",
        /// SO_SNDBUF, bytes.
        SendBuffer = "send_buffer",
        /// SO_RCVBUF, bytes.
        ReceiveBuffer = "receive_buffer",
        /// TCP's maximum segment size, bytes.
        Mss = "mss",
        /// TCP_NODELAY.
        Nodelay = "nodelay",
        /// TCP's congestion control.
        CongestionControl = "congestion_control",
        /// Differentiated services code point.
        Dscp = "dscp",
        /// IPv6 flow label.
        FlowLabel = "flow_label",
        /// Microseconds of busy polling in the kernel (SO_BUSY_POLL).
        BusyPoll = "busy_poll",
        /// Whether the kernel paces a TCP stream's schedule.
        KernelPacing = "kernel_pacing",
        /// Width of a Wi-Fi channel, MHz.
        WifiChannelWidth = "wifi.channel_width",
        /// MCS index of a Wi-Fi network's data frames.
        WifiMcs = "wifi.mcs",
        /// Guard interval of a Wi-Fi network's data frames.
        WifiGuardInterval = "wifi.guard_interval",
        /// Primary channel of a Wi-Fi network.
        WifiChannel = "wifi.channel",
        /// Security of a Wi-Fi network.
        WifiSecurity = "wifi.security",
        /// Most frames of an A-MPDU.
        WifiAggregationFrames = "wifi.aggregation.frames",
        /// Most bytes of an A-MPDU.
        WifiAggregationBytes = "wifi.aggregation.bytes",
        /// Longest PPDU of an A-MPDU.
        WifiAggregationTime = "wifi.aggregation.time",
        /// DTIM period of a Wi-Fi network, beacons.
        WifiDtimPeriod = "wifi.dtim_period",
        /// Lowest basic rate of a Wi-Fi network.
        WifiBasicRate = "wifi.basic_rate",
        /// Whether the access point sends group frames to each station alone.
        WifiMulticastToUnicast = "wifi.multicast_to_unicast",
        /// How long a Wi-Fi network's sender and receiver remember each other's link-layer address.
        WifiNeighbourLifetime = "wifi.neighbour_lifetime",
        /// Whether idle stations of a Wi-Fi network sleep.
        WifiPowerSave = "wifi.power_save",
        /// How a Wi-Fi network's receiver is connected.
        WifiReceiver = "wifi.receiver",
        /// Other stations of a Wi-Fi network, which always have something to send.
        WifiStations = "wifi.stations",
        /// Signal to noise ratio of a Wi-Fi network, dB.
        WifiSnr = "wifi.snr",
        /// The clock of a Wi-Fi network.
        WifiClock = "wifi.clock",
        /// The program that drives the traffic.
        Generator = "generator",
        /// The folder of the generator's programs.
        Programs = "programs",
    }
}

impl Factor {
    /// Whether the factor's level is one of `Cell::settings`. Most studies leave these factors at their defaults.
    pub fn is_setting(self) -> bool {
        !matches!(self, Factor::Family | Factor::Transport | Factor::SizeOf | Factor::Size | Factor::Replica)
    }

    /// Whether cells that differ in the factor have separate testbeds.
    pub fn is_of_testbeds(self) -> bool {
        matches!(self, Factor::Os | Factor::Mechanism | Factor::Translator | Factor::RouterOs)
    }

    /// Whether the factor's level is a setting of a Wi-Fi network: cells that differ in it have separate networks.
    pub fn is_of_wifi(self) -> bool {
        self.name().starts_with("wifi.")
    }

    /// Whether the factor's level is an option of a trial's own sockets.
    pub fn is_socket_option(self) -> bool {
        use Factor::*;
        matches!(
            self,
            SendBuffer
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
}
