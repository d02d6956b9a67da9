//! A router on which a mechanism is built.

use crate::link::addressing::TUNNEL;
use crate::link::interface::{Route, raise};
use crate::mechanism::wireguard::Keys;
use crate::{Fault, Site};
use serde::{Deserialize, Serialize};
use stacklab_model::{Family, Mechanism, Translator};

/// A router on which a mechanism is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Its end of the path.
    pub site: Site,
    /// The mechanism to build.
    pub mechanism: Mechanism,
    /// MTU of the middle link, bytes.
    pub mtu: u32,
    /// The translator on it, if the mechanism translates.
    pub translator: Translator,
    /// The keys that it needs, if the mechanism encrypts.
    pub keys: Option<Keys>,
}

impl Router {
    /// Sets the tunnel device up, with the MTU that the mechanism leaves.
    pub(super) fn raise_tunnel(&self) -> Result<(), Fault> {
        let carried = Family::ALL.iter().filter_map(|family| self.mechanism.leaves(*family, self.mtu));
        raise(TUNNEL, carried.min().unwrap_or(self.mtu))
    }

    /// Adds routes into the tunnel to the other client's network, for each family that is carried.
    pub(super) fn route_into_tunnel(&self) -> Result<(), Fault> {
        for family in Family::ALL.iter().filter(|family| self.mechanism.carries(**family)) {
            let to = self.site.other().network(self.mechanism, *family);
            Route { to, device: TUNNEL, via: None, mtu: None }.add()?;
        }
        Ok(())
    }
}

pub(crate) fn translates_at(mechanism: Mechanism, site: Site) -> bool {
    mechanism.translation().is_some_and(|translation| match site {
        Site::Near => translation.near(),
        Site::Far => translation.far(),
    })
}
