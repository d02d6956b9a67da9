//! Two hosts with Debian's iperf3 and the program, and what their interface counts.

use super::program::{Outcome, Program, Running, require_root, require_tool};
use serde_json::Value;
use stacklab_model::{Family, LinkConfig};
use stacklab_testbed::{Testbed, enter};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Where a server listens: the default.
pub(crate) const PORT: u16 = 5201;
const SOON: Duration = Duration::from_secs(10);

/// Two hosts on a link without offloads: each packet is counted as it is.
pub(crate) struct Hosts {
    testbed: Testbed,
    pub program: Program,
}

/// What a host's interface has received.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arrived {
    pub bytes: u64,
    pub packets: u64,
}

impl Hosts {
    pub(crate) fn new() -> Self {
        require_root();
        require_tool("iperf3", "iperf3");
        require_tool("nsenter", "util-linux");
        enter().unwrap_or_else(|error| panic!("{error}"));
        let link_config = LinkConfig { rate: None, mtu: 1500, offloads: false };
        let testbed = Testbed::build(&link_config, Path::new("sleep"), &["600"]).unwrap();
        Hosts { testbed, program: Program::new() }
    }

    /// The address of a host: 0 or 1.
    pub(crate) fn address(&self, host: usize, family: Family) -> String {
        self.testbed.hosts()[host].address(family).to_string()
    }

    /// A shell command on a host; `$STACKLAB` is the program.
    pub(crate) fn command(&self, host: usize, script: &str) -> Command {
        let pid = self.testbed.hosts()[host].pid().to_string();
        self.program.script(&["nsenter", "-t", &pid, "-n", "sh", "-c"], &format!("exec {script}"))
    }

    /// Runs a command on a host until it ends.
    pub(crate) fn run(&self, host: usize, script: &str) -> Outcome {
        Outcome::of(self.command(host, script))
    }

    /// Starts the program's server on host 1.
    pub(crate) fn server(&self, options: &str) -> Running {
        let script = format!("\"$STACKLAB\" agent --listen --iperf3 {options}");
        let mut server = self.program.started(self.command(1, &script));
        server.wait_for("an iperf3 server on", SOON);
        server
    }

    /// Starts Debian's server on host 1.
    pub(crate) fn their_server(&self) -> Running {
        let server = self.program.started(self.command(1, "iperf3 -s --forceflush"));
        while !self.listens() {
            std::thread::sleep(Duration::from_millis(5));
        }
        server
    }

    /// Runs Debian's client on host 0 to host 1; gives its JSON.
    pub(crate) fn client(&self, family: Family, options: &str) -> Value {
        let to = self.address(1, family);
        let outcome = self.run(0, &format!("iperf3 -J -c {to} {options}")).expect(0);
        let json: Value =
            serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
        assert!(json.get("error").is_none(), "{options}: {json}");
        json
    }

    /// What the program measures from host 0 to host 1.
    pub(crate) fn measure(&self, what: &str, family: Family, options: &str) -> Outcome {
        let to = self.address(1, family);
        self.run(0, &format!("\"$STACKLAB\" measure {what} {to} --peer iperf3 {options}"))
    }

    /// What a host's interface has received so far.
    pub(crate) fn arrived(&self, host: usize) -> Arrived {
        let text = self.proc(host, "dev");
        let line = text.lines().skip(2).find(|line| !line.trim_start().starts_with("lo:")).unwrap();
        let numbers: Vec<u64> = line
            .split_once(':')
            .unwrap()
            .1
            .split_whitespace()
            .map(|number| number.parse().unwrap())
            .collect();
        Arrived { bytes: numbers[0], packets: numbers[1] }
    }

    /// Datagrams that a host's kernel has dropped so far, because their socket had no room: nobody read in time.
    pub(crate) fn dropped(&self, host: usize) -> u64 {
        let mut dropped = 0;
        let snmp = self.proc(host, "snmp");
        let mut lines = snmp.lines().filter(|line| line.starts_with("Udp:"));
        if let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
            let found = names.split(' ').zip(numbers.split(' ')).find(|(name, _)| *name == "RcvbufErrors");
            dropped += found.map_or(0, |(_, number)| number.parse().unwrap());
        }
        for line in self.proc(host, "snmp6").lines() {
            if let Some(number) = line.strip_prefix("Udp6RcvbufErrors") {
                dropped += number.trim().parse::<u64>().unwrap();
            }
        }
        dropped
    }

    /// Connections of TCP and sockets of UDP on host 1 at the port that are more than listening.
    pub(crate) fn sockets(&self) -> usize {
        let mut sockets = 0;
        for (file, listening) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
            sockets += self.count_sockets(file, listening);
        }
        sockets
    }

    /// Those in a file of /proc whose state is not this one.
    fn count_sockets(&self, file: &str, listening: &str) -> usize {
        let port = format!(":{PORT:04X}");
        let text = self.proc(1, file);
        let fields = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        // Those in TIME_WAIT (06) are nobody's any more.
        fields.filter(|field| field[1].ends_with(&port) && field[3] != listening && field[3] != "06").count()
    }

    fn listens(&self) -> bool {
        let port = format!(":{PORT:04X} ");
        ["tcp", "tcp6"].iter().any(|file| self.proc(1, file).contains(&port))
    }

    fn proc(&self, host: usize, file: &str) -> String {
        let path = format!("/proc/{}/net/{file}", self.testbed.hosts()[host].pid());
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    }
}

impl Arrived {
    /// Payload that arrived since, in packets with these bytes of headers.
    pub(crate) fn payload_until(self, later: Arrived, headers: u64) -> u64 {
        later.bytes - self.bytes - headers * (later.packets - self.packets)
    }
}

/// Bytes of headers of a packet, with Ethernet's, and TCP's timestamps.
pub(crate) fn header_bytes(family: Family, is_udp: bool) -> u64 {
    let ip = if family == Family::Ipv4 { 20 } else { 40 };
    14 + ip + if is_udp { 8 } else { 32 }
}

/// Threads of a process.
pub(crate) fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}
