//! Transition mechanisms, as they are built on a router, in its namespace or its guest, once its links and addresses are there.
//! Each is built from its definition ([`stacklab_model::MechanismDef`]), whatever its name: packets are forwarded, tunnelled or
//! translated.

mod attribute;
pub(crate) mod layers;
mod native;
pub(crate) mod translate;
pub(crate) mod tunnels;
pub(crate) mod wireguard;

use crate::error::Fault;
use crate::link::addressing::{Site, TUNNEL};
use crate::link::interface::{Route, raise};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Method, Translator};

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
        match &self.mechanism.definition().method {
            Method::Forwarding => native::lay(self),
            Method::Tunnel(tunnel) => tunnels::lay(self, tunnel),
            Method::Translation(_) => translate::lay(self),
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
