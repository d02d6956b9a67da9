//! The parts of a packet (address family, transport, meaning of sizes) and the probes that send it.

use crate::names::named;
use crate::{Cell, count_destinations};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

named! {
    /// Address family of the tested traffic. It is always stated, both as planned and as observed.
    pub enum Family("family") {
        Ipv4 = "ipv4",
        Ipv6 = "ipv6",
    }
}

impl Family {
    /// Bytes of the IP header without options or extension headers.
    pub fn header_bytes(self) -> u32 {
        match self {
            Family::Ipv4 => 20,
            Family::Ipv6 => 40,
        }
    }

    /// IPv4's length field counts the header (RFC 791), IPv6's does not (RFC 8200; no jumbograms).
    pub fn largest_packet_bytes(self) -> u32 {
        match self {
            Family::Ipv4 => 65_535,
            Family::Ipv6 => 40 + 65_535,
        }
    }

    /// Bytes of the IPv6 fragment extension header (RFC 8200). IPv4 fragments need no extra header.
    pub(crate) fn fragment_header_bytes(self) -> u32 {
        match self {
            Family::Ipv4 => 0,
            Family::Ipv6 => 8,
        }
    }

    pub fn loopback(self) -> IpAddr {
        match self {
            Family::Ipv4 => Ipv4Addr::LOCALHOST.into(),
            Family::Ipv6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    pub fn unspecified_address(self) -> IpAddr {
        match self {
            Family::Ipv4 => Ipv4Addr::UNSPECIFIED.into(),
            Family::Ipv6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    /// The family of an address. A v4-mapped IPv6 address counts as IPv6, because its socket is an IPv6 socket.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Family::Ipv4,
            IpAddr::V6(_) => Family::Ipv6,
        }
    }
}

named! {
    pub enum Transport("transport") {
        Tcp = "tcp",
        Udp = "udp",
    }
}

impl Transport {
    /// On an established connection of Linux: TCP carries the timestamp option (12 bytes).
    pub fn header_bytes(self) -> u32 {
        match self {
            Transport::Tcp => 20 + 12,
            Transport::Udp => 8,
        }
    }
}

named! {
    pub enum SizeOf("size_of") {
        /// Each message of `size` bytes leaves in its own packet; every run is validated for this.
        Payload = "payload",
        /// `size` is what the program writes per call; the kernel may coalesce TCP writes.
        Write = "write",
        /// `size` is the whole Ethernet frame with header and FCS (RFC 2544, RFC 8219); UDP only.
        Frame = "frame",
    }
}

named! {
    /// A kind of measurement. In a study each metric is measured by one probe ([`crate::Metric::is_of`]).
    pub enum Probe("probe") {
        /// One direction: messages flow from the sender to the receiver.
        Stream = "stream",
        /// A stream on a schedule below what the path carries, for delays: a call sends and stamps each message.
        Paced = "paced",
        /// Closed loop: each message returns before the next one is sent.
        Echo = "echo",
        /// Open loop: messages go out on a schedule; round trips count from the intended send time.
        EchoOpenLoop = "echo_open_loop",
        EchoUnderLoad = "echo_under_load",
        Connect = "connect",
        /// Streams of short slices at loads that go up after a good slice and down after a bad one.
        Search = "search",
        /// Sockets that a host connects to itself and holds: what they take of its kernel's memory.
        Sockets = "sockets",
        /// Programs of the study's own: a server, and a client that ends by itself.
        Program = "program",
    }
}

impl Probe {
    pub fn supports(self, transport: Transport) -> bool {
        match self {
            Probe::Connect => transport == Transport::Tcp,
            // TCP repairs losses and lowers its load.
            Probe::Search => transport == Transport::Udp,
            // What the programs use is their own: the cells of a study name TCP for all of them.
            Probe::Program => transport == Transport::Tcp,
            _ => true,
        }
    }

    /// Whether the probe has a stream: the measured stream, or the background stream of an echo.
    pub fn streams(self) -> bool {
        matches!(self, Probe::Stream | Probe::Paced | Probe::EchoUnderLoad | Probe::Search)
    }

    /// Whether its datagrams can go to several destinations: nothing comes back.
    pub fn spreads(self) -> bool {
        matches!(self, Probe::Stream | Probe::Paced | Probe::Search)
    }

    /// Whether the probe measures a cell: over its transport, and to as many destinations.
    pub fn measures(self, cell: &Cell) -> bool {
        self.supports(cell.transport) && (count_destinations(cell) == 1 || self.spreads())
    }

    /// Whether the probe can be an arm of an interleaved trial.
    pub fn interleaves(self) -> bool {
        matches!(self, Probe::Stream | Probe::Paced | Probe::Echo | Probe::Search)
    }

    /// The probe as agents know it: a paced stream is a stream with a schedule, and so is a slice of a search.
    pub fn of_agents(self) -> Probe {
        if matches!(self, Probe::Paced | Probe::Search) { Probe::Stream } else { self }
    }

    /// Whether agents send messages to each other: they run no programs of others, and hold sockets without a word.
    pub fn has_messages(self) -> bool {
        !matches!(self, Probe::Program | Probe::Sockets)
    }

    /// Whether the receiver sends the messages back to the sender.
    pub fn echoes(self) -> bool {
        matches!(self, Probe::Echo | Probe::EchoOpenLoop | Probe::EchoUnderLoad)
    }
}
