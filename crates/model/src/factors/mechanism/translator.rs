//! What translates on routers.

use crate::factors::mechanism::Mechanism;
use crate::names::named;

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
    /// Whether a mechanism of it keeps state at the far router: connections begin at the near end only, and their ports are
    /// others behind it.
    pub fn keeps_state(self, mechanism: Mechanism) -> bool {
        self == Translator::Jool && mechanism.translation().is_some_and(|translation| translation.far())
    }
}
