//! Transition mechanisms on a router, in its namespace or its guest. They are built after its links and addresses.
//! Each is built from its definition ([`stacklab_model::MechanismDef`]), regardless of its name: packets are
//! forwarded, tunnelled or translated.

mod attribute;
pub(crate) mod keys;
pub(crate) mod layers;
mod native;
pub(crate) mod router;
pub mod translate;
pub(crate) mod tunnels;
pub(crate) mod wireguard;

use crate::error::Fault;
use crate::mechanism::router::Router;
use stacklab_model::Method;

/// Builds a mechanism on its router. Call it in the router's namespace or its guest.
pub(crate) fn build(router: &Router) -> Result<(), Fault> {
    match &router.mechanism.definition().method {
        Method::Forwarding => native::build(router),
        Method::Tunnel(tunnel) => tunnels::build(router, tunnel),
        Method::Translation(_) => translate::build(router),
    }
}
