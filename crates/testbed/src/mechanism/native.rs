//! Dual stack: routers forward packets of both families unchanged.

use crate::error::Fault;
use crate::link::addressing::MIDDLE;
use crate::link::interface::Route;
use crate::mechanism::router::Router;
use stacklab_model::Family;

pub(super) fn build(router: &Router) -> Result<(), Fault> {
    let other = router.site.other();
    for family in Family::ALL {
        let to = other.network(router.mechanism, *family);
        Route { to, device: MIDDLE, via: Some(other.outer(*family)), mtu: None }.add()?;
    }
    Ok(())
}
