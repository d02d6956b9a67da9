//! A sender in a container, whose device is that of slirp4netns: one process on the host, which has its own TCP and
//! UDP stack for the container, and a socket for each connection on the host.

use super::{MechanismDef, Method, Publisher};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "slirp4netns",
    doc: "from a container, whose device is that of slirp4netns on its host",
    carries: Family::ALL,
    method: Method::Publishing(Publisher::Slirp),
};
