//! The ways from this host to the other one.

use crate::failure::Failure;
use stacklab_agent::client::{AgentAddress, Target};
use stacklab_campaign::rig::ServerWay;
use stacklab_traffic::host::zone::{Route, route_to};

pub(super) fn server_way(target: &Target<'_>, address: &AgentAddress) -> Result<ServerWay, Failure> {
    let here = find_route(target, address)?;
    Ok(ServerWay { here, there: address.address.clone(), socket: address.socket })
}

pub(super) fn find_route(target: &Target<'_>, there: &AgentAddress) -> Result<Route, Failure> {
    route_to(&there.address, target.source_to(&there.address)).map_err(Failure::unreachable)
}
