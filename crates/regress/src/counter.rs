//! Builds, boots and counts kernels. Counts of commits are kept in the cache: they never change.

use crate::RegressError;
use crate::git::{Commit, Repository};
use crate::source::Source;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stacklab_explain::{ExactPlan, ExplainError, count_instructions};
use stacklab_guests::kernel::{BuildError, Kernel, MAKEFILE, build_kernel, kernel_key, lock};
use stacklab_model::{ExactCell, ExactCounts, ExactProbe};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

/// The counts of a kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// The kernel, as the user named it.
    pub name: String,
    pub(crate) counts: Counts,
}

/// Instructions of both families by cell and function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub(crate) qemu: String,
    pub(crate) release: String,
    pub(crate) cells: Vec<CellCounts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellCounts {
    pub(crate) name: String,
    pub(crate) messages: u64,
    pub(crate) total: [u64; 2],
    pub(crate) functions: Vec<FunctionCounts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct FunctionCounts {
    pub(crate) name: String,
    pub(crate) instructions: [u64; 2],
}

impl CellCounts {
    pub(crate) fn per_message(&self, instructions: u64) -> f64 {
        instructions as f64 / self.messages as f64
    }
}

impl From<ExactCounts> for Counts {
    fn from(counts: ExactCounts) -> Self {
        let cell = |cell: ExactCell| CellCounts {
            name: match cell.probe {
                ExactProbe::Connect => cell.probe.to_string(),
                probe => format!("{probe}/{}", cell.arms[0].size),
            },
            messages: cell.messages,
            total: cell.total,
            functions: cell
                .functions
                .into_iter()
                .map(|row| FunctionCounts { name: row.name, instructions: row.instructions })
                .collect(),
        };
        Counts {
            qemu: counts.qemu,
            release: counts.kernel,
            cells: counts.cells.into_iter().map(cell).collect(),
        }
    }
}

/// Counts kernels with this program in the guest.
pub struct Counter<'a> {
    plan: ExactPlan,
    program: PathBuf,
    /// The version of QEMU.
    qemu: String,
    interrupted: &'a AtomicBool,
    step: &'a mut dyn FnMut(&str),
    /// Kernels that were built and those whose counts were known.
    pub(crate) built: u32,
    pub(crate) known: u32,
}

impl<'a> Counter<'a> {
    /// A counter of this traffic.
    pub fn new(
        plan: ExactPlan,
        program: PathBuf,
        qemu: String,
        interrupted: &'a AtomicBool,
        step: &'a mut dyn FnMut(&str),
    ) -> Self {
        Counter { plan, program, qemu, interrupted, step, built: 0, known: 0 }
    }

    /// Reports a step.
    pub(crate) fn say(&mut self, what: &str) {
        (self.step)(what);
    }

    /// Builds a kernel if it is source, boots it and counts.
    ///
    /// # Errors
    /// The kernel cannot be built or does not boot, or this machine cannot do that; or the user interrupted.
    pub fn count(&mut self, name: &str, source: &Source) -> Result<Counted, RegressError> {
        let counts = match source {
            Source::Commit(repository, commit) => self.commit(repository, commit)?,
            Source::Kernel(source) => {
                let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
                let mut step = |what: &str| (self.step)(&format!("{name}: {what}"));
                let kernel = source.kernel(folder.path(), &mut step, self.interrupted)?;
                self.built += u32::from(matches!(source, stacklab_explain::KernelSource::Tree(_)));
                self.boot(name, &kernel)?
            }
        };
        Ok(Counted { name: name.to_owned(), counts })
    }

    /// Boots a kernel and counts again, whatever is kept.
    ///
    /// # Errors
    /// Those of [`Counter::count`].
    pub fn repeat(&mut self, name: &str, source: &Source, times: u32) -> Result<Vec<Counted>, RegressError> {
        if times == 0 {
            return Ok(Vec::new());
        }
        let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
        let kernel = match source {
            Source::Commit(repository, commit) => {
                self.build(repository, commit, &folder.path().join("kernel"))?
            }
            Source::Kernel(source) => source.kernel(folder.path(), self.step, self.interrupted)?,
        };
        let again = |_| Ok(Counted { name: name.to_owned(), counts: self.boot(name, &kernel)? });
        (0..times).map(again).collect()
    }

    fn boot(&mut self, name: &str, kernel: &Kernel) -> Result<Counts, RegressError> {
        self.say(&format!("{name}: counting"));
        Ok(count_instructions(&self.plan, kernel, &self.program, self.interrupted)?.into())
    }

    fn commit(&mut self, repository: &Repository, commit: &Commit) -> Result<Counts, RegressError> {
        let kept = repository.folder.join("counts").join(self.key(commit));
        let known = fs::read(&kept).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        if let Some(counts) = known {
            self.known += 1;
            self.say(&format!("{}: counted before", commit.short()));
            return Ok(counts);
        }
        let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
        let kernel = self.build(repository, commit, &folder.path().join("kernel"))?;
        let counts = self.boot(&commit.short(), &kernel)?;
        keep(&kept, &counts).map_err(|reason| {
            RegressError::Machine(format!("cannot keep counts in {}: {reason}", kept.display()))
        })?;
        Ok(counts)
    }

    fn build(
        &mut self,
        repository: &Repository,
        commit: &Commit,
        into: &Path,
    ) -> Result<Kernel, RegressError> {
        let name = commit.short();
        if !repository.has(commit, MAKEFILE) {
            let reason = format!("{name} is not a Linux source tree: it has no {MAKEFILE}");
            return Err(RegressError::Machine(reason));
        }
        let mut step = |what: &str| (self.step)(&format!("{name}: {what}"));
        fs::create_dir_all(&repository.folder).map_err(|reason| {
            RegressError::Machine(format!("cannot create {}: {reason}", repository.folder.display()))
        })?;
        let _lock = lock(&repository.folder.join("tree.lock"), &mut step, self.interrupted)?;
        step("checking out and compiling");
        let tree = repository.check_out(commit, self.interrupted)?;
        self.built += 1;
        build_kernel(&tree, &repository.folder, into, &mut step, self.interrupted)?;
        Ok(Kernel { file: into.to_owned(), modules: None })
    }

    /// What the counts of a commit depend on.
    fn key(&self, commit: &Commit) -> String {
        let about = fs::metadata(&self.program).ok();
        let modified =
            about.as_ref().and_then(|about| about.modified().ok()?.duration_since(UNIX_EPOCH).ok());
        let program = (about.map(|about| about.len()), modified.map(|since| since.as_nanos()));
        let parts = format!(
            "{} {} {} {} {program:?} {}",
            commit.tree,
            kernel_key(),
            self.plan,
            self.qemu,
            env!("CARGO_PKG_VERSION")
        );
        let hash = Sha256::digest(parts.as_bytes());
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + ".json"
    }
}

fn keep(path: &Path, counts: &Counts) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    let part = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&part, serde_json::to_vec(counts)?).and_then(|()| fs::rename(&part, path));
    written.inspect_err(|_| drop(fs::remove_file(&part)))
}

impl From<ExplainError> for RegressError {
    fn from(error: ExplainError) -> Self {
        match error {
            ExplainError::Build(error) => error.into(),
            ExplainError::Interrupted => RegressError::Interrupted,
            ExplainError::Kernel(_) => RegressError::Kernel(error.to_string()),
            error => RegressError::Machine(error.to_string()),
        }
    }
}

impl From<BuildError> for RegressError {
    fn from(error: BuildError) -> Self {
        match error {
            BuildError::Source(reason) => RegressError::Kernel(reason),
            BuildError::Machine(reason) => RegressError::Machine(reason.to_string()),
            BuildError::Interrupted => RegressError::Interrupted,
        }
    }
}
