//! Transition mechanisms on a router, in its namespace or its guest. They are built after its links and addresses.
//! Each is built from its definition ([`stacklab_model::MechanismDef`]), regardless of its name: packets are
//! forwarded, tunnelled or translated.

pub(crate) mod layers;
pub(crate) mod router;
pub mod translate;
pub(crate) mod tunnels;
pub(crate) mod wireguard;

use crate::link::interface::Route;
use crate::{Fault, MIDDLE, Router};
use stacklab_model::{Family, Method};

/// Builds a mechanism on its router. Call it in the router's namespace or its guest.
pub(crate) fn build(router: &Router) -> Result<(), Fault> {
    match &router.mechanism.definition().method {
        Method::Forwarding => forward(router),
        Method::Tunnel(tunnel) => tunnels::build(router, tunnel),
        Method::Translation(_) => translate::build(router),
    }
}

/// Dual stack: packets of both families are forwarded unchanged.
fn forward(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    Family::ALL.iter().try_for_each(|family| {
        let to = other.network(router.mechanism, *family);
        Route { to, device: MIDDLE, via: Some(other.outer(*family)), mtu: None }.add()
    })
}
