//! Transition mechanisms: what carries one family over the other, and the bytes that it adds.

use crate::names::named;
use crate::{Cell, Family};

named! {
    /// How packets cross the link.
    pub enum Mechanism("mechanism") {
        /// As they are, both families (dual stack).
        Native = "native",
        /// IPv6 in IPv4, configured by hand (RFC 4213).
        SixInFour = "6in4",
        /// IPv6 in IPv4, the far end told by the address (RFC 3056).
        SixToFour = "6to4",
        /// The same with the provider's prefix (RFC 5969).
        SixRd = "6rd",
        /// Either family in GRE over IPv4 (RFC 2784).
        Gre4 = "gre4",
        /// Either family in GRE over IPv6 (RFC 7676).
        Gre6 = "gre6",
        /// IPv4 in IPv6 (RFC 2473).
        FourInSix = "4in6",
        /// IPv4 in IPv6 to the provider's translator (RFC 6333).
        DsLite = "ds_lite",
        /// IPv4 in IPv6 with addresses shared by ports (RFC 7597).
        MapE = "map_e",
        /// IPv6 clients to IPv4 servers, translated at the far end (RFC 6146).
        Nat64 = "nat64",
        /// IPv4 clients to IPv6 servers, translated at the near end, packet by packet (RFC 7915, RFC 7755).
        Siit = "siit",
        /// IPv4 translated to IPv6 and back (RFC 6877).
        Xlat464 = "464xlat",
        /// Either family encrypted inside UDP over IPv4.
        WireGuard4 = "wireguard4",
        /// Either family encrypted inside UDP over IPv6.
        WireGuard6 = "wireguard6",
    }
}

named! {
    /// What translates on routers.
    pub enum Translator("translator") {
        /// A program on a TUN device: each packet alone, one IPv6 address to one IPv4 address.
        Tayga = "tayga",
        /// A kernel's module: NAT64 by it keeps state, and shares an IPv4 address among connections (RFC 6146).
        Jool = "jool",
    }
}

impl Translator {
    /// What a cell asks for; `None` where that is left to what its routers have.
    pub fn of(cell: &Cell) -> Option<Self> {
        cell.settings.translator
    }

    /// Whether a mechanism of it keeps state at the far router: connections begin at the near end only, and their ports are
    /// others behind it.
    pub fn keeps_state(self, mechanism: Mechanism) -> bool {
        self == Translator::Jool && matches!(mechanism, Mechanism::Nat64 | Mechanism::Xlat464)
    }
}

/// What a mechanism makes of a packet on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// The packet is of this family on the link, its own or what it is translated to.
    Plain(Family),
    /// The packet has so many bytes put around it.
    Inside(u32),
    /// The same, the packet being filled up to a multiple of so many bytes where that fits.
    Filled(u32, u32),
}

/// Bytes of an IPv4 header, an IPv6 header, a UDP header, and a GRE header without options.
const IPV4: u32 = 20;
const IPV6: u32 = 40;
const UDP: u32 = 8;
const GRE: u32 = 4;
/// Bytes of WireGuard's own: type, receiver and counter before the packet, the authentication tag behind it.
const WIREGUARD: u32 = 16 + 16;
/// WireGuard fills packets up to a multiple of it.
const WIREGUARD_BLOCK: u32 = 16;

impl Mechanism {
    /// What it is to packets the other way: a translator does the opposite for them.
    pub fn reversed(self) -> Mechanism {
        match self {
            Mechanism::Nat64 => Mechanism::Siit,
            Mechanism::Siit => Mechanism::Nat64,
            other => other,
        }
    }

    /// Bytes of Linux's tunnel encapsulation limit: a destination options header (RFC 2473), which its tunnels over IPv6
    /// send unless told otherwise.
    pub const ENCAPSULATION_LIMIT_BYTES: u32 = 8;

    /// Those that a testbed of routers can build.
    pub const BUILT: &[Mechanism] = &[
        Mechanism::Native,
        Mechanism::SixInFour,
        Mechanism::SixToFour,
        Mechanism::SixRd,
        Mechanism::Gre4,
        Mechanism::Gre6,
        Mechanism::FourInSix,
        Mechanism::Nat64,
        Mechanism::Siit,
        Mechanism::Xlat464,
        Mechanism::WireGuard4,
        Mechanism::WireGuard6,
    ];

    /// How packets of a cell cross the link: as they are, where its study does not say.
    pub fn of(cell: &Cell) -> Self {
        cell.settings.mechanism.unwrap_or(Mechanism::Native)
    }

    /// What it makes of packets of a family on the link where it works; `None` where it does not carry that family.
    /// Translators' packets are IPv6 there, whatever they were.
    pub(crate) fn carriage(self, family: Family) -> Option<Carriage> {
        use Mechanism::*;
        Some(match (self, family) {
            (Native, family) => Carriage::Plain(family),
            (SixInFour | SixToFour | SixRd, Family::Ipv6) => Carriage::Inside(IPV4),
            (Gre4, _) => Carriage::Inside(IPV4 + GRE),
            (Gre6, _) => Carriage::Inside(IPV6 + GRE),
            (FourInSix | DsLite | MapE, Family::Ipv4) => Carriage::Inside(IPV6),
            (Nat64, Family::Ipv6) | (Siit | Xlat464, Family::Ipv4) => Carriage::Plain(Family::Ipv6),
            (WireGuard4, _) => Carriage::Filled(IPV4 + UDP + WIREGUARD, WIREGUARD_BLOCK),
            (WireGuard6, _) => Carriage::Filled(IPV6 + UDP + WIREGUARD, WIREGUARD_BLOCK),
            _ => return None,
        })
    }

    /// The largest packet of a family that it carries whole over a link of this MTU, bytes: what senders' path MTU
    /// discovery finds. `None` where it does not carry the family. What is translated to IPv6 has the longer header there
    /// (RFC 7915, section 5.2).
    pub fn leaves(self, family: Family, mtu: u32) -> Option<u32> {
        let taken = match self.carriage(family)? {
            Carriage::Plain(other) if other != family => IPV6 - IPV4,
            Carriage::Plain(_) => 0,
            Carriage::Inside(bytes) | Carriage::Filled(bytes, _) => bytes,
        };
        Some(mtu.saturating_sub(taken))
    }

    /// The families of the packets on the link that it crosses.
    pub fn link_families(self) -> &'static [Family] {
        use Mechanism::*;
        match self {
            Native => Family::ALL,
            SixInFour | SixToFour | SixRd | Gre4 | WireGuard4 => &[Family::Ipv4],
            Gre6 | FourInSix | DsLite | MapE | Nat64 | Siit | Xlat464 | WireGuard6 => &[Family::Ipv6],
        }
    }

    /// Whether packets are translated, and so have other addresses behind it.
    pub fn translates(self) -> bool {
        matches!(self, Mechanism::Nat64 | Mechanism::Siit | Mechanism::Xlat464)
    }

    /// Whether it carries packets of a family.
    pub fn carries(self, family: Family) -> bool {
        self.carriage(family).is_some()
    }

    /// Whether its outer packets are IPv6, and so may have the encapsulation limit.
    pub(crate) fn may_limit_encapsulation(self) -> bool {
        matches!(self, Mechanism::Gre6 | Mechanism::FourInSix | Mechanism::DsLite | Mechanism::MapE)
    }
}
