//! Several customers of one provider: each has a first router, and all share the second one, the provider's border.

use crate::Cell;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// The most customers that a study can ask for.
pub const MAX_CLIENTS: u32 = 16;

/// The customers behind the near routers of a cell's testbed.
pub fn count_customers(cell: &Cell) -> u32 {
    cell.settings.customers.unwrap_or(1)
}

/// The sender's own link of one of several customers. Its sockets are bound to the interface: customers may have the
/// same address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uplink {
    pub interface: String,
    pub address: IpAddr,
}

/// What the receiver sees of one of several customers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Customer {
    pub uplink: Uplink,
    /// Its address behind all that translates.
    pub source: IpAddr,
    pub ports: CustomerPorts,
}

/// The source ports that a customer has of its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CustomerPorts {
    /// The address is its own, or a NAT gives each connection a port.
    Any,
    /// All from the first to the last one.
    Range { first: u16, last: u16 },
    /// Those from 1024 on whose masked bits are these.
    Masked { mask: u16, bits: u16 },
}

/// Ports that nobody is given (RFC 7597, section 5.1).
const FIRST_SHARED_PORT: u16 = 1024;

impl CustomerPorts {
    pub fn contain(self, port: u16) -> bool {
        match self {
            CustomerPorts::Any => true,
            CustomerPorts::Range { first, last } => (first..=last).contains(&port),
            CustomerPorts::Masked { mask, bits } => port >= FIRST_SHARED_PORT && port & mask == bits,
        }
    }
}

impl fmt::Display for CustomerPorts {
    /// For a sentence about an address: `ports 1024 to 2047`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CustomerPorts::Any => f.write_str("any port"),
            CustomerPorts::Range { first, last } => write!(f, "ports {first} to {last}"),
            CustomerPorts::Masked { mask, bits } => {
                write!(f, "ports from {FIRST_SHARED_PORT} on with {bits:#x} in the bits {mask:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_those_of_the_set_alone() {
        let range = CustomerPorts::Range { first: 1024, last: 2047 };
        assert!(range.contain(1024) && range.contain(2047) && !range.contain(2048));
        // The customer with number 0x34 of RFC 7597, appendix A, example 1.
        let masked = CustomerPorts::Masked { mask: 0x3fc, bits: 0xd0 };
        assert!(masked.contain(1232) && masked.contain(1235) && masked.contain(64720));
        assert!(!masked.contain(1236) && !masked.contain(0xd0), "the next one's, and a well-known port");
        assert_eq!(range.to_string(), "ports 1024 to 2047");
        assert_eq!(masked.to_string(), "ports from 1024 on with 0xd0 in the bits 0x3fc");
    }
}
