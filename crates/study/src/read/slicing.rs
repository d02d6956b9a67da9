//! How trials that are compared are interleaved.

use crate::diagnostics::{Problem, Problems};
use crate::language::leaf;
use crate::parse::tree::Node;
use crate::read::node::{at, nanoseconds};
use stacklab_model::{Length, ProbeSpec, Slicing};

/// Reads `runs.arms` and `runs.slice`; `None` if each trial is measured by itself.
pub(super) fn read(node: Option<&Node>, probes: &[ProbeSpec], problems: &mut Problems) -> Option<Slicing> {
    let node = node?;
    let arms = at(node.get("arms"), leaf::text, problems)?;
    let slice = at(node.get("slice"), nanoseconds, problems);
    if arms.value != "interleaved" {
        if let Some(slice) = slice {
            problems.add(
                Problem::at(
                    slice.place,
                    "`runs.slice` is set, and the arms are separate",
                    "expected no slice",
                )
                .related(arms.place, "or \"interleaved\" here"),
            );
        }
        return None;
    }
    let counted =
        probes.iter().find(|spec| spec.probe.interleaves() && matches!(spec.length, Length::Packets(_)));
    if let Some(spec) = counted {
        problems.add(Problem::at(
            arms.place,
            format!("the arms are interleaved, and probe.{} ends after {}", spec.probe, spec.length),
            format!("expected \"separate\", or probe.{}.length = {{ time = .. }}", spec.probe),
        ));
    }
    Some(Slicing { slice_ns: slice.map(|slice| slice.value), slots: false })
}
