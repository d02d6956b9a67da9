//! The requested testbed.

use crate::commands::lab::LabUpOptions;
use crate::failure::Failure;
use stacklab_campaign::rig::placement::without_routers;
use stacklab_guests::Placement;
use stacklab_model::{RoutedKind, Systems};
use stacklab_study::Study;

/// What to build: the study, and one of its routed testbeds if it has routers.
pub(super) fn wanted(options: &LabUpOptions) -> Result<(Study, Option<RoutedKind>), Failure> {
    let (_, study) = options.study.check()?;
    let mechanisms = study.mechanisms();
    if options.placement.in_vm != Placement::WhereNeeded && mechanisms.is_empty() {
        return Err(without_routers().into());
    }
    let routers = study.rows().into_iter().map(|row| row.routers);
    if study.systems().into_iter().chain(routers).any(|systems| systems != Systems::NAMESPACES) {
        let what = "only testbeds of namespaces can be entered; some hosts of this study are not namespaces";
        return Err(Failure::usage(format!(
            "{what}: --set 'factors.os=[\"namespace\"]', and factors.router_os where the study has it"
        )));
    }
    let mut rows = study.rows().into_iter();
    let row = rows.find(|row| options.mechanism.is_none_or(|asked| row.mechanism == asked));
    if let (Some(asked), None) = (options.mechanism, &row) {
        let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.name()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format!(
            "the study's testbeds have no mechanism {asked}: they have {names}"
        )));
    }
    Ok((study, row))
}
