//! Builds, boots and counts kernels. Counts of commits are kept in the cache: they never change.

use crate::RegressError;
use crate::git::{Commit, Repository, Source};
use sha2::{Digest, Sha256};
use stacklab_explain::{ExactPlan, ExplainError, KernelSource, count_instructions};
use stacklab_guests::kernel::{BuildError, Kernel, build_kernel, kernel_key, lock};
use stacklab_model::ExactCounts;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::UNIX_EPOCH;

/// The counts of a kernel, IPv4 and IPv6.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedKernel {
    /// As the user named it.
    pub(crate) name: String,
    pub(crate) counts: ExactCounts,
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

    pub(crate) fn say(&mut self, what: &str) {
        (self.step)(what);
    }

    /// Builds a kernel if it is source, boots it and counts.
    pub fn count(&mut self, name: &str, source: &Source) -> Result<CountedKernel, RegressError> {
        let counts = match source {
            Source::Commit(repository, commit) => self.count_commit(repository, commit)?,
            Source::Kernel(source) => {
                let folder = tempfile::tempdir().map_err(ExplainError::Folder)?;
                let kernel = source.kernel(
                    folder.path(),
                    &mut |what| (self.step)(&format!("{name}: {what}")),
                    self.interrupted,
                )?;
                self.built += u32::from(matches!(source, KernelSource::Tree(_)));
                self.boot(name, &kernel)?
            }
        };
        Ok(CountedKernel { name: name.to_owned(), counts })
    }

    /// Boots a kernel and counts again, whatever is kept.
    pub fn repeat(
        &mut self,
        name: &str,
        source: &Source,
        times: u32,
    ) -> Result<Vec<CountedKernel>, RegressError> {
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
        let mut counted = Vec::new();
        for _ in 0..times {
            counted.push(CountedKernel { name: name.to_owned(), counts: self.boot(name, &kernel)? });
        }
        Ok(counted)
    }

    fn boot(&mut self, name: &str, kernel: &Kernel) -> Result<ExactCounts, RegressError> {
        self.say(&format!("{name}: counting"));
        let Counter { plan, program, interrupted, step, .. } = self;
        Ok(count_instructions(
            plan,
            kernel,
            program,
            &mut |what| step(&format!("{name}: counting: {what}")),
            interrupted,
        )?)
    }

    /// Reads the counts that are kept of a commit, or makes and keeps them.
    fn count_commit(
        &mut self,
        repository: &Repository,
        commit: &Commit,
    ) -> Result<ExactCounts, RegressError> {
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
        repository.check_source(commit)?;
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

fn keep(path: &Path, counts: &ExactCounts) -> std::io::Result<()> {
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
