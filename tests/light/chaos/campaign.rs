//! The campaigns that are disturbed: two seconds each, on hosts of several kinds.

use super::clock;
use crate::support::listening::Listening;
use crate::support::planned::{Row, planned};
use crate::support::program::{Program, Running, children};
use crate::support::random::Random;
use crate::support::studies::TestStudy;
use std::fmt;
use std::path::PathBuf;

/// The user "nobody", in no other group.
const NOBODY: u32 = 65534;
const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";
/// The name of the record.
pub(super) const RECORD: &str = "x.stacklab";
const SEED: &str = "20241";

/// On what a campaign is run, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Two namespaces; one arm after the other.
    Separate,
    /// Two namespaces; arms in turns.
    Interleaved,
    /// As `Separate`, by an ordinary user.
    Ordinary,
    /// Both families to an agent that listens.
    ToAgent,
    /// Guests of this system.
    Guests(&'static str),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Separate => f.write_str("sequential"),
            Kind::Interleaved => f.write_str("interleaved"),
            Kind::Ordinary => f.write_str("ordinary user"),
            Kind::ToAgent => f.write_str("to an agent"),
            Kind::Guests(system) => f.write_str(system),
        }
    }
}

impl Kind {
    /// One of the kinds.
    pub(super) fn draw(random: &mut Random, is_long: bool) -> Self {
        if is_long && random.below(4) == 0 {
            return random.one_of(&[Kind::Guests("gvisor"), Kind::Guests("uml")]);
        }
        random.one_of(&[
            Kind::Separate,
            Kind::Separate,
            Kind::Interleaved,
            Kind::Interleaved,
            Kind::Ordinary,
            Kind::ToAgent,
        ])
    }
}

/// Where a campaign is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// On this machine.
    Here,
    /// Here, and its record is on a file system of so many KiB, and then copied.
    SmallDisk(u64),
    /// In a guest whose realtime clock is set by steps of this seed.
    Guest(u64),
}

/// A campaign, not started yet.
pub(super) struct Campaign {
    pub kind: Kind,
    place: Place,
    pub program: Program,
    /// The agent at its other end.
    pub agent: Option<Listening>,
    study: String,
}

impl Campaign {
    /// A campaign of this kind.
    pub(super) fn new(random: &mut Random, kind: Kind, place: Place) -> Self {
        let arms = if kind == Kind::Interleaved { "interleaved" } else { "sequential" };
        let transports = random.one_of(&[&["udp", "tcp"][..], &["udp"], &["tcp"]]);
        let size = random.one_of(&[64, 512, 1400]);
        let mut study = TestStudy::new("chaos")
            .families()
            .transports(transports)
            .sizes(&[size])
            .schedule(arms)
            .blocks(3)
            .compare_families();
        if let Kind::Guests(system) = kind {
            study = study.systems(&[system]);
        }
        // What the kernel's timestamps tell, which are of the realtime clock.
        let has_clock_set = matches!(place, Place::Guest(_));
        let of_stream = ["throughput", "loss", "one_way_delay"];
        let of_echo = ["rtt", "rtt_interface"];
        let study = study
            .stream(if has_clock_set { &of_stream[..] } else { &of_stream[..2] })
            .time("60ms")
            .warmup("5ms")
            .interval("10ms")
            .echo(if has_clock_set { &of_echo[..] } else { &of_echo[..1] })
            .time("30ms")
            .warmup("5ms")
            .interval("10ms")
            .text();
        let program = Program::new();
        let agent = (kind == Kind::ToAgent).then(|| Listening::start("", &[]));
        if agent.is_none() {
            program.write("study.toml", &study);
        }
        if kind == Kind::Ordinary {
            program.give_to(NOBODY);
        }
        Campaign { kind, place, program, agent, study }
    }

    /// Starts it in its place.
    pub(super) fn begin(&self) -> Running {
        let command = self.command();
        let script = match self.place {
            Place::Here => return self.start(&format!("{command} --out {RECORD}")),
            Place::SmallDisk(kib) => {
                std::fs::create_dir(self.program.work().join("small")).unwrap();
                format!(
                    "mount -t tmpfs -o size={kib}k,mode=777 none small && cp study.toml small 2>/dev/null; cd small
                     {} \"$STACKLAB\" {command} --out {RECORD}; code=$?
                     for file in {RECORD}*; do [ ! -e \"$file\" ] || cp -p \"$file\" ..; done
                     exit $code",
                    self.user()
                )
            }
            Place::Guest(steps) => clock::in_guest(&self.program, &command, RECORD, steps),
        };
        self.program.started(self.program.script(&["unshare", "--mount", "sh", "-c"], &script))
    }

    /// Removes what its place has left.
    pub(super) fn leave(&self) {
        let folder = match self.place {
            Place::Here => return,
            Place::SmallDisk(_) => "small",
            Place::Guest(_) => clock::FOLDER,
        };
        std::fs::remove_dir_all(self.program.work().join(folder)).unwrap();
    }

    /// Goes on with its record, or begins once more without one; here.
    pub(super) fn resume(&self) -> Running {
        if !self.record().exists() {
            return self.start(&format!("{} --out {RECORD}", self.command()));
        }
        self.start(&format!("run --resume --out {RECORD}"))
    }

    fn command(&self) -> String {
        match &self.agent {
            None => format!("run study.toml --seed {SEED}"),
            Some(agent) => format!("measure udp 127.0.0.1,::1 --against ipv4 -t 2 -p {}", agent.port),
        }
    }

    /// Its record.
    pub(super) fn record(&self) -> PathBuf {
        self.program.work().join(RECORD)
    }

    /// The runs of its plan; none where each campaign has its own.
    pub(super) fn planned(&self) -> Option<Vec<Row>> {
        self.agent.is_none().then(|| planned(&self.study, SEED.parse().unwrap()))
    }

    /// The files that may remain in its folder.
    pub(super) fn files(&self) -> Vec<&str> {
        // If a commit had not changed the database yet when it was cut short, its journal stays until the next commit.
        vec!["study.toml", RECORD, "x.stacklab-journal"]
    }

    /// The processes of its hosts, the first one's first.
    pub(super) fn hosts(&self, coordinator: u32) -> Vec<u32> {
        let mut hosts = descendants(coordinator);
        hosts.extend(self.agent.iter().flat_map(|agent| children(agent.agent.pid())));
        hosts
    }

    fn user(&self) -> &str {
        if self.kind == Kind::Ordinary { AS_NOBODY } else { "" }
    }

    fn start(&self, arguments: &str) -> Running {
        let script = format!("exec {} \"$STACKLAB\" {arguments}", self.user());
        self.program.started(self.program.script(&["sh", "-c"], &script))
    }
}

/// What a process started, and what that started.
fn descendants(pid: u32) -> Vec<u32> {
    let mut found = children(pid);
    found.sort_unstable();
    let more: Vec<u32> = found.iter().flat_map(|child| descendants(*child)).collect();
    found.extend(more);
    found
}
