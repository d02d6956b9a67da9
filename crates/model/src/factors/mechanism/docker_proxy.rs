//! A container whose ports are published by Docker's user-space proxy, one process for each port and address.

use super::{MechanismDef, Method, Publisher};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "docker-proxy",
    doc: "to a container, whose host has a docker-proxy for each port",
    carries: Family::ALL,
    method: Method::Publishing(Publisher::DockerProxy),
};
