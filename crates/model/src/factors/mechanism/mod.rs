//! Transition mechanisms: each carries one family over the other. Each mechanism is one file of this folder and one
//! line of the table.

mod definition;
mod translator;

pub use definition::{
    Device, Header, MechanismDef, Method, Nat, PortSet, Publisher, Remote, Setup, Sharing, Translation,
    Tunnel,
};
pub use translator::Translator;

use crate::Family;
use crate::names::{json_is_text, text_of_names};

/// Generates the mechanisms of the table: one module and one variant for each. Each module holds a `DEF`.
macro_rules! mechanisms {
    ($($variant:ident = $module:ident,)+) => {
        $(mod $module;)+

        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mechanism {
            $(#[doc = concat!("Defined in `", stringify!($module), ".rs`.")] $variant,)+
        }

        impl Mechanism {
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            pub const NAMES: &'static [&'static str] = &[$($module::DEF.name,)+];

            pub const fn definition(self) -> &'static MechanismDef {
                match self { $(Self::$variant => &$module::DEF,)+ }
            }
        }
    };
}

mechanisms! {
    Native = native,
    SixInFour = sixinfour,
    SixToFour = sixtofour,
    SixRd = sixrd,
    Gre4 = gre4,
    Gre6 = gre6,
    FourInSix = fourinsix,
    Nat64 = nat64,
    Siit = siit,
    Xlat464 = xlat464,
    WireGuard4 = wireguard4,
    WireGuard6 = wireguard6,
    Ipip = ipip,
    Nat44 = nat44,
    Nat66 = nat66,
    Nptv6 = nptv6,
    Vxlan4 = vxlan4,
    Vxlan6 = vxlan6,
    Geneve4 = geneve4,
    Geneve6 = geneve6,
    SrV6 = srv6,
    SrV6Two = srv6_two,
    SrV6Table = srv6_dt46,
    DsLite = ds_lite,
    Lw4o6 = lw4o6,
    MapEncapsulation = map_e,
    MapTranslation = map_t,
    Gue4 = gue4,
    Gue6 = gue6,
    Fou4 = fou4,
    Fou6 = fou6,
    Esp4 = esp4,
    Esp6 = esp6,
    Gre4Esp = gre4_esp,
    Gre6Esp = gre6_esp,
    Dnat = dnat,
    DockerProxy = docker_proxy,
    Pasta = pasta,
    Slirp = slirp4netns,
    Macvlan = macvlan,
}

text_of_names!(Mechanism, "mechanism");
json_is_text!(Mechanism);

/// How a packet changes on the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// The packet has this family on the link: its own, or the family that it is translated to.
    Plain(Family),
    /// The packet is encapsulated with this many added bytes.
    Inside(u32),
    /// The packet is encapsulated with added bytes, and padded to a multiple of this many bytes if the result fits.
    Filled(u32, u32),
    /// The packet and [`ESP_TRAILER`] are padded to a multiple of [`ESP_BLOCK`] bytes, and encapsulated with added
    /// bytes.
    Sealed(u32),
}

const WIREGUARD_BLOCK: u32 = 16;
/// ESP is padded to this, and names its padding and the family inside by two bytes at its end (RFC 4303).
pub(crate) const ESP_BLOCK: u32 = 4;
pub(crate) const ESP_TRAILER: u32 = 2;

impl Mechanism {
    pub const fn name(self) -> &'static str {
        self.definition().name
    }

    pub fn tunnel(self) -> Option<&'static Tunnel> {
        match &self.definition().method {
            Method::Tunnel(tunnel) | Method::Softwire(tunnel, _) => Some(tunnel),
            Method::Forwarding
            | Method::Translation(_)
            | Method::Nat(_)
            | Method::Mapping(_)
            | Method::Publishing(_) => None,
        }
    }

    pub fn translation(self) -> Option<Translation> {
        match self.definition().method {
            Method::Translation(translation) => Some(translation),
            Method::Mapping(_) => Some(Translation::Both),
            _ => None,
        }
    }

    pub fn nat(self) -> Option<Nat> {
        let Method::Nat(nat) = self.definition().method else { return None };
        Some(nat)
    }

    /// What brings packets to a container or from it, if an end is one.
    pub fn publisher(self) -> Option<Publisher> {
        let Method::Publishing(publisher) = self.definition().method else { return None };
        Some(publisher)
    }

    pub fn sharing(self) -> Option<Sharing> {
        match self.definition().method {
            Method::Softwire(_, sharing) => Some(sharing),
            Method::Mapping(ports) => Some(Sharing::AtNearRouter(ports)),
            _ => None,
        }
    }

    /// Whether a router gives packets another source address of their family, for which it keeps state: connections
    /// begin at the sender.
    pub fn changes_source(self) -> bool {
        self.nat().is_some() || self.sharing().is_some()
    }

    /// Whether connections begin at the sender alone: a router keeps state of them.
    pub fn begins_at_sender(self) -> bool {
        self.changes_source() || self.publisher().is_some_and(Publisher::begins_at_sender)
    }

    /// Whether the receiver is on the middle link, beside the far router.
    pub fn is_on_middle_link(self) -> bool {
        self.publisher() == Some(Publisher::Macvlan)
    }

    /// Whether packets of a known connection leave a router by the other of its two links, unchanged but for their
    /// addresses, so that a flowtable of these links can forward them.
    pub fn allows_flow_offload(self) -> bool {
        matches!(self.definition().method, Method::Forwarding | Method::Nat(_))
    }

    /// The ports of a customer, where they are fewer than all of an address.
    pub fn count_ports(self) -> Option<u32> {
        match self.sharing()? {
            Sharing::AtFarRouter => None,
            Sharing::AtNearRouter(ports) => Some(ports.count().into()),
        }
    }

    /// Whether several customers, each with a near router, can be before one far router.
    pub fn joins_customers(self) -> bool {
        match &self.definition().method {
            Method::Forwarding | Method::Nat(Nat::Masquerade) => true,
            Method::Nat(Nat::Prefix)
            | Method::Translation(_)
            | Method::Mapping(_)
            | Method::Publishing(_) => false,
            Method::Tunnel(tunnel) | Method::Softwire(tunnel, _) => {
                let is_plain = matches!(tunnel.device.setup, Setup::IpTunnel | Setup::Gre);
                is_plain && tunnel.remote == Remote::Configured
            }
        }
    }

    /// Whether packets are translated to the other family, and therefore have other addresses and another length after
    /// the translator.
    pub fn translates(self) -> bool {
        self.translation().is_some()
    }

    /// Whether any translator can be on its routers. Behind the NAT of a shared address it is tayga, whose device gets
    /// packets after that NAT.
    pub fn has_any_translator(self) -> bool {
        self.translates() && self.sharing().is_none()
    }

    /// Whether a router answers a packet that is too large. Linux puts packets into segments before it looks at their
    /// size, and drops what is too large for the link without an answer.
    pub fn reports_path_mtu(self) -> bool {
        !self
            .tunnel()
            .is_some_and(|tunnel| matches!(tunnel.device.setup, Setup::Segments | Setup::SegmentsToTable))
    }

    /// Devices of all mechanisms, one for each ability, each with the first mechanism that uses it.
    pub fn devices() -> Vec<(Self, &'static Device)> {
        let mut devices: Vec<(Self, &Device)> = Vec::new();
        for mechanism in Self::ALL {
            let Some(Tunnel { device, .. }) = mechanism.tunnel() else { continue };
            if devices.iter().all(|(_, known)| known.ability != device.ability) {
                devices.push((*mechanism, device));
            }
        }
        devices
    }

    /// The same mechanism for packets in the reverse direction: a translator does the opposite there.
    pub fn reverse(self) -> Self {
        let Some(translation) = self.translation() else { return self };
        if translation == translation.reverse() {
            return self;
        }
        let opposite = Self::ALL.iter().find(|other| other.translation() == Some(translation.reverse()));
        opposite.copied().unwrap_or(self)
    }

    pub fn carries(self, family: Family) -> bool {
        self.definition().carries.contains(&family)
    }

    /// How packets of a family change on the link; `None` if the mechanism does not carry it.
    pub(crate) fn carriage(self, family: Family) -> Option<Carriage> {
        let carriage = match &self.definition().method {
            Method::Forwarding | Method::Nat(_) | Method::Publishing(_) => Carriage::Plain(family),
            Method::Tunnel(tunnel) if tunnel.headers.contains(&Header::Esp) => {
                Carriage::Sealed(tunnel.added_bytes())
            }
            Method::Tunnel(tunnel) if tunnel.encrypts() => {
                Carriage::Filled(tunnel.added_bytes(), WIREGUARD_BLOCK)
            }
            Method::Tunnel(tunnel) | Method::Softwire(tunnel, _) => Carriage::Inside(tunnel.added_bytes()),
            Method::Translation(_) | Method::Mapping(_) => Carriage::Plain(Family::Ipv6),
        };
        self.carries(family).then_some(carriage)
    }

    /// The readable headers of a UDP datagram on the link, outside first; `None` if the mechanism does not carry it.
    pub fn datagram_headers(self, family: Family) -> Option<Vec<Header>> {
        let headers = match &self.definition().method {
            Method::Forwarding | Method::Nat(_) | Method::Publishing(_) => {
                vec![Header::ip(family), Header::Udp]
            }
            Method::Tunnel(tunnel) if tunnel.encrypts() => tunnel.list_readable_headers().to_vec(),
            Method::Tunnel(tunnel) | Method::Softwire(tunnel, _) => {
                [tunnel.headers, &[Header::ip(family), Header::Udp]].concat()
            }
            Method::Translation(_) | Method::Mapping(_) => vec![Header::Ipv6, Header::Udp],
        };
        self.carries(family).then_some(headers)
    }

    /// The largest packet of a family that fits a link of this MTU, which path MTU discovery finds; `None` if the
    /// mechanism does not carry the family. Translated to IPv6 its header is longer (RFC 7915, section 5.2).
    pub fn leaves(self, family: Family, mtu: u32) -> Option<u32> {
        let taken = match self.carriage(family)? {
            Carriage::Plain(other) => other.header_bytes() - family.header_bytes(),
            Carriage::Inside(bytes) | Carriage::Filled(bytes, _) => bytes,
            Carriage::Sealed(bytes) => bytes + mtu.saturating_sub(bytes) % ESP_BLOCK + ESP_TRAILER,
        };
        Some(mtu.saturating_sub(taken))
    }

    pub fn link_families(self) -> &'static [Family] {
        match &self.definition().method {
            Method::Forwarding | Method::Publishing(_) => Family::ALL,
            Method::Nat(_) => self.definition().carries,
            Method::Tunnel(tunnel) if tunnel.outer() == Family::Ipv4 => &[Family::Ipv4],
            Method::Tunnel(_) | Method::Softwire(..) | Method::Translation(_) | Method::Mapping(_) => {
                &[Family::Ipv6]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Transport, WirePath};

    #[test]
    fn names_are_unique_and_are_read_as_they_are_written() {
        for (place, mechanism) in Mechanism::ALL.iter().enumerate() {
            assert_eq!(Mechanism::NAMES[place], mechanism.name());
            assert_eq!(mechanism.name().parse(), Ok(*mechanism));
            let json = serde_json::to_string(mechanism).unwrap();
            assert_eq!(json, format!("{:?}", mechanism.name()));
            assert_eq!(serde_json::from_str::<Mechanism>(&json).unwrap(), *mechanism);
        }
        for unknown in ["ds_lite", "map_e", "SixInFour", ""] {
            let said = serde_json::from_str::<Mechanism>(&format!("{unknown:?}")).unwrap_err().to_string();
            assert!(said.contains(unknown) && said.contains("6in4"), "{said}");
        }
    }

    #[test]
    fn bytes_of_each_definition_are_those_of_its_headers() {
        for mechanism in Mechanism::ALL {
            assert!(!mechanism.definition().carries.is_empty() && !mechanism.link_families().is_empty());
            for family in Family::ALL {
                let path =
                    WirePath { mechanism: *mechanism, ..WirePath::plain(*family, Transport::Udp, 1500) };
                // A packet of 512 bytes needs no padding.
                let own = family.header_bytes() + Header::Udp.bytes();
                let size = path.wire_size(512 - own);
                let Some(headers) = mechanism.datagram_headers(*family) else {
                    assert!(size.is_none() && !mechanism.carries(*family), "{mechanism} {family}");
                    continue;
                };
                let of_headers: u32 = headers.iter().map(|header| header.bytes()).sum();
                // Encrypted headers are not listed, nor what ESP has at its end.
                let sealed = if headers.last() == Some(&Header::Esp) { 4 } else { 0 };
                let is_gre_inside = matches!(mechanism, Mechanism::Gre4Esp | Mechanism::Gre6Esp);
                let within = if is_gre_inside { Header::Gre.bytes() } else { 0 };
                let hidden = if headers.last() == Some(&Header::Udp) { 0 } else { own + sealed + within };
                let size = size.unwrap();
                assert_eq!(size.ip_bytes, of_headers + hidden + 512 - own, "{mechanism} {family}");
                let outer = mechanism.link_families().iter().map(|family| Header::ip(*family));
                assert!(outer.into_iter().any(|outer| headers[0] == outer), "{mechanism} {family}");
                // The largest packet fills the link exactly, except where a translator makes packets smaller.
                let left = mechanism.leaves(*family, 1500).unwrap();
                let largest = path.wire_size(left - own).unwrap();
                assert_eq!((largest.packets, largest.ip_bytes), (1, 1500), "{mechanism} {family}");
                assert!(path.wire_size(left - own + 1).unwrap().packets > 1, "{mechanism} {family}");
            }
        }
    }

    #[test]
    fn devices_of_one_ability_are_alike() {
        let tunnels = Mechanism::ALL.iter().filter_map(|mechanism| mechanism.tunnel());
        for Tunnel { device, headers, remote } in tunnels {
            let devices = Mechanism::devices();
            let (_, known) = devices.iter().find(|(_, known)| known.ability == device.ability).unwrap();
            assert_eq!(format!("{known:?}"), format!("{device:?}"));
            assert!(!device.options.is_empty() && !device.remedy.is_empty(), "{}", device.ability);
            let wireguard = headers.contains(&Header::WireGuard);
            assert_eq!(device.setup == Setup::WireGuard, wireguard, "{}", device.ability);
            let is_six = matches!(headers[0], Header::Ipv6);
            assert!(*remote == Remote::Configured || !is_six, "the address of an IPv4 router is in it");
        }
    }

    #[test]
    fn every_mechanism_is_in_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mechanisms.md");
        let text = std::fs::read_to_string(path).unwrap();
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("| `")).collect();
        for name in Mechanism::NAMES {
            let row = rows
                .iter()
                .any(|row| row.split('|').nth(1).is_some_and(|c| c.contains(&format!("`{name}`"))));
            assert!(row, "docs/mechanisms.md has no row for {name}");
        }
    }

    #[test]
    fn a_translator_does_the_opposite_the_other_way() {
        for (one, other) in [
            (Mechanism::Nat64, Mechanism::Siit),
            (Mechanism::Xlat464, Mechanism::Xlat464),
            (Mechanism::MapTranslation, Mechanism::MapTranslation),
            (Mechanism::Gre4, Mechanism::Gre4),
        ] {
            assert_eq!((one.reverse(), other.reverse()), (other, one));
        }
    }
}
