//! The programs of a study's generators on this machine.

use crate::CampaignError;
use stacklab_model::{Cell, Generator, once_each};
use stacklab_protocols::generators::tool;
use stacklab_study::Study;
use stacklab_testbed::{find_in, first_line};

/// The programs of a study's generators that are not stacklab's own: their versions, with their folders.
pub struct Programs(Vec<String>);

impl Programs {
    /// Finds every program that a study needs.
    ///
    /// # Errors
    /// One is not installed: its name, and how to get it.
    pub fn of(study: &Study) -> Result<Self, CampaignError> {
        let of = |cell: &Cell| (Generator::of(cell), cell.settings.programs.clone());
        let generators = once_each(study.cells.iter().map(of));
        let found = generators.into_iter().filter(|(generator, _)| generator.is_other());
        let found = found.map(|(generator, folder)| {
            let (about, folder) = (generator.definition(), folder.as_deref());
            let mut programs = about.programs.iter();
            programs.try_for_each(|program| find_in(folder, program, about.remedy).map(drop))?;
            let version = version(generator, folder)?;
            Ok(folder.map_or_else(|| version.clone(), |folder| format!("{version} of {folder}")))
        });
        found.collect::<Result<Vec<_>, CampaignError>>().map(Programs)
    }

    /// `; generators: iperf 3.12 (cJSON 1.7.15), ..`, to be said behind the testbed; empty if there are none.
    pub fn describe(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        format!("; generators: {}", self.0.join(", "))
    }
}

/// The version of a generator's program, as it prints it.
///
/// # Errors
/// It is not installed.
pub(super) fn version(generator: Generator, folder: Option<&str>) -> Result<String, CampaignError> {
    let Some(tool) = tool(generator) else { return Ok(format!("stacklab {}", env!("CARGO_PKG_VERSION"))) };
    let asked = (tool.version)();
    let file = find_in(folder, asked.program, generator.definition().remedy)?;
    Ok(first_line(&file, &asked.arguments))
}
