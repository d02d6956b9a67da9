//! Where a stack is attached, as a host's command line states it.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// The end of a link, and the addresses of the stack there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackConfig {
    /// Name of the interface, which has no addresses: the kernel's stack does not use it.
    pub interface: String,
    /// Its hardware address.
    pub hardware: [u8; 6],
    /// Its addresses, each with the bits of its prefix.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The addresses of the other host on the link.
    pub neighbours: Vec<IpAddr>,
    /// The hardware address of the other host.
    pub neighbour_hardware: [u8; 6],
    /// MTU of the link, bytes of IP.
    pub mtu: u32,
}
