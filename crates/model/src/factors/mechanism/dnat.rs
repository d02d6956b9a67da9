//! A container whose ports are published by NAT: a rule of nftables on its host changes the destination address, as
//! those of container engines do.

use super::{MechanismDef, Method, Publisher};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "dnat",
    doc: "to a container, whose host has a rule of nftables that changes the destination",
    carries: Family::ALL,
    method: Method::Publishing(Publisher::Dnat),
};
