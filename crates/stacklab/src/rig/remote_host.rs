//! Real machines: this one, and machines reached with the user's ssh.

use crate::failure::Failure;
use stacklab_model::{Family, ScopedAddr, System, Systems};
use stacklab_study::{RealHost, Study};
use stacklab_testbed::Streams;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// Where this program installs itself on another machine, below the user's home.
const FOLDER: &str = ".cache/stacklab/bin";
/// The output of `stacklab --version`.
const OWN_VERSION: &str = concat!("stacklab ", env!("CARGO_PKG_VERSION"));
/// ssh must not ask questions while a campaign starts, and must detect a machine that is gone.
const SSH: [&str; 13] = [
    "-T",
    // Nothing of this user's session is for that host: no agent of keys, no display, no forwarded ports.
    "-a",
    "-x",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=5",
    "-o",
    "ServerAliveCountMax=3",
];

/// A machine with an agent on it.
pub struct RemoteHost {
    system: System,
    agent: Child,
    addresses: BTreeMap<Family, ScopedAddr>,
}

/// Whether this program may copy itself to other machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copying {
    /// The user has permitted it.
    Allowed,
    /// The user is asked.
    Asked,
}

/// Connects to the real machines of each pair. Call it before anything else: ssh finds the user's keys by user id,
/// which changes when namespaces are created without root.
///
/// # Errors
/// Those of the first machine that cannot be reached.
pub fn reach(study: &Study, copying: Copying) -> Result<Vec<(Systems, [RemoteHost; 2])>, Failure> {
    let pairs = study.systems().into_iter().filter(|systems| !systems.are_built());
    let reached = pairs.map(|systems| {
        let [sender, receiver] = &systems.0;
        let machines =
            [RemoteHost::reach(sender, study, copying)?, RemoteHost::reach(receiver, study, copying)?];
        Ok((systems, machines))
    });
    reached.collect()
}

impl RemoteHost {
    fn reach(system: &System, study: &Study, copying: Copying) -> Result<Self, Failure> {
        let program = match system {
            System::Ssh(host) => agent_on(host, copying)?,
            _ => std::env::current_exe().map_err(|reason| no_agent(system, reason))?.display().to_string(),
        };
        let known = study.hosts.iter().find(|host| host.system == *system);
        let addresses = addresses(system, known)?;
        let mut command = on(system, &[&program, "agent", "--stdio"]);
        // The agent does not receive Ctrl-C from the terminal: this process does. The agent ends when its input does.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        let agent = command.spawn().map_err(|reason| no_agent(system, reason))?;
        Ok(RemoteHost { system: system.clone(), agent, addresses })
    }

    /// The agent's streams. Call it once.
    ///
    /// # Panics
    /// On the second call.
    pub fn take_streams(&mut self) -> Streams {
        let streams = self.agent.stdout.take().zip(self.agent.stdin.take());
        let (output, input) = streams.expect("a machine's streams are taken once");
        (Box::new(output), Box::new(input))
    }

    /// Its address on the network under test, as this machine names it.
    ///
    /// # Panics
    /// For a family without an address in a checked study.
    pub fn address(&self, family: Family) -> ScopedAddr {
        self.addresses
            .get(&family)
            .cloned()
            .expect("a checked study's machines have addresses of its families")
    }
}

impl fmt::Display for RemoteHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.system.fmt(f)
    }
}

impl Drop for RemoteHost {
    fn drop(&mut self) {
        // The end of its input ends an agent on another machine, and ssh with it; the process may have ended already.
        drop(self.agent.stdin.take());
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

fn no_agent(system: &System, reason: io::Error) -> Failure {
    Failure::Unreachable(format!("could not start an agent on {system}: {reason}"))
}

/// Builds a command for a machine. On another machine a shell interprets it.
fn on(system: &System, words: &[&str]) -> Command {
    match system {
        System::Ssh(host) => {
            let mut ssh = Command::new("ssh");
            ssh.args(SSH).arg(host).arg("--").args(words);
            ssh
        }
        _ => {
            let mut command = Command::new(words[0]);
            command.args(&words[1..]);
            command
        }
    }
}

/// The output of a command on a machine.
fn ask(system: &System, words: &[&str], attempted: &str) -> Result<String, Failure> {
    let failed =
        |reason: String| Failure::Unreachable(format!("could not {attempted} on {system}: {reason}"));
    let done = on(system, words).stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    // ssh's own exit code for errors.
    let advice = match (system, done.status.code()) {
        (System::Ssh(host), Some(255)) => format!("; check that `ssh {host} true` works without a prompt"),
        _ => String::new(),
    };
    Err(failed(format!("{}{advice}", if said.is_empty() { done.status.to_string() } else { said })))
}

/// The path of this version of the program on another machine; copies it there if it is missing.
fn agent_on(host: &str, copying: Copying) -> Result<String, Failure> {
    let system = System::Ssh(host.to_owned());
    let own = format!("{FOLDER}/stacklab-{}", env!("CARGO_PKG_VERSION"));
    let look = format!(
        "for program in stacklab \"$HOME/{own}\"; do version=$(\"$program\" --version 2>/dev/null) && echo \"$program $version\"; done; true"
    );
    let found = ask(&system, &[&look], "look for stacklab")?;
    if let Some(program) = fitting(&found) {
        return Ok(program);
    }
    let there = match found.lines().next() {
        Some(other) => format!("another version of stacklab is there ({other})"),
        None => "stacklab is not there".to_owned(),
    };
    if copying == Copying::Asked && !agreed(&format!("{host}: {there}. Copy this version to ~/{own}?")) {
        return Err(Failure::Unreachable(format!(
            "no agent of this version ({OWN_VERSION}) is on {system}: {there}; let it be put there with --copy-agent, or install it"
        )));
    }
    copy(&system, &own)?;
    let found = ask(&system, &[&look], "look for stacklab")?;
    fitting(&found).ok_or_else(|| {
        Failure::Unreachable(format!(
            "the program that was put on {system} does not run there: does it have another architecture, or an older C library?"
        ))
    })
}

/// The first program of this version, from lines of program and version.
fn fitting(found: &str) -> Option<String> {
    let fits = |line: &str| Some(line.strip_suffix(OWN_VERSION)?.trim_end().to_owned());
    found.lines().find_map(fits)
}

fn agreed(question: &str) -> bool {
    if !io::stdin().is_terminal() {
        return false;
    }
    eprint!("{question} [y/N] ");
    let _ = io::stderr().flush();
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

/// Copies this program to another machine, under a temporary name until it is complete.
fn copy(system: &System, to: &str) -> Result<(), Failure> {
    let failed =
        |reason: String| Failure::Unreachable(format!("could not put stacklab on {system}: {reason}"));
    let program = std::env::current_exe().and_then(File::open).map_err(|error| failed(error.to_string()))?;
    let take = format!(
        "umask 077 && mkdir -p \"$HOME/{FOLDER}\" && cat > \"$HOME/{to}.part\" && chmod 700 \"$HOME/{to}.part\" && mv \"$HOME/{to}.part\" \"$HOME/{to}\""
    );
    let done = on(system, &[&take]).stdin(program).output().map_err(|error| failed(error.to_string()))?;
    if done.status.success() {
        return Ok(());
    }
    Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
}

/// The addresses that the study names, otherwise those of the interface that it names.
fn addresses(system: &System, known: Option<&RealHost>) -> Result<BTreeMap<Family, ScopedAddr>, Failure> {
    let Some(RealHost { interface, addresses, .. }) = known else { return Ok(BTreeMap::new()) };
    let mut found = addresses.clone();
    for address in found.values() {
        check_zone(system, address)?;
    }
    if let Some(interface) = interface {
        for (family, address) in listed(system, interface, "global")? {
            found.entry(family).or_insert(address.into());
        }
        for family in Family::ALL {
            if !found.contains_key(family) {
                return Err(Failure::Unreachable(format!(
                    "{interface} of {system} has no global {family} address: name another one of its addresses in [[host]], as {family} = \"..\""
                )));
            }
        }
    }
    Ok(found)
}

/// Whether a machine has a link-local address on the interface that the study names as its zone: otherwise each trial would fail.
fn check_zone(system: &System, address: &ScopedAddr) -> Result<(), Failure> {
    let Some(zone) = address.zone() else { return Ok(()) };
    // This way the tool takes an index.
    let interface =
        if zone.bytes().all(|byte| byte.is_ascii_digit()) { format!("if{zone}") } else { zone.to_owned() };
    if listed(system, &interface, "link")?.contains(&(Family::Ipv6, address.ip())) {
        return Ok(());
    }
    Err(Failure::Unreachable(format!("{zone} of {system} does not have the address {}", address.ip())))
}

/// The addresses of an interface, in their order.
fn listed(system: &System, interface: &str, scope: &str) -> Result<Vec<(Family, IpAddr)>, Failure> {
    let quoted = format!("'{}'", interface.replace('\'', ""));
    let name = if matches!(system, System::Ssh(_)) { quoted.as_str() } else { interface };
    let words = ["ip", "-o", "addr", "show", "dev", name, "scope", scope];
    Ok(read_list(&ask(system, &words, &format!("read the addresses of {interface}"))?))
}

/// The address of each line: `2: eth0    inet 192.0.2.7/24 brd .. scope global eth0`.
fn read_list(listed: &str) -> Vec<(Family, IpAddr)> {
    let address = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| !word.starts_with("inet"));
        let address = words.nth(1)?.split('/').next()?.parse().ok()?;
        Some((Family::of(address), address))
    };
    listed.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_of_this_version_is_taken() {
        let text = format!("stacklab stacklab 0.0.1\n/home/a b/{FOLDER}/stacklab-x {OWN_VERSION}\n");
        assert_eq!(fitting(&text).unwrap(), format!("/home/a b/{FOLDER}/stacklab-x"));
        assert_eq!(fitting("stacklab stacklab 0.0.1\n"), None);
    }

    #[test]
    fn addresses_are_read_in_their_order() {
        let listed = "2: e    inet 192.0.2.7/24 brd 192.0.2.255 scope global e\\ valid\n\
                      2: e    inet 192.0.2.8/24 scope global secondary e\\\n\
                      2: e    inet6 2001:db8::7/64 scope global \\\n";
        let [first, second, third] =
            ["192.0.2.7", "192.0.2.8", "2001:db8::7"].map(|text| text.parse().unwrap());
        assert_eq!(read_list(listed), [(Family::Ipv4, first), (Family::Ipv4, second), (Family::Ipv6, third)]);
    }
}
