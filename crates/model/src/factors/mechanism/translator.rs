//! Translators on routers.

use crate::Mechanism;
use crate::names::named;

named! {
    pub enum Translator("translator") {
        /// A program on a TUN device. It translates each packet alone, and maps one IPv6 address to one IPv4 address.
        Tayga = "tayga",
        /// A kernel module. Its NAT64 keeps state and shares an IPv4 address among connections (RFC 6146).
        Jool = "jool",
    }
}

impl Translator {
    /// Whether a mechanism with this translator keeps state at the far router. Connections then begin at the near end
    /// only, and their ports change at the translator.
    pub fn keeps_state(self, mechanism: Mechanism) -> bool {
        self == Translator::Jool && mechanism.translation().is_some_and(|translation| translation.far())
    }
}
