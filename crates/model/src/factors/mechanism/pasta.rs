//! A container whose device is that of pasta (passt): one process, which has a socket for each connection on the host.

use super::{MechanismDef, Method, Publisher};
use crate::Family;

pub(super) const DEF: MechanismDef = MechanismDef {
    name: "pasta",
    doc: "to a container, whose device is that of pasta on its host",
    carries: Family::ALL,
    method: Method::Publishing(Publisher::Pasta),
};
