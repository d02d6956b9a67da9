//! The definition of a mechanism, as data. Everything else follows from it: the header model, the path MTU, the
//! testbed, the kernel features that it needs, how a capture recognises it, and what a study may say about it.

use crate::Family;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// A transition mechanism. Each mechanism has one file with one such definition, and one line in the table
/// ([`crate::Mechanism`]).
#[derive(Debug)]
pub struct MechanismDef {
    /// Name in study files, records and reports.
    pub name: &'static str,
    /// What it does to packets, and its RFC, for the study language's description: `IPv6 in IPv4 (RFC 4213)`.
    pub doc: &'static str,
    /// Families of the sender's packets that the mechanism carries.
    pub carries: &'static [Family],
    pub method: Method,
}

/// How packets cross the link between the routers.
#[derive(Debug)]
pub enum Method {
    Forwarding,
    Tunnel(Tunnel),
    /// Translated: every packet on the link is IPv6.
    Translation(Translation),
    /// The near router gives packets another source address of their family.
    Nat(Nat),
    /// IPv4 in IPv6, at whose ends customers share IPv4 addresses.
    Softwire(Tunnel, Sharing),
    /// IPv4 translated to IPv6 and back, after the near router's NAT has given it these ports of a shared address.
    Mapping(PortSet),
    /// The receiver is a container and the far router its host: the sender uses the host's own address, or the
    /// container's on the host's link. Or the sender is a container and the near router its host.
    Publishing(Publisher),
}

/// What a host has that brings what comes to its own address or its link to a container, or what a container sends to
/// others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Publisher {
    /// A rule of nftables changes the destination address, and the host forwards.
    Dnat,
    /// Docker's program ends connections and datagrams, and sends their bytes on by its own.
    DockerProxy,
    /// The program of passt ends them too, and writes packets to the container's device.
    Pasta,
    /// The program of slirp4netns gets packets from the container's device, and has its own connections with others.
    Slirp,
    /// A device that the kernel adds to the host's link, with its own hardware address. The host's stack is not passed.
    Macvlan,
}

impl Publisher {
    /// Whether a program does it.
    pub const fn is_program(self) -> bool {
        !matches!(self, Publisher::Dnat | Publisher::Macvlan)
    }

    /// Whether connections begin at the sender alone: the host keeps state of them.
    pub const fn begins_at_sender(self) -> bool {
        !matches!(self, Publisher::Macvlan)
    }

    /// Whether the container is the sender, and not the receiver.
    pub const fn is_of_sender(self) -> bool {
        matches!(self, Publisher::Slirp)
    }

    /// Whether the container's device is a program's.
    pub const fn has_device(self) -> bool {
        matches!(self, Publisher::Pasta | Publisher::Slirp)
    }

    /// The ports that programs publish: the same at the host and in the container, for TCP and UDP. A receiver takes
    /// one for each stream, those of interleaved arms at the same time.
    pub const PORTS: RangeInclusive<u16> = 5201..=5208;
    /// As many streams have a port.
    pub const MAX_STREAMS: u32 = 8;

    /// Whether a program brings only the traffic of the ports that it was given.
    pub const fn has_ports(self) -> bool {
        self.is_program() && !self.is_of_sender()
    }
}

/// Where customers are given an address that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// At the far router, which keeps the state of all customers (DS-Lite, RFC 6333).
    AtFarRouter,
    /// At the near router, which keeps the state of one customer and uses only these ports of the address. The far
    /// router keeps none.
    AtNearRouter(PortSet),
}

/// The ports of a shared address that are one customer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortSet {
    /// One range, by a table of customers (lw4o6, RFC 7596).
    Range,
    /// The ports that have the customer's number in their middle bits (MAP, RFC 7597).
    Psid,
}

impl PortSet {
    /// How many ports a customer has. With MAP, the testbed's numbers have 8 bits after 6 others; ports below 1024 are
    /// nobody's.
    pub const fn count(self) -> u16 {
        match self {
            PortSet::Range => 1024,
            PortSet::Psid => 252,
        }
    }
}

/// What the near router's NAT makes of source addresses. It keeps state: connections begin at the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nat {
    /// All hosts share the router's own address by their ports (RFC 3022).
    Masquerade,
    /// Each host keeps the end of its address, below another prefix (RFC 6296).
    Prefix,
}

#[derive(Debug)]
pub struct Tunnel {
    /// Headers added before each packet, from outside to inside. The first header has the link's family.
    pub headers: &'static [Header],
    pub remote: Remote,
    pub device: Device,
}

/// How a router finds the address of the tunnel's other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    Configured,
    /// It is embedded in the IPv6 destination (6to4, RFC 3056; 6rd, RFC 5969). The clients' networks follow from it.
    InDestination {
        prefix: (Ipv6Addr, u8),
        /// The common beginning of all routers' IPv4 addresses. Only the rest of an address follows the IPv6 prefix.
        common: (Ipv4Addr, u8),
    },
}

/// A network device of the Linux kernel that is one end of a tunnel.
#[derive(Debug)]
pub struct Device {
    /// The name of the kernel's ability to create the device. Devices with the same ability are created alike.
    pub ability: &'static str,
    pub what_for: &'static str,
    pub remedy: &'static str,
    /// Its kind (`ip link add type KIND`).
    pub kind: &'static str,
    /// The kernel modules that create it.
    pub modules: &'static [&'static str],
    /// Whether a module adds a device to every namespace as soon as it is loaded (`sit0`, `tunl0`).
    pub intrusive: bool,
    /// The kernel options that enable it, as written in a kernel configuration: `CONFIG_IPV6_SIT=y`.
    pub options: &'static [&'static str],
    /// Whether Debian's build of user-mode Linux includes it.
    pub in_debian_uml: bool,
    pub setup: Setup,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// By attributes `IFLA_IPTUN_*` (linux/if_tunnel.h).
    IpTunnel,
    /// By attributes `IFLA_GRE_*` (linux/if_tunnel.h).
    Gre,
    /// By generic netlink, with keys (linux/wireguard.h).
    WireGuard,
    /// By attributes `IFLA_VXLAN_*` (linux/if_link.h). The device carries Ethernet frames.
    Vxlan,
    /// By attributes `IFLA_GENEVE_*` (linux/if_link.h). The device carries Ethernet frames.
    Geneve,
    /// As `IpTunnel`, inside UDP by a port that is opened before (linux/fou.h).
    Gue,
    /// As `Gue`, with a port and a device for each family inside, of which `kind` is the one for IPv4.
    Fou,
    /// By routes with an encapsulation, and no device.
    Segments,
    /// As `Segments`, and the device of a table (VRF), in which packets are looked up that were taken out.
    SegmentsToTable,
    /// By policies of what is encrypted, with keys, and no device.
    Esp,
    /// As `Gre`, and policies with keys encrypt what the routers send each other by it.
    GreInEsp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// IPv4 without options.
    Ipv4,
    /// IPv6 without extension headers.
    Ipv6,
    /// GRE without checksum, key and sequence number (RFC 2784).
    Gre,
    Udp,
    /// Type, receiver and counter before the encrypted packet, the authentication tag after it.
    WireGuard,
    /// VXLAN (RFC 7348).
    Vxlan,
    /// Geneve without options (RFC 8926).
    Geneve,
    /// Generic UDP Encapsulation without options.
    Gue,
    /// ESP with AES-GCM: number of the keys, counter and initialisation vector before the encrypted packet, the
    /// authentication tag after it (RFC 4106). Its padding depends on the packet.
    Esp,
    /// Ethernet without a tag, inside a packet.
    Ethernet,
    /// A segment routing header with this many segments, on the way to the first one (RFC 8754).
    SegmentRouting(u8),
}

/// The routers that translate headers; packets are IPv6 between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Translation {
    /// The sender's: IPv4 senders reach IPv6 receivers.
    Near,
    /// The receiver's: IPv6 senders reach IPv4 receivers.
    Far,
    /// Both: IPv4 senders reach IPv4 receivers.
    Both,
}

impl Tunnel {
    pub fn outer(&self) -> Family {
        match self.headers.first() {
            Some(Header::Ipv6) => Family::Ipv6,
            _ => Family::Ipv4,
        }
    }

    /// Whether the inner packets are unreadable on the link.
    pub fn encrypts(&self) -> bool {
        self.headers.iter().any(|header| header.encrypts())
    }

    /// Its headers that can be read on the link: none behind one that encrypts.
    pub fn list_readable_headers(&self) -> &'static [Header] {
        match self.headers.iter().position(|header| header.encrypts()) {
            Some(last) => &self.headers[..=last],
            None => self.headers,
        }
    }

    /// Whether the device carries Ethernet frames: it has a hardware address, and neighbours.
    pub fn carries_frames(&self) -> bool {
        self.headers.contains(&Header::Ethernet)
    }

    pub fn added_bytes(&self) -> u32 {
        self.headers.iter().map(|header| header.bytes()).sum()
    }

    /// The segments of its segment routing header; 0 without one.
    pub fn count_segments(&self) -> u8 {
        for header in self.headers {
            if let Header::SegmentRouting(segments) = header {
                return *segments;
            }
        }
        0
    }
}

impl Header {
    pub const fn ip(family: Family) -> Self {
        match family {
            Family::Ipv4 => Header::Ipv4,
            Family::Ipv6 => Header::Ipv6,
        }
    }

    /// Whether nothing behind it can be read.
    fn encrypts(self) -> bool {
        matches!(self, Header::WireGuard | Header::Esp)
    }

    /// What a list of a packet's headers calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Header::Ipv4 => "ipv4",
            Header::Ipv6 => "ipv6",
            Header::Gre => "gre",
            Header::Udp => "udp",
            Header::WireGuard => "wireguard",
            Header::Vxlan => "vxlan",
            Header::Geneve => "geneve",
            Header::Gue => "gue",
            Header::Esp => "esp",
            Header::Ethernet => "ethernet",
            Header::SegmentRouting(_) => "segment routing",
        }
    }

    /// The header's bytes, including a trailer.
    pub const fn bytes(self) -> u32 {
        match self {
            Header::Ipv4 => 20,
            Header::Ipv6 => 40,
            Header::Gre | Header::Gue => 4,
            Header::Udp => 8,
            Header::WireGuard => 16 + 16,
            Header::Esp => 8 + 8 + 16,
            Header::Vxlan | Header::Geneve => 8,
            Header::Ethernet => 14,
            Header::SegmentRouting(segments) => 8 + 16 * segments as u32,
        }
    }
}

impl Translation {
    pub fn near(self) -> bool {
        self != Translation::Far
    }

    pub fn far(self) -> bool {
        self != Translation::Near
    }

    /// The same role for packets in the reverse direction.
    pub fn reverse(self) -> Self {
        match self {
            Translation::Near => Translation::Far,
            Translation::Far => Translation::Near,
            Translation::Both => Translation::Both,
        }
    }
}
