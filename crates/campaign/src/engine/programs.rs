//! The programs of a study's engines on this machine.

use crate::CampaignError;
use stacklab_model::{Engine, once_each};
use stacklab_protocols::engines::tool;
use stacklab_study::Study;
use stacklab_testbed::{find, first_line};

/// The engines of a study that are not stacklab's own, each with the version of its program.
pub struct Programs(Vec<(Engine, String)>);

impl Programs {
    /// Finds every program that a study needs.
    ///
    /// # Errors
    /// One is not installed: its name, and how to get it.
    pub fn of(study: &Study) -> Result<Self, CampaignError> {
        let engines = once_each(study.cells.iter().map(Engine::of));
        let found = engines.into_iter().filter(|engine| engine.is_other()).map(|engine| {
            let about = engine.definition();
            about.programs.iter().try_for_each(|program| find(program, about.remedy).map(drop))?;
            Ok((engine, version(engine)?))
        });
        found.collect::<Result<Vec<_>, CampaignError>>().map(Programs)
    }

    /// `; engines: iperf 3.12 (cJSON 1.7.15), ..`, to be said behind the testbed; empty if there are none.
    pub fn describe(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let versions: Vec<&str> = self.0.iter().map(|(_, version)| version.as_str()).collect();
        format!("; engines: {}", versions.join(", "))
    }
}

/// The version of an engine's program, as it prints it.
///
/// # Errors
/// It is not installed.
pub(super) fn version(engine: Engine) -> Result<String, CampaignError> {
    let Some(tool) = tool(engine) else { return Ok(format!("stacklab {}", env!("CARGO_PKG_VERSION"))) };
    let asked = (tool.version)();
    let file = find(asked.program, engine.definition().remedy)?;
    Ok(first_line(&file, &asked.arguments))
}
