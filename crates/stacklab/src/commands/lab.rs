//! `stacklab lab`: a study's testbed by hand.
//!
//! The testbed lives by one process in the background, the holder, as a campaign's lives by the campaign: when it ends,
//! however it ends, everything is gone.

use crate::cli::{LabCommand, LabEnterOptions, LabUpOptions};
use crate::failure::Failure;
use crate::sources::study_of;
use serde::{Deserialize, Serialize};
use stacklab_agent::interrupt;
use stacklab_model::{Family, Mechanism, Systems, Topology};
use stacklab_study::Study;
use stacklab_testbed::routed::{Node, Routed, ends};
use stacklab_testbed::{Needs, Testbed, enter, join, possible};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a testbed may take to go, and how often it is looked.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);
/// How long one may take to come up, in which nobody else begins one.
const CLAIMED: Duration = Duration::from_secs(30);

/// What is written down of a testbed that is up.
#[derive(Debug, Serialize, Deserialize)]
struct Up {
    /// The process that it lives by.
    holder: u32,
    /// What it is.
    testbed: String,
    /// Its hosts: name, process, and what the others call it.
    hosts: Vec<(String, u32, Vec<String>)>,
}

/// Does what was asked.
pub fn lab(command: &LabCommand) -> Result<(), Failure> {
    match command {
        LabCommand::Up(options) => up(options),
        LabCommand::Enter(options) => enter_host(options),
        LabCommand::Down => down(),
        LabCommand::Hold(options) => hold(options),
    }
}

fn up(options: &LabUpOptions) -> Result<(), Failure> {
    if let Some(up) = known() {
        return Err(Failure::Usage(format!("a testbed is up already ({}): stacklab lab down", up.testbed)));
    }
    // What is wrong with the study is said here and not by the holder.
    wanted(options)?;
    let claim = Claim::new()?;
    let program = std::env::current_exe().map_err(failed("find this program's own file"))?;
    let mut command = Command::new(program);
    command.args(["lab", "hold"]).args(&options.study.study).stdin(Stdio::null());
    // Neither stays open with it: who waits for this program's output to end does not wait for the testbed's end.
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    for (name, values) in
        [("--scale", options.study.scale.as_slice()), ("--set", options.study.settings.as_slice())]
    {
        for value in values {
            command.args([name, value]);
        }
    }
    if let Some(mechanism) = options.mechanism {
        command.args(["--mechanism", mechanism.name()]);
    }
    // It does not end with the terminal.
    let mut holder =
        command.process_group(0).spawn().map_err(failed("start the process that holds the testbed"))?;
    let mut line = String::new();
    let output = holder.stdout.take().expect("its output is a pipe");
    BufReader::new(output).read_line(&mut line).map_err(failed("hear of the testbed"))?;
    let Ok(up) = serde_json::from_str::<Up>(&line) else {
        let said = holder.wait_with_output().map(|done| done.stderr).unwrap_or_default();
        let said = String::from_utf8_lossy(&said).trim().trim_start_matches("stacklab: ").to_owned();
        return Err(failed("build the testbed")(io::Error::other(said)));
    };
    if let Err(failure) = claim.write(&line) {
        let _ = stacklab_testbed::end(up.holder);
        let _ = holder.wait();
        return Err(failure);
    }
    let mut text = format!("{}\n\n", up.testbed);
    for (name, _, addresses) in &up.hosts {
        text += &format!("{name:<10} {}\n", addresses.join("  "));
    }
    text += "\nstacklab lab enter sender ping -c 3 ADDRESS\nstacklab lab down\n";
    super::output::print_text(&text)
}

/// What is to be built: the study, and the mechanism where it has routers.
fn wanted(options: &LabUpOptions) -> Result<(Study, Option<Mechanism>), Failure> {
    let (_, study) = study_of(&options.study)?;
    let mechanisms = study.mechanisms();
    match (options.mechanism, mechanisms.first()) {
        (Some(asked), _) if !mechanisms.contains(&asked) => {
            let names: Vec<&str> = mechanisms.iter().map(|mechanism| mechanism.name()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            Err(Failure::Usage(format!("the study's testbeds have no mechanism {asked}: they have {names}")))
        }
        (asked, first) => Ok((study, asked.or(first.copied()))),
    }
}

/// Builds the testbed, says so in a line, and holds it until killed.
fn hold(options: &LabUpOptions) -> Result<(), Failure> {
    let (study, mechanism) = wanted(options)?;
    enter()?;
    let program = std::env::current_exe().map_err(failed("find this program's own file"))?;
    let agent = ["agent", "--stdio"];
    let holder = std::process::id();
    let own = |sockets: Vec<Option<std::net::IpAddr>>| {
        sockets.into_iter().flatten().map(|a| a.to_string()).collect()
    };
    if study.systems().iter().any(|systems| systems.to_string() != "namespace") {
        let what = "only testbeds of namespaces can be entered; this study's hosts are others";
        return Err(Failure::Usage(format!("{what}: --set 'factors.os=[\"namespace\"]'")));
    }
    let (up, _routed, _link);
    match (mechanism, study.topology) {
        (Some(mechanism), Topology::Routed(links)) => {
            let needs =
                Needs { mechanisms: vec![mechanism], bed: study.bed.clone(), links, guests: Vec::new() };
            if let Some(system) = possible(&needs, false)? {
                return Err(Failure::Usage(format!(
                    "this kernel has not what {mechanism} needs, and a testbed inside a guest ({system}) cannot be entered: load the \
                     kernel's module (stacklab doctor says which), or take another mechanism: --mechanism native"
                )));
            }
            let routed = Routed::build(&study.bed, &links, mechanism, &program, &agent)?;
            let of = |node| -> Vec<String> {
                let all = Family::ALL.iter().filter_map(|family| ends(mechanism, *family));
                own(all
                    .flat_map(|ends| match node {
                        Node::Sender => [Some(ends.sender), Some(ends.source).filter(|a| *a != ends.sender)],
                        Node::Receiver => {
                            [Some(ends.receiver), Some(ends.destination).filter(|a| *a != ends.receiver)]
                        }
                        _ => [None, None],
                    })
                    .collect())
            };
            up = Up {
                holder,
                testbed: format!("client - router - router - client, {mechanism} between the routers"),
                hosts: Node::ALL
                    .iter()
                    .map(|node| (node.to_string(), routed.pid(*node), of(*node)))
                    .collect(),
            };
            _routed = routed;
        }
        _ => {
            let systems: Systems = "namespace".parse().expect("it is a system");
            let link = Testbed::of(&systems, &study.bed, &program, &agent)?;
            let host = |host: &stacklab_testbed::Host| {
                let addresses = Family::ALL.iter().map(|family| Some(host.address(*family))).collect();
                (host.role().to_string(), host.pid(), own(addresses))
            };
            up = Up { holder, testbed: link.describe(), hosts: link.hosts().iter().map(host).collect() };
            _link = link;
        }
    }
    let mut line = serde_json::to_vec(&up).map_err(io::Error::from).map_err(failed("tell of the testbed"))?;
    line.push(b'\n');
    io::stdout()
        .write_all(&line)
        .and_then(|()| io::stdout().flush())
        .map_err(failed("tell of the testbed"))?;
    // Ended by `lab down`: what it holds is given back in order, its folder too.
    let ended = interrupt::flag().map_err(failed("handle signals"))?;
    while !ended.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn enter_host(options: &LabEnterOptions) -> Result<(), Failure> {
    let up = known().ok_or_else(|| Failure::Usage("no testbed is up: stacklab lab up STUDY".to_owned()))?;
    let names = || up.hosts.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ");
    let host = up.hosts.iter().find(|(name, ..)| *name == options.host);
    let (_, pid, _) = host.ok_or_else(|| {
        Failure::Usage(format!("there is no host `{}`: expected one of {}", options.host, names()))
    })?;
    join(*pid).map_err(failed(&format!("enter {}", options.host)))?;
    let shell = || std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let (program, args) = match options.command.split_first() {
        Some((program, args)) => (program.clone(), args.to_vec()),
        None => (shell(), Vec::new()),
    };
    // It returns only where it failed.
    let reason = Command::new(&program).args(args).env("STACKLAB_HOST", &options.host).exec();
    Err(failed(&format!("run {program} on {}", options.host))(reason))
}

fn down() -> Result<(), Failure> {
    let path = state();
    let Some(up) = known() else {
        let _ = std::fs::remove_file(&path);
        return Err(Failure::Usage("no testbed is up".to_owned()));
    };
    stacklab_testbed::end(up.holder).map_err(failed("end the testbed"))?;
    let start = Instant::now();
    let runs = |pid: u32| Path::new("/proc").join(pid.to_string()).join("ns/net").exists();
    while up.hosts.iter().map(|(_, pid, _)| *pid).chain([up.holder]).any(runs) {
        if start.elapsed() > PATIENCE {
            let reason = io::Error::new(io::ErrorKind::TimedOut, "its hosts are still there");
            return Err(failed("end the testbed")(reason));
        }
        std::thread::sleep(LOOK);
    }
    std::fs::remove_file(&path).map_err(failed(&format!("remove {}", path.display())))
}

/// The file that says what is up, taken by this process alone. Removed when dropped, but where it was written.
struct Claim(Option<PathBuf>);

impl Claim {
    fn new() -> Result<Self, Failure> {
        let path = state();
        let attempted = format!("write {}", path.display());
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::create_dir_all(folder).map_err(failed(&attempted))?;
        let create = || File::options().write(true).create_new(true).open(&path);
        let made = match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // One that another process is about to write is empty, and new.
                let fresh = |made: std::time::SystemTime| made.elapsed().is_ok_and(|age| age < CLAIMED);
                if std::fs::metadata(&path).and_then(|file| file.modified()).is_ok_and(fresh) {
                    return Err(Failure::Usage("another testbed is just being built".to_owned()));
                }
                // What a testbed that was killed has left.
                std::fs::remove_file(&path).and_then(|()| create())
            }
            made => made,
        };
        made.map(|_| Claim(Some(path))).map_err(failed(&attempted))
    }

    fn write(mut self, line: &str) -> Result<(), Failure> {
        let path = self.0.take().expect("it is written once");
        std::fs::write(&path, line).map_err(|reason| {
            let attempted = format!("write {}", path.display());
            self.0 = Some(path);
            failed(&attempted)(reason)
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The testbed that is up, by its holder being a process of this program's.
fn known() -> Option<Up> {
    let up: Up = serde_json::from_slice(&std::fs::read(state()).ok()?).ok()?;
    // Its number may be another process's by now.
    let words = std::fs::read(format!("/proc/{}/cmdline", up.holder)).ok()?;
    let holds = b"\0lab\0hold\0";
    words.windows(holds.len()).any(|part| part == holds).then_some(up)
}

/// Where it is written down: one for each user.
fn state() -> PathBuf {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    named.unwrap_or_else(stacklab_testbed::image::cache).join("stacklab-lab.json")
}

fn failed(attempted: &str) -> impl Fn(io::Error) -> Failure + use<'_> {
    move |reason| Failure::Lab { attempted: attempted.to_owned(), reason }
}
