//! stacklab's own engine.

use crate::factors::engine::definition::EngineDef;
use crate::factors::factor::Factor;
use crate::factors::family::Probe;

pub(super) const DEF: EngineDef = EngineDef {
    name: "stacklab",
    doc: "stacklab's own, the default",
    programs: &[],
    remedy: "",
    probes: Probe::ALL,
    step_ns: 0,
    counts_messages: true,
    settings: Factor::ALL,
};
