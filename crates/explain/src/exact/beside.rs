//! The kernel to count, as the command line names it; and exact counts of the arms that a study compares, beside its
//! samples.

use crate::ExplainError;
use crate::exact::count_instructions;
use crate::exact::plan::ExactPlan;
use stacklab_campaign::CampaignError;
use stacklab_guests::kernel::{Kernel, build_kernel, built_in, check_source};
use stacklab_model::{Cell, ExactCounts, ExactPair, Explanation, Probe, System};
use stacklab_study::{Study, exact_pair};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

/// Whether the arms of these pairs can be counted, by each probe of the study that is sampled.
pub fn check_countable(study: &Study, pairs: &[[Cell; 2]]) -> Result<(), ExplainError> {
    for spec in study.probes.iter().filter(|spec| spec.probe.interleaves()) {
        for cells in pairs {
            same_arms(study, spec.probe, [&cells[0], &cells[1]])?;
        }
    }
    Ok(())
}

/// Counts the instructions of each explained pair, and adds them to its explanation.
pub fn count_beside(
    found: &mut [Explanation],
    study: &Study,
    kernel: &Kernel,
    program: &Path,
    step: &mut dyn FnMut(&str),
    interrupted: &AtomicBool,
) -> Result<(), ExplainError> {
    let mut pairs = Vec::new();
    for Explanation { probe, baseline, candidate, .. } in found.iter() {
        pairs.push(same_arms(study, *probe, [baseline, candidate])?);
    }
    let plan = ExactPlan::new(pairs).map_err(ExplainError::Study)?;
    let ExactCounts { qemu, kernel, cells } = count_instructions(&plan, kernel, program, step, interrupted)?;
    for (explanation, cell) in found.iter_mut().zip(cells) {
        let counts = ExactCounts { qemu: qemu.clone(), kernel: kernel.clone(), cells: vec![cell] };
        explanation.exact = Some(Box::new(counts));
    }
    Ok(())
}

/// The arms of two cells in the emulated machine.
fn same_arms(study: &Study, probe: Probe, cells: [&Cell; 2]) -> Result<ExactPair, ExplainError> {
    exact_pair(study, probe, cells)
        .map_err(|reason| ExplainError::Study(format!("instructions cannot be counted {reason}")))
}

/// The source of a guest's kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// A system with an image: `linux-6.1`.
    System(System),
    /// A bzImage with all drivers built in.
    File(PathBuf),
    /// A source tree, which is compiled.
    Tree(PathBuf),
}

impl FromStr for KernelSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let path = Path::new(text);
        match text.parse() {
            Ok(system) => Ok(KernelSource::System(system)),
            Err(_) if path.is_dir() => Ok(KernelSource::Tree(path.to_owned())),
            Err(_) if path.is_file() => Ok(KernelSource::File(path.to_owned())),
            Err(_) => Err(format!(
                "`{text}` is neither a system such as linux-6.1, nor a kernel's file, nor a folder with its source"
            )),
        }
    }
}

impl fmt::Display for KernelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelSource::System(system) => system.fmt(f),
            KernelSource::File(path) | KernelSource::Tree(path) => path.display().fmt(f),
        }
    }
}

impl KernelSource {
    /// Whether it can be a kernel at all, before it is compiled or booted.
    pub fn check(&self) -> Result<(), ExplainError> {
        let checked = match self {
            KernelSource::System(system) => Kernel::of(system).map(drop),
            KernelSource::File(path) => Kernel::in_file(path).map(drop),
            KernelSource::Tree(tree) => check_source(tree),
        };
        Ok(checked.map_err(CampaignError::from)?)
    }

    /// The kernel to boot; a tree is compiled into the folder.
    pub fn kernel(
        &self,
        folder: &Path,
        step: &mut dyn FnMut(&str),
        interrupted: &AtomicBool,
    ) -> Result<Kernel, ExplainError> {
        let kernel = match self {
            KernelSource::System(system) => Kernel::of(system),
            KernelSource::File(path) => Kernel::in_file(path),
            KernelSource::Tree(tree) => {
                let file = folder.join("bzImage");
                step(&format!("compiling the kernel in {}", tree.display()));
                build_kernel(tree, &built_in(tree), &file, step, interrupted)?;
                Ok(Kernel { file, modules: None })
            }
        };
        Ok(kernel.map_err(CampaignError::from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampled_study;
    use stacklab_model::Factor;
    use stacklab_study::{Input, parse};

    fn arms(name: &str, factor: Option<Factor>, levels: &[&str]) -> Result<String, String> {
        let levels: Vec<String> = levels.iter().map(|level| (*level).to_owned()).collect();
        let text = sampled_study(name, factor, &levels, 128, 1_000_000_000).unwrap();
        let study = parse(&Input::file("s", &text)).unwrap();
        let levels = [&study.comparisons[0].baseline, &study.comparisons[0].candidate];
        let factor = study.comparisons[0].factor;
        let cells = levels.map(|level| study.cells.iter().find(|cell| cell.level(factor) == *level).unwrap());
        let pair = same_arms(&study, study.probes[0].probe, cells);
        pair.map(|pair| ExactPlan::new(vec![pair]).unwrap().to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn arms_of_a_study_are_counted_over_the_same_network() {
        assert_eq!(arms("udp", None, &[]).unwrap(), "udp:ipv4@link/128*0+ipv6@link/128*0");
        assert_eq!(arms("echo", None, &[]).unwrap(), "echo:ipv4@link/128*0+ipv6@link/128*0");
        let mechanisms = arms("tcp", Some(Factor::Mechanism), &["native", "6in4"]).unwrap();
        assert_eq!(mechanisms, "tcp:ipv6@native/128*0+ipv6@6in4/128*0");
        let error = arms("udp", Some(Factor::Io), &[]).unwrap_err();
        assert!(error.contains("with io"), "{error}");
    }

    #[test]
    fn a_kernel_is_a_system_a_file_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vmlinuz");
        std::fs::write(&file, "").unwrap();
        let system = KernelSource::System(System::Linux("6.1".to_owned()));
        let tree = KernelSource::Tree(folder.path().to_owned());
        for (text, source) in [
            ("linux-6.1", system),
            (file.to_str().unwrap(), KernelSource::File(file.clone())),
            (folder.path().to_str().unwrap(), tree),
        ] {
            assert_eq!(text.parse::<KernelSource>(), Ok(source));
        }
        assert!("linux.6".parse::<KernelSource>().unwrap_err().contains("neither a system"));
    }
}
