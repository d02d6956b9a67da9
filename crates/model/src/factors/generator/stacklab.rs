//! stacklab's own generator.

use crate::factors::generator::definition::GeneratorDef;
use crate::factors::factor::Factor;
use crate::factors::family::Probe;

pub(super) const DEF: GeneratorDef = GeneratorDef {
    name: "stacklab",
    doc: "stacklab's own, the default",
    programs: &[],
    remedy: "",
    probes: Probe::ALL,
    step_ns: 0,
    counts_messages: true,
    settings: Factor::ALL,
};
