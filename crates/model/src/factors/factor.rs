//! What a study can vary.

use crate::names::named;

named! {
    /// What a study varies.
    pub enum Factor("factor") {
        /// Address family.
        Family = "family",
        /// Transport protocol.
        Transport = "transport",
        /// What size means.
        Framing = "framing",
        /// Bytes per message or frame.
        Size = "size",
        /// A label without any effect: two replicas of one arm must not differ (an A/A study).
        Replica = "replica",
        /// What the hosts run.
        Os = "os",
        /// What the receiver runs beside.
        Services = "services",
        /// How packets cross the network between the routers.
        Mechanism = "mechanism",
        /// What the routers run.
        Routers = "routers",
        /// What translates on the routers.
        Translator = "translator",
        /// How messages get into and out of the kernel.
        Io = "io",
        /// Flows at once.
        Flows = "flows",
        /// Which way a stream flows.
        Direction = "direction",
        /// Largest IP packet of the link, bytes.
        Mtu = "mtu",
        /// Packets that may wait at each end of the link.
        QueueLength = "queue_length",
        /// Which processors the hosts run on.
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
        /// Whether the kernel spaces a TCP stream's schedule.
        KernelPacing = "kernel_pacing",
    }
}

impl Factor {
    /// Whether its level is one of [`Cell::settings`]: a factor that most studies leave as it is.
    pub fn is_setting(self) -> bool {
        !matches!(self, Factor::Family | Factor::Transport | Factor::Framing | Factor::Size | Factor::Replica)
    }
}
