//! A receiver in a container with a device of its host's link (macvlan): it has an address of that link's network, and
//! the host's own stack never gets its packets.

use super::{MechanismDef, Method, Publisher};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "macvlan",
    doc: "to a container, whose device is a macvlan of its host's link",
    carries: Family::ALL,
    method: Method::Publishing(Publisher::Macvlan),
};
