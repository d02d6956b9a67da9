//! Transition mechanisms: one file each says what it builds on a router, in its namespace or its guest, once its links and
//! addresses are there. What it leaves of the link's MTU and the bytes that it adds are the model's
//! ([`Mechanism::leaves`], the header model).

mod fourinsix;
mod gre;
pub(crate) mod layers;
mod native;
mod sixinfour;
mod sixrd;
mod sixtofour;
pub(crate) mod translate;
pub(crate) mod wireguard;

use crate::error::Fault;
use crate::link::addressing::{Site, TUNNEL};
use crate::link::interface::{Route, raise};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Translator};

/// A router on which a mechanism is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Router {
    /// Whose router it is.
    pub site: Site,
    /// What is built.
    pub mechanism: Mechanism,
    /// MTU of the middle link, bytes.
    pub mtu: u32,
    /// What translates on it, where the mechanism does.
    pub translator: Translator,
    /// What it has to know of keys, where it encrypts.
    pub keys: Option<wireguard::Keys>,
}

impl Router {
    /// Builds the mechanism on it. To be called in its namespace or its guest.
    pub fn lay(&self) -> Result<(), Fault> {
        match self.mechanism {
            Mechanism::Native => native::lay(self),
            Mechanism::SixInFour => sixinfour::lay(self),
            Mechanism::SixToFour => sixtofour::lay(self),
            Mechanism::SixRd => sixrd::lay(self),
            Mechanism::Gre4 => gre::lay_over_ipv4(self),
            Mechanism::Gre6 => gre::lay_over_ipv6(self),
            Mechanism::FourInSix => fourinsix::lay(self),
            Mechanism::Nat64 | Mechanism::Siit | Mechanism::Xlat464 => translate::lay(self),
            Mechanism::WireGuard4 | Mechanism::WireGuard6 => wireguard::lay(self),
            Mechanism::DsLite | Mechanism::MapE => Err(Fault {
                attempted: format!("build {}", self.mechanism),
                reason: std::io::Error::from(std::io::ErrorKind::Unsupported),
            }),
        }
    }

    /// Raises the tunnel with what the mechanism leaves.
    fn raise_tunnel(&self) -> Result<(), Fault> {
        let carried = Family::ALL.iter().filter_map(|family| self.mechanism.leaves(*family, self.mtu));
        raise(TUNNEL, carried.min().unwrap_or(self.mtu))
    }

    /// Routes the other client's network of each family that is carried into the tunnel.
    fn route_into_tunnel(&self) -> Result<(), Fault> {
        for family in Family::ALL.iter().filter(|family| self.mechanism.carries(**family)) {
            let to = self.site.other().network(self.mechanism, *family);
            Route { to, device: TUNNEL, via: None, mtu: None }.add()?;
        }
        Ok(())
    }
}
