//! The kernel to count, as the command line names it.

use crate::error::ExplainError;
use stacklab_campaign::CampaignError;
use stacklab_guests::kernel::{Kernel, build_kernel, built_in};
use stacklab_model::System;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;

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
    /// The kernel to boot; a tree is compiled into the folder.
    ///
    /// # Errors
    /// There is no such kernel, or it cannot be built, each in a sentence; or the user interrupted.
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

    #[test]
    fn a_kernel_is_a_system_a_file_or_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("vmlinuz");
        std::fs::write(&file, "").unwrap();
        let parse = |text: &str| text.parse::<KernelSource>();
        assert_eq!(parse("linux-6.1"), Ok(KernelSource::System(System::Linux("6.1".to_owned()))));
        assert_eq!(parse(file.to_str().unwrap()), Ok(KernelSource::File(file.clone())));
        let tree = KernelSource::Tree(folder.path().to_owned());
        assert_eq!(parse(folder.path().to_str().unwrap()), Ok(tree));
        assert!(parse("linux.6").unwrap_err().contains("neither a system"));
    }
}
