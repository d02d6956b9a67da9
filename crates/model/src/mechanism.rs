//! Transition mechanisms: what carries one family over the other, and the bytes that it adds.

use crate::Family;
use crate::names::named;

named! {
    /// How packets cross the link.
    pub enum Mechanism("mechanism") {
        /// As they are.
        None = "none",
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
        /// IPv6 translated to IPv4, connections remembered (RFC 6146).
        Nat64 = "nat64",
        /// Either family translated to the other, packet by packet (RFC 7915).
        Siit = "siit",
        /// IPv4 translated to IPv6 and back (RFC 6877).
        Xlat464 = "464xlat",
    }
}

/// What a mechanism makes of a packet on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// The packet stays as it is, of this family on the link.
    Plain(Family),
    /// The packet has so many bytes put before it.
    Inside(u32),
}

impl Mechanism {
    /// Bytes of Linux's tunnel encapsulation limit: a destination options header (RFC 2473), which its tunnels over IPv6
    /// send unless told otherwise.
    pub const ENCAPSULATION_LIMIT_BYTES: u32 = 8;

    /// What it makes of packets of a family on the link where it works; `None` where it does not carry that family.
    /// Translators' packets are IPv6 there, whatever they were.
    pub(crate) fn carriage(self, family: Family) -> Option<Carriage> {
        use Mechanism::*;
        Some(match (self, family) {
            (None, family) => Carriage::Plain(family),
            (SixInFour | SixToFour | SixRd, Family::Ipv6) => Carriage::Inside(20),
            (Gre4, _) => Carriage::Inside(20 + 4),
            (Gre6, _) => Carriage::Inside(40 + 4),
            (FourInSix | DsLite | MapE, Family::Ipv4) => Carriage::Inside(40),
            (Nat64 | Siit | Xlat464, _) => Carriage::Plain(Family::Ipv6),
            (SixInFour | SixToFour | SixRd, Family::Ipv4) | (FourInSix | DsLite | MapE, Family::Ipv6) => {
                return Option::None;
            }
        })
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
