use stacklab_model::{Customer, Rate, Role, ScopedAddr, Uplink};
use std::net::IpAddr;

/// The planned path between the two hosts of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The sender's address, as its own host names it: a link-local one with that host's zone, unless its agent knows
    /// that itself.
    pub sender: ScopedAddr,
    /// The receiver's address, as its own host names it.
    pub receiver: ScopedAddr,
    /// MTU of the path, bytes; without a planned MTU, the MTU of the sender's own link.
    pub mtu: u32,
    /// Whether the MTU was planned. Otherwise another link of the path may have a smaller MTU, and the receiver's own
    /// link any MTU.
    pub planned_mtu: bool,
    /// Whether offloads stay on.
    pub offloads: bool,
    /// Rate of the link, if limited.
    pub rate: Option<Rate>,
    /// Whether the path also carries a little other traffic in both directions, which is not part of the trial.
    pub shared: bool,
    /// Address and size translation by routers between the hosts, if any was planned.
    pub nat: Option<NatPath>,
    /// Which end opens all flows, where firewalls and address translation may let only that host connect out. `None`:
    /// each sender opens its flows.
    pub opener: Option<Role>,
    /// The customers behind the sender's routers, if there are several. A flow is of the one of its number, in turn.
    pub customers: Vec<Customer>,
}

/// How routers between the hosts of a trial change addresses and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatPath {
    /// The receiver's address as the sender uses it.
    pub destination: IpAddr,
    /// The sender's address as the receiver uses it.
    pub source: IpAddr,
    /// The path MTU from the sender and from the receiver, bytes.
    pub path_mtus: [u32; 2],
    /// MTU of the sender's and of the receiver's own link, bytes.
    pub own_mtus: [u32; 2],
    /// Whether the receiver sees another source port than the sender uses.
    pub renumbers: bool,
}

impl Path {
    /// A path that was not planned: the MTU is that of this host's own link, and offloads are as they are.
    pub fn without_plan(sender: ScopedAddr, receiver: ScopedAddr, mtu: u32) -> Self {
        Path {
            sender,
            receiver,
            mtu,
            planned_mtu: false,
            offloads: true,
            rate: None,
            shared: false,
            nat: None,
            opener: None,
            customers: Vec::new(),
        }
    }

    /// The same path in the other direction.
    pub fn reverse(&self) -> Path {
        let nat = self.nat.map(|NatPath { destination, source, mut path_mtus, mut own_mtus, renumbers }| {
            path_mtus.reverse();
            own_mtus.reverse();
            NatPath { destination: source, source: destination, path_mtus, own_mtus, renumbers }
        });
        let opener = self.opener.map(|opener| match opener {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        });
        let [sender, receiver] = [&self.receiver, &self.sender].map(Clone::clone);
        // Customers send forward only.
        Path { sender, receiver, nat, opener, customers: Vec::new(), ..self.clone() }
    }

    /// The receiver's address as the sender uses it; a link-local one in the zone of the sender's own.
    pub fn destination(&self) -> IpAddr {
        self.nat.map_or(self.receiver.ip(), |nat| nat.destination)
    }

    /// The sender's address as the receiver uses it; a link-local one in the zone of the receiver's own.
    pub fn source(&self) -> IpAddr {
        self.nat.map_or(self.sender.ip(), |nat| nat.source)
    }

    /// Whether the receiver may have this address as its peer's: the sender's, or one of several customers'.
    pub(crate) fn is_source(&self, address: IpAddr) -> bool {
        address == self.source() || self.customers.iter().any(|customer| customer.source == address)
    }

    /// The sender's links, if there are several.
    pub(crate) fn list_uplinks(&self) -> Vec<Uplink> {
        self.customers.iter().map(|customer| customer.uplink.clone()).collect()
    }

    /// Whether the path was not built for the trial: routers on it may translate addresses, and firewalls drop packets.
    pub fn is_as_found(&self) -> bool {
        !self.planned_mtu
    }

    /// The path MTU from the sender and from the receiver, bytes.
    pub fn path_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.path_mtus)
    }

    /// The MTU of the sender's and the receiver's interface, bytes.
    pub fn own_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.own_mtus)
    }
}
