//! Things that a program must not leave behind: processes, network namespaces, links, files.

use crate::support::program::{Program, names};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The state of the machine that a program may not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scene {
    namespaces: BTreeSet<String>,
    links: BTreeSet<String>,
    temporary: BTreeSet<String>,
}

impl Scene {
    /// The present state.
    pub(crate) fn now() -> Self {
        let namespaces = namespaces().into_iter().map(|(namespace, _)| namespace).collect();
        Scene { namespaces, links: links(), temporary: temporary() }
    }

    /// Fails unless, within this time, the machine is in its earlier state, no process of the program remains, and
    /// its folders contain only the named files.
    #[track_caller]
    pub(crate) fn assert_restored(&self, program: &Program, files: &[&str], within: Duration) {
        self.assert_restored_but(program, files, within, "nothing else");
    }

    /// As [`Scene::assert_restored`], but what begins with this text may be left.
    #[track_caller]
    pub(crate) fn assert_restored_but(&self, program: &Program, files: &[&str], within: Duration, but: &str) {
        let start = Instant::now();
        let left = loop {
            let mut left = self.differences(program, files);
            left.retain(|what| !what.starts_with(but));
            if left.is_empty() || start.elapsed() > within {
                break left;
            }
            thread::sleep(Duration::from_millis(20));
        };
        assert!(left.is_empty(), "left behind after {within:?}:\n{}", left.join("\n"));
    }

    fn differences(&self, program: &Program, files: &[&str]) -> Vec<String> {
        let mut left = Vec::new();
        let ours = processes_of(&program.path());
        left.extend(ours.iter().map(|pid| format!("process {pid}")));
        // What it started, such as a guest, has its environment.
        let users = users_of(&program.path()).into_iter().filter(|pid| !ours.contains(pid));
        left.extend(users.map(|pid| format!("process {pid} that it started")));
        // The namespace of a process outside the program belongs to another user who started it meanwhile. A
        // namespace of the program's process, or held only by an open file or a mount, is a leftover.
        let found = namespaces();
        let foreign: BTreeSet<&String> = found
            .iter()
            .filter_map(|(namespace, holder)| match holder {
                Holder::Process(pid) if !ours.contains(pid) => Some(namespace),
                _ => None,
            })
            .collect();
        for (namespace, holder) in &found {
            if !self.namespaces.contains(namespace) && !foreign.contains(namespace) {
                left.push(format!("network namespace {namespace} held by {holder:?}"));
            }
        }
        left.extend(
            links().symmetric_difference(&self.links).map(|link| format!("link {link} came or went")),
        );
        left.extend(temporary().difference(&self.temporary).map(|name| format!("/tmp/{name}")));
        left.extend(names(&program.tmp()).into_iter().map(|name| format!("TMPDIR/{name}")));
        let strange = program.files().into_iter().filter(|name| !files.contains(&name.as_str()));
        left.extend(strange.map(|name| format!("{name} in its folder")));
        left
    }
}

/// The processes that run this program file. A process that has ended but was not waited for has no program any more.
pub(crate) fn processes_of(program: &Path) -> Vec<u32> {
    processes()
        .filter(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program))
        .collect()
}

/// The processes whose environment names this program file.
fn users_of(program: &Path) -> Vec<u32> {
    let named = format!("STACKLAB={}", program.display()).into_bytes();
    let mut users = Vec::new();
    for pid in processes() {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if environment.split(|byte| *byte == 0).any(|word| word == named) {
            users.push(pid);
        }
    }
    users
}

/// The holder of a network namespace.
#[derive(Debug)]
enum Holder {
    /// A process, or a thread of it, is in it.
    Process(u32),
    /// An open file or a mount.
    Path(#[expect(dead_code, reason = "for the failure's text")] PathBuf),
}

/// Every network namespace with a visible holder, with that holder.
fn namespaces() -> Vec<(String, Holder)> {
    let mut found = Vec::new();
    for pid in processes() {
        for thread in entries(&format!("/proc/{pid}/task")) {
            found.extend(network(&thread.join("ns/net")).map(|name| (name, Holder::Process(pid))));
        }
        for file in entries(&format!("/proc/{pid}/fd")) {
            found.extend(network(&file).map(|name| (name, Holder::Path(file))));
        }
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    for mount in mounts.lines() {
        // The fourth field is the mounted part of the file system: for a namespace, its name.
        let mut fields = mount.split(' ').skip(3);
        if let (Some(root), Some(place)) = (fields.next(), fields.next())
            && root.starts_with("net:[")
        {
            found.push((root.to_owned(), Holder::Path(place.into())));
        }
    }
    found
}

/// The namespace that a link in /proc points to.
fn network(link: &Path) -> Option<String> {
    let name = fs::read_link(link).ok()?.to_string_lossy().into_owned();
    name.starts_with("net:[").then_some(name)
}

fn processes() -> impl Iterator<Item = u32> {
    entries("/proc").into_iter().filter_map(|entry| entry.file_name()?.to_str()?.parse().ok())
}

/// The contents of a folder; nothing if it has just been removed.
fn entries(folder: &str) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The links of this process's namespace, which is the machine's own.
fn links() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/net/dev").unwrap();
    table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Files in /tmp that the program, or its database, could have created, except tests' own folders.
fn temporary() -> BTreeSet<String> {
    names(Path::new("/tmp")).into_iter().filter(|name| is_suspect(name)).collect()
}

fn is_suspect(name: &str) -> bool {
    (name.contains("stacklab") && !name.starts_with("stacklab-test-")) || name.starts_with("etilqs_")
}
