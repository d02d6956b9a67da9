//! Fetches and unpacks packages of Debian's archive without installing them. apt-get runs with a separate state, and
//! checks the archive's signatures as on the machine itself.

use crate::command::run_slowly;
use crate::{Step, describe_failure, run};
use stacklab_testbed::TestbedError;
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the archive of Debian where apt of this machine uses none, as on Ubuntu.
const MIRROR_VARIABLE: &str = "DEBIAN_MIRROR";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

pub(super) struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Opens an apt state for these suites in a folder that is kept. Packages in it are not fetched again.
    pub(super) fn open(folder: PathBuf, suites: &[&str], step: &mut Step<'_>) -> Result<Self, TestbedError> {
        let apt = Apt { folder };
        if !Path::new(KEYRING).exists() {
            let advice = "; install it: sudo apt-get install debian-archive-keyring";
            let attempted = "check the signatures of Debian's archive";
            return Err(describe_failure(attempted, format!("there is no {KEYRING}"), advice));
        }
        for folder in ["lists/partial", "cache/archives/partial", "archives", "parts"] {
            let path = apt.folder.join(folder);
            fs::create_dir_all(&path).map_err(TestbedError::file(path))?;
        }
        apt.write("status", "")?;
        let mirror = mirror()?;
        let mut sources = String::new();
        for suite in suites {
            let archive =
                if suite.ends_with("-security") { format!("{mirror}-security") } else { mirror.clone() };
            sources += &format!("deb [arch=amd64 signed-by={KEYRING}] {archive} {suite} main\n");
        }
        apt.write("sources.list", &sources)?;
        step(&format!("reading the package lists of {} from {mirror}", suites.join(", ")));
        let mut update = apt.command("apt-get");
        update.args(["update", "-qq"]);
        run_slowly(
            update,
            "read the package lists of Debian's archive",
            "; see that the mirror can be reached",
            "reading the package lists",
            step,
        )?;
        Ok(apt)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), TestbedError> {
        let path = self.folder.join(name);
        let result = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&path, text));
        result.map_err(TestbedError::file(path))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (option, name) in [
            ("Dir::State", ""),
            ("Dir::State::lists", "lists"),
            ("Dir::State::status", "status"),
            ("Dir::Cache", "cache"),
            ("Dir::Etc::sourcelist", "sources.list"),
            ("Dir::Etc::sourceparts", "parts"),
            ("Dir::Etc::preferencesparts", "parts"),
            ("Dir::Etc::preferences", "none"),
        ] {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(name).display()));
        }
        let user =
            if nix::unistd::geteuid().is_root() { "APT::Sandbox::User=root" } else { "APT::Sandbox::User=" };
        command.args(["-o", user, "-o", "Acquire::Languages=none", "-o", "APT::Architecture=amd64"]);
        command.args(["-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0"]);
        command.env("LC_ALL", "C.UTF-8").env("DEBIAN_FRONTEND", "noninteractive");
        command
    }

    /// The package with the highest version number in its name, among those with this prefix and suffix.
    pub(super) fn newest(&self, begins: &str, ends: &str) -> Result<String, TestbedError> {
        let mut names = self.command("apt-cache");
        names.args(["pkgnames", begins]);
        let listed = run(names, "list the packages of Debian's archive", "")?;
        let fitting = listed.lines().filter(|name| fits(name, begins, ends));
        let newest = fitting.max_by(|one, other| by_numbers(one, other));
        newest.map(str::to_owned).ok_or_else(|| {
            let advice = "; its series may have left the archive";
            describe_failure(&format!("find a package {begins}*{ends}"), "its suites have none", advice)
        })
    }

    /// The version of a package in the archive.
    pub(super) fn version(&self, package: &str) -> Result<String, TestbedError> {
        Ok(version_in(&self.find(package)?.0))
    }

    /// The file of a package in the archive, and its size.
    fn find(&self, package: &str) -> Result<(String, u64), TestbedError> {
        let attempted = format!("find the package {package}");
        let mut uris = self.command("apt-get");
        uris.args(["download", "--print-uris", "-qq", package]);
        let said = run(uris, &attempted, "")?;
        // 'http://..' name_version_amd64.deb bytes SHA256:..
        let words: Vec<&str> = said.split_whitespace().collect();
        let [_, name, bytes, ..] = words[..] else {
            return Err(describe_failure(&attempted, format!("apt-get says {said:?}"), ""));
        };
        Ok((name.to_owned(), bytes.parse().unwrap_or(0)))
    }

    /// Fetches a package, unless it was fetched before, and unpacks it into a folder. Returns its version.
    pub(super) fn unpack(
        &self,
        package: &str,
        into: &Path,
        step: &mut Step<'_>,
    ) -> Result<String, TestbedError> {
        let attempted = format!("fetch the package {package}");
        let (name, bytes) = self.find(package)?;
        let fetching = format!("fetching {package} ({:.0} MiB)", bytes as f64 / f64::from(1 << 20));
        step(&fetching);
        let archives = self.folder.join("archives");
        let mut download = self.command("apt-get");
        download.args(["download", "-qq", package]).current_dir(&archives);
        run_slowly(download, &attempted, "; run it again: downloads so far are kept", &fetching, step)?;
        let unpacking = format!("unpacking {package}");
        step(&unpacking);
        let archive = archives.join(&name);
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("-x").arg(&archive).arg(into);
        run_slowly(unpack, &format!("unpack {}", archive.display()), "", &unpacking, step)?;
        Ok(version_in(&name))
    }
}

fn fits(package: &str, begins: &str, ends: &str) -> bool {
    let middle = package.strip_prefix(begins).and_then(|rest| rest.strip_suffix(ends));
    middle.is_some_and(|middle| middle.starts_with(|c: char| !c.is_ascii_digit()) && !middle.contains("-rt"))
}

/// The version in the name of a package's file.
fn version_in(file: &str) -> String {
    file.split('_').nth(1).unwrap_or_default().replace("%3a", ":")
}

fn mirror() -> Result<String, TestbedError> {
    if let Ok(mirror) = std::env::var(MIRROR_VARIABLE)
        && !mirror.is_empty()
    {
        return Ok(mirror.trim_end_matches('/').to_owned());
    }
    let listed = Command::new("apt-get").args(["indextargets", "--format", "$(REPO_URI)"]).output();
    let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned()).unwrap_or_default();
    mirror_among(&text).ok_or_else(|| {
        let advice = format!("; set {MIRROR_VARIABLE} to a mirror (www.debian.org/mirror/list)");
        describe_failure("find Debian's archive", "apt of this machine uses none", &advice)
    })
}

pub(crate) fn mirror_among(uris: &str) -> Option<String> {
    let mut all = uris.lines().map(|uri| uri.trim().trim_end_matches('/'));
    all.find(|uri| uri.ends_with("/debian")).map(str::to_owned)
}

/// Compares names with numbers by value: `-9-` before `-10-`.
pub(crate) fn by_numbers(one: &str, other: &str) -> Ordering {
    parts(one).cmp(&parts(other))
}

fn parts(name: &str) -> Vec<(u64, String)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        parts.push((number.parse().unwrap_or(0), after[..letters].to_owned()));
        rest = &after[letters..];
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_count_by_value() {
        let names = [
            "linux-image-6.1.0-9-cloud-amd64",
            "linux-image-6.1.0-40-cloud-amd64",
            "linux-image-6.1.0-10-cloud-amd64",
        ];
        assert_eq!(names.iter().max_by(|a, b| by_numbers(a, b)), Some(&names[1]));
        assert_eq!(by_numbers("a7.2.1", "a7.2.1+deb14"), Ordering::Less);
    }

    #[test]
    fn a_file_says_its_version() {
        assert_eq!(version_in("linux-image-6.1.0-40-cloud-amd64_6.1.153-1_amd64.deb"), "6.1.153-1");
        assert_eq!(version_in("user-mode-linux_1%3a7.2um1+b1_amd64.deb"), "1:7.2um1+b1");
    }

    #[test]
    fn the_machines_own_mirror_is_used() {
        let uris = "https://deb.nodesource.com/node_20.x/\nhttp://mirror.example/debian-security/\nhttp://mirror.example/debian/\n";
        assert_eq!(mirror_among(uris).as_deref(), Some("http://mirror.example/debian"));
        assert_eq!(mirror_among("http://archive.ubuntu.com/ubuntu/\n"), None);
    }
}
