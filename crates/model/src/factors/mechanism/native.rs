//! Dual stack: routers forward packets of both families unchanged.

use super::{MechanismDef, Method};
use crate::Family;

pub(super) const DEF: MechanismDef =
    MechanismDef { name: "native", doc: "as they are", carries: Family::ALL, method: Method::Forwarding };
