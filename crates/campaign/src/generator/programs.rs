//! The programs of a study's generators on this machine.

use crate::CampaignError;
use stacklab_model::{Generator, once_each};
use stacklab_protocols::generators::tool;
use stacklab_study::Study;
use stacklab_testbed::{find, first_line};

/// The generators of a study that are not stacklab's own, each with the version of its program.
pub struct Programs(Vec<(Generator, String)>);

impl Programs {
    /// Finds every program that a study needs.
    ///
    /// # Errors
    /// One is not installed: its name, and how to get it.
    pub fn of(study: &Study) -> Result<Self, CampaignError> {
        let generators = once_each(study.cells.iter().map(Generator::of));
        let found = generators.into_iter().filter(|generator| generator.is_other()).map(|generator| {
            let about = generator.definition();
            about.programs.iter().try_for_each(|program| find(program, about.remedy).map(drop))?;
            Ok((generator, version(generator)?))
        });
        found.collect::<Result<Vec<_>, CampaignError>>().map(Programs)
    }

    /// `; generators: iperf 3.12 (cJSON 1.7.15), ..`, to be said behind the testbed; empty if there are none.
    pub fn describe(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let versions: Vec<&str> = self.0.iter().map(|(_, version)| version.as_str()).collect();
        format!("; generators: {}", versions.join(", "))
    }
}

/// The version of a generator's program, as it prints it.
///
/// # Errors
/// It is not installed.
pub(super) fn version(generator: Generator) -> Result<String, CampaignError> {
    let Some(tool) = tool(generator) else { return Ok(format!("stacklab {}", env!("CARGO_PKG_VERSION"))) };
    let asked = (tool.version)();
    let file = find(asked.program, generator.definition().remedy)?;
    Ok(first_line(&file, &asked.arguments))
}
