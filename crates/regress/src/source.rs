//! Kernels as the command line names them.

use crate::RegressError;
use crate::git::{Commit, Repository};
use stacklab_explain::KernelSource;
use std::path::Path;

/// A kernel to count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// An image, a file or a folder.
    Kernel(KernelSource),
    /// A commit.
    Commit(Repository, Commit),
}

impl Source {
    /// A system, a file, a folder with a kernel's source, or a commit in the repository of another folder. A folder
    /// without changes is the commit that is checked out in it.
    ///
    /// # Errors
    /// It is none of them.
    pub fn named(text: &str, tree: &Path) -> Result<Self, RegressError> {
        if let Ok(kernel) = text.parse() {
            // As after each step of `git bisect run`: objects and counts are shared with other commits.
            let commit = match &kernel {
                KernelSource::Tree(folder) => Repository::unchanged(folder),
                _ => None,
            };
            return Ok(commit.map_or(Source::Kernel(kernel), |(tree, commit)| Source::Commit(tree, commit)));
        }
        let commit = Repository::of(tree).and_then(|repository| {
            let commit = repository.commit(text)?;
            Ok(Source::Commit(repository, commit))
        });
        commit.map_err(|reason| {
            RegressError::Usage(format!(
                "`{text}` is neither a system such as linux-6.1, nor a file, folder or commit: {reason}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_exist_give_git_s_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Source::named("linux-6.1", folder.path()), Ok(Source::Kernel(_))));
        assert!(matches!(Source::named("/", folder.path()), Ok(Source::Kernel(KernelSource::Tree(_)))));
        let reason = Source::named("v6.1", folder.path()).unwrap_err().to_string();
        assert!(
            reason.starts_with("`v6.1` is neither") && reason.contains("not in a git repository"),
            "{reason}"
        );
    }
}
