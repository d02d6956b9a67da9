//! Kernels as the command line names them, and the commits of a user's git repository. The repository is only read:
//! commits are checked out into a folder of stacklab's cache, with an index of the same folder, so neither files nor
//! references nor the index of the user change.

use crate::RegressError;
use stacklab_explain::KernelSource;
use stacklab_guests::kernel::{MAKEFILE, built_in, first_error, run_interruptibly};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The user's folder.
    tree: PathBuf,
    git: PathBuf,
    /// What is kept for it in the cache.
    pub(crate) folder: PathBuf,
}

/// A commit: the names of it and of its files, and the first line of its message.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Commit {
    pub(crate) hash: String,
    pub(crate) tree: String,
    pub(crate) subject: String,
}

impl Commit {
    pub(crate) fn short(&self) -> String {
        format!("{:.12} {}", self.hash, self.subject)
    }
}

impl Repository {
    /// The repository whose files are in this folder.
    pub fn of(folder: &Path) -> Result<Self, RegressError> {
        let tree = find_path(folder, "--show-toplevel")?;
        let git = find_path(folder, "--absolute-git-dir")?;
        // Beside what is compiled from the user's own files, which have other paths.
        let folder = built_in(&tree).join("commits");
        Ok(Repository { git, folder, tree })
    }

    /// The commit that is checked out in this folder, the top of a repository, unless a file differs from it.
    pub(crate) fn find_unchanged_commit(folder: &Path) -> Option<(Self, Commit)> {
        let repository = Self::of(folder).ok()?;
        if fs::canonicalize(folder).ok()? != fs::canonicalize(&repository.tree).ok()? {
            return None;
        }
        let mut status = git();
        status.arg("-C").arg(folder).args(["status", "--porcelain"]);
        let commit =
            run(status).ok().filter(String::is_empty).and_then(|_| repository.commit("HEAD").ok())?;
        Some((repository, commit))
    }

    pub(crate) fn commit(&self, name: &str) -> Result<Commit, RegressError> {
        let words =
            ["log", "-1", "--no-show-signature", "--format=%H%n%T%n%s", "--end-of-options", name, "--"];
        let text = self.ask(&words).map_err(|reason| {
            let hint = if self.is_shallow() {
                "; it is a shallow clone: fetch older commits with `git fetch --unshallow`, or fetch-depth: 0 of \
                 actions/checkout"
            } else {
                ""
            };
            RegressError::Usage(format!("{name} is not a commit in {}: {reason}{hint}", self.tree.display()))
        })?;
        let mut lines = text.lines().map(str::to_owned);
        match (lines.next(), lines.next()) {
            (Some(hash), Some(tree)) => Ok(Commit { hash, tree, subject: lines.next().unwrap_or_default() }),
            _ => Err(RegressError::Usage(format!("{name} is not a commit"))),
        }
    }

    /// Whether the history is cut off.
    fn is_shallow(&self) -> bool {
        self.ask(&["rev-parse", "--is-shallow-repository"]).is_ok_and(|answer| answer == "true")
    }

    /// The first parent.
    pub(crate) fn parent(&self, commit: &Commit) -> Result<Commit, RegressError> {
        self.commit(&format!("{}^1", commit.hash))
    }

    pub(crate) fn is_ancestor(&self, one: &Commit, other: &Commit) -> bool {
        self.ask(&["merge-base", "--is-ancestor", &one.hash, &other.hash]).is_ok()
    }

    pub(crate) fn has(&self, commit: &Commit, file: &str) -> bool {
        self.ask(&["cat-file", "-e", &format!("{}:{file}", commit.hash)]).is_ok()
    }

    /// Whether a commit is of Linux.
    pub(crate) fn check_source(&self, commit: &Commit) -> Result<(), RegressError> {
        if self.has(commit, MAKEFILE) {
            return Ok(());
        }
        let reason = format!("{} is not a Linux source tree: it has no {MAKEFILE}", commit.short());
        Err(RegressError::Machine(reason))
    }

    /// The commits that may be the first bad one, those that halve the rest first, the bad one itself last.
    pub(crate) fn suspects(&self, bad: &Commit, good: &[Commit]) -> Result<Vec<String>, RegressError> {
        let without: Vec<String> = good.iter().map(|commit| format!("^{}", commit.hash)).collect();
        let mut words = vec!["rev-list", "--bisect-all", bad.hash.as_str()];
        words.extend(without.iter().map(String::as_str));
        let listed = self.ask(&words).map_err(RegressError::Machine)?;
        Ok(listed.lines().filter_map(|line| Some(line.split(' ').next()?.to_owned())).collect())
    }

    /// Checks a commit out into the cache; the files that differ from the last one are written. Returns their folder.
    pub(crate) fn check_out(
        &self,
        commit: &Commit,
        interrupted: &AtomicBool,
    ) -> Result<PathBuf, RegressError> {
        let tree = self.folder.join("tree");
        fs::create_dir_all(&tree).map_err(|reason| fail_to_check_out(commit, &tree, &reason))?;
        let index = self.folder.join("index");
        // A killed git has left it; the caller holds the folder's lock.
        let _ = fs::remove_file(self.folder.join("index.lock"));
        let mut command = self.git();
        command.arg("--work-tree").arg(&tree).env("GIT_INDEX_FILE", &index).stdin(Stdio::null());
        command.args(["read-tree", "--reset", "-u", &commit.hash]);
        let messages = self.folder.join("messages");
        match run_interruptibly(command, &messages, interrupted, &mut |_| {}) {
            Ok(Some(true)) => Ok(tree),
            Ok(Some(false)) => Err(fail_to_check_out(commit, &tree, &first_error(&messages))),
            Ok(None) => Err(RegressError::Interrupted),
            Err(reason) => Err(fail_to_check_out(commit, &tree, &reason)),
        }
    }

    fn git(&self) -> Command {
        let mut command = git();
        command.arg("--git-dir").arg(&self.git);
        command
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Result<String, String> {
        let mut command = self.git();
        command.args(words);
        run(command)
    }
}

fn fail_to_check_out(commit: &Commit, tree: &Path, reason: &dyn Display) -> RegressError {
    let place = tree.display();
    RegressError::Machine(format!("cannot check out {} in {place}: {reason}", commit.short()))
}

/// Asks git for a path of the repository whose files are in this folder.
fn find_path(folder: &Path, what: &str) -> Result<PathBuf, RegressError> {
    let mut command = git();
    command.arg("-C").arg(folder).args(["rev-parse", what]);
    run(command).map(PathBuf::from).map_err(|reason| {
        let folder = folder.display();
        RegressError::Usage(match reason.contains("dubious ownership") {
            true => format!(
                "the git repository of {folder} belongs to another user, and git reads it only if it is allowed to: \
                 git config --global --add safe.directory {folder}"
            ),
            false => format!("{folder} is not in a git repository: {reason}"),
        })
    })
}

fn git() -> Command {
    let mut command = Command::new("git");
    // An outer git, such as `git bisect run`, may have set these for its own repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"] {
        command.env_remove(name);
    }
    command.env("LC_ALL", "C").env("GIT_OPTIONAL_LOCKS", "0");
    command
}

fn run(mut command: Command) -> Result<String, String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|reason| format!("cannot run git: {reason}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    Err(errors.trim().lines().next().unwrap_or("git failed").to_owned())
}

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
    pub fn find_by_name(text: &str, tree: &Path) -> Result<Self, RegressError> {
        if let Ok(kernel) = text.parse() {
            // As after each step of `git bisect run`: objects and counts are shared with other commits.
            let commit = match &kernel {
                KernelSource::Tree(folder) => Repository::find_unchanged_commit(folder),
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

    /// Whether it can be a kernel at all, which takes no time: the others may take minutes to be built and counted.
    pub fn check(&self) -> Result<(), RegressError> {
        match self {
            Source::Kernel(kernel) => kernel.check()?,
            Source::Commit(repository, commit) => repository.check_source(commit)?,
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A repository with a commit for each text of a file.
    pub(crate) fn repository(folder: &Path, texts: &[&str]) -> Repository {
        run_git(folder, &["init", "-q"]);
        for text in texts {
            fs::write(folder.join("file"), text).unwrap();
            run_git(folder, &["add", "file"]);
            run_git(folder, &["commit", "-q", "-m", &format!("Write {text}"), "-m", "Body"]);
        }
        Repository { folder: folder.join(".git/cache"), ..Repository::of(folder).unwrap() }
    }

    fn run_git(folder: &Path, words: &[&str]) {
        let mut command = git();
        command.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        run(command).unwrap();
    }

    /// The text of the file of a commit that is checked out.
    fn check_out_text(repository: &Repository, name: &str) -> String {
        let never = AtomicBool::new(false);
        let tree = repository.check_out(&repository.commit(name).unwrap(), &never).unwrap();
        fs::read_to_string(tree.join("file")).unwrap()
    }

    #[test]
    fn commits_are_checked_out_beside_the_users_files() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), &["one", "two", "three"]);
        let (_, head) = Repository::find_unchanged_commit(folder.path()).unwrap();
        assert_eq!(head.subject, "Write three");
        assert!(repository.has(&head, "file") && !repository.has(&head, "other"));
        fs::write(folder.path().join("file"), "mine").unwrap();
        assert_eq!(Repository::find_unchanged_commit(folder.path()), None);
        for (name, text) in [("HEAD~2", "one"), ("HEAD", "three"), ("HEAD^", "two")] {
            assert_eq!(check_out_text(&repository, name), text);
        }
        fs::write(repository.folder.join("tree/file"), "disturbed").unwrap();
        assert_eq!(check_out_text(&repository, "HEAD^"), "two");
        assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "mine");
        let status = repository.ask(&["log", "--format=%s", "HEAD"]).unwrap();
        assert_eq!(status, "Write three\nWrite two\nWrite one");
        let mut status = git();
        status.arg("-C").arg(folder.path()).args(["status", "--porcelain"]);
        assert_eq!(run(status).unwrap(), "M file");
    }

    #[test]
    fn suspects_are_halved_and_end_with_the_bad_commit() {
        let folder = tempfile::tempdir().unwrap();
        let repository = repository(folder.path(), &["0", "1", "2", "3", "4"]);
        let [good, middle, parent, bad] =
            ["HEAD~4", "HEAD~2", "HEAD~1", "HEAD"].map(|name| repository.commit(name).unwrap());
        assert!(repository.is_ancestor(&good, &bad) && !repository.is_ancestor(&bad, &good));
        assert_eq!(repository.parent(&bad).unwrap().subject, "Write 3");
        let suspects = repository.suspects(&bad, std::slice::from_ref(&good)).unwrap();
        assert_eq!(suspects.len(), 4);
        assert_eq!((&suspects[0], &suspects[3]), (&middle.hash, &bad.hash));
        assert_eq!(repository.suspects(&bad, &[good, parent]).unwrap(), [bad.hash]);
        assert!(repository.commit("nothing").unwrap_err().to_string().contains("is not a commit in"));
        let elsewhere = Repository::of(Path::new("/")).unwrap_err().to_string();
        assert!(elsewhere.starts_with("/ is not in a git repository"), "{elsewhere}");
    }

    #[test]
    fn names_that_do_not_exist_give_git_s_reason() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Source::find_by_name("linux-6.1", folder.path()), Ok(Source::Kernel(_))));
        assert!(matches!(
            Source::find_by_name("/", folder.path()),
            Ok(Source::Kernel(KernelSource::Tree(_)))
        ));
        let reason = Source::find_by_name("v6.1", folder.path()).unwrap_err().to_string();
        assert!(
            reason.starts_with("`v6.1` is neither") && reason.contains("not in a git repository"),
            "{reason}"
        );
    }
}
