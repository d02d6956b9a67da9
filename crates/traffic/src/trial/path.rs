//! The planned path between the two hosts of a trial.

use stacklab_model::Rate;
use std::net::IpAddr;

/// The planned path between the two hosts of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The sender's address.
    pub sender: IpAddr,
    /// The receiver's address.
    pub receiver: IpAddr,
    /// MTU of the path, bytes; where nobody planned it, of the sender's own link.
    pub mtu: u32,
    /// Whether the path has been planned so. Else another link of it may have a smaller MTU, and the receiver's own any.
    pub planned_mtu: bool,
    /// Whether offloads stay on.
    pub offloads: bool,
    /// Rate of the link, where it is limited.
    pub rate: Option<Rate>,
    /// Whether a little other traffic is on it meanwhile, both ways, which is no part of the trial.
    pub shared: bool,
    /// What routers between the hosts make of it, where there are any.
    pub nat: Option<NatPath>,
}

/// What routers between the hosts of a trial make of addresses and sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatPath {
    /// The address by which the sender calls the receiver.
    pub destination: IpAddr,
    /// The address by which the receiver calls the sender.
    pub source: IpAddr,
    /// The path MTU that the sender and the receiver find towards each other, bytes.
    pub path_mtus: [u32; 2],
    /// MTU of the sender's and of the receiver's own link, bytes.
    pub own_mtus: [u32; 2],
    /// Whether the sender's port is another to the receiver.
    pub renumbers: bool,
}

impl Path {
    /// The same path the other way.
    pub fn reversed(&self) -> Path {
        let nat = self.nat.map(|NatPath { destination, source, mut path_mtus, mut own_mtus, renumbers }| {
            path_mtus.reverse();
            own_mtus.reverse();
            NatPath { destination: source, source: destination, path_mtus, own_mtus, renumbers }
        });
        Path { sender: self.receiver, receiver: self.sender, nat, ..self.clone() }
    }

    /// The address by which the sender calls the receiver.
    pub fn destination(&self) -> IpAddr {
        self.nat.map_or(self.receiver, |nat| nat.destination)
    }

    /// The address by which the receiver calls the sender.
    pub fn source(&self) -> IpAddr {
        self.nat.map_or(self.sender, |nat| nat.source)
    }

    /// The path MTU of the sender and of the receiver towards each other, bytes.
    pub fn path_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.path_mtus)
    }

    /// The MTU of the sender's and the receiver's interface, bytes.
    pub fn own_mtus(&self) -> [u32; 2] {
        self.nat.map_or([self.mtu; 2], |nat| nat.own_mtus)
    }
}
